"""Rows whose labels, ids and weights stand among their values, in every format that has such."""

import json
from contextlib import suppress
from typing import Any

import httpx
import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.decoding import BOUNDS
from wolfstream.service.errors import Refusal
from wolfstream.service.files.roles import Roles
from wolfstream.service.samples.validation import read_question, read_samples
from wolfstream.service.web.formats.flat_rows import with_roles
from wolfstream.service.web.formats.wire import format_of_body
from wolfstream.solver.prepare.named_rows import NamedRows

CSV, JSON, NDJSON = "text/csv", "application/json", "application/x-ndjson"
MSGPACK = "application/vnd.msgpack"
QUICK = {"working_set": None, "asset": None}
ROWS = [
    {"amount": 12.5, "shop": "north", "Outcome": "ok", "order": 7, "w": 1},
    {"amount": 99, "shop": "south", "Outcome": "fraud", "order": 8, "w": 4},
]
ROLES = Roles("Outcome", "order", "w")


SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
KEY = st.sampled_from(["a", "b", "x", "y", "names", "weight", "ids", "c"])


def _nested(values: Any) -> Any:
    return st.lists(values, max_size=3) | st.dictionaries(KEY, values, max_size=4)


def as_csv(rows: list[dict[str, Any]]) -> str:
    return "\n".join(
        ",".join(map(str, row)) for row in [list(rows[0]), *(r.values() for r in rows)]
    )


def as_ndjson(rows: list[Any]) -> str:
    return "\n".join(map(json.dumps, rows))


BODIES: dict[str, Any] = {
    CSV: as_csv,
    JSON: json.dumps,
    NDJSON: as_ndjson,
    MSGPACK: msgpack.packb,
}


def decoded(media_type: str, content: Any, labelled: bool, roles: Roles = ROLES) -> Any:
    content = content.encode() if isinstance(content, str) else content
    body = format_of_body(media_type, labelled, roles).decode(content, BOUNDS)
    return body if hasattr(body, "origin") else with_roles(body, roles, labelled)


def refused(media_type: str, content: Any, labelled: bool = True, roles: Roles = ROLES) -> Refusal:
    try:
        fields = decoded(media_type, content, labelled, roles)
    except Refusal as error:
        return error
    with pytest.raises(Refusal) as caught:
        (read_samples if labelled else read_question)(fields, prepared=True)
    return fields.origin.locate_errors(caught.value)  # type: ignore[no-any-return]


ENCLOSED: list[Any] = [
    {"data": ROWS},
    {"count": 2, "next": None, "results": ROWS},
    {"columns": list(ROWS[0]), "index": [0, 1], "data": [list(row.values()) for row in ROWS]},
    {name: {str(i): row[name] for i, row in enumerate(ROWS)} for name in ROWS[0]},
]


class TestRowsWithinAnObject:
    @pytest.mark.parametrize("media_type", [JSON, MSGPACK, NDJSON])
    @pytest.mark.parametrize("body", ENCLOSED)
    @pytest.mark.parametrize("roles", [ROLES, Roles()])
    def test_are_the_same_as_a_list_of_them(self, media_type: str, body: Any, roles: Roles):
        as_body = json.dumps if media_type == NDJSON else BODIES[media_type]
        for labelled in (True, False) if roles == ROLES else (False,):
            fields = decoded(media_type, as_body(body), labelled, roles)
            assert fields == decoded(JSON, json.dumps(ROWS), labelled, roles)
            (warning,) = fields.warnings
            assert (warning.slug, warning.column) == ("rows-within", None)

    def test_the_warning_says_what_was_passed_over(self):
        body = {"count": 2, "next": None, "results": ROWS}
        (warning,) = decoded(JSON, json.dumps(body), True).warnings
        passed_over = "`count`, `next` beside them was passed over"
        assert warning.message == f"the rows are those under `results`; {passed_over}"

    def test_errors_point_into_the_body(self):
        body = {"da/ta": [ROWS[0], {**ROWS[1], "amount": [1]}]}
        assert refused(JSON, json.dumps(body)).errors[0]["pointer"] == "/da~1ta/1/amount"

    def test_what_is_asked_beside_rows_to_predict_stays(self):
        body = {"rows": ROWS, "probability": True}
        assert decoded(JSON, json.dumps(body), False, Roles())["probability"] is True

    @pytest.mark.parametrize(
        "body",
        [
            {"order": 7, "items": ROWS, "Outcome": "ok"},
            {"items": ROWS, "y": "ok"},
            {"a": ROWS, "b": ROWS},
            {"rows": []},
            {"rows": [ROWS[0], 1]},
            {"columns": ["a"], "data": [[1, 2]]},
            {"columns": ["a", "a"], "data": [[1, 2]]},
        ],
    )
    def test_what_may_be_a_row_itself_is_not_searched(self, body: Any):
        for roles in (Roles("Outcome"), Roles()):
            with suppress(Refusal):
                fields = decoded(JSON, json.dumps(body), True, roles)
                assert not getattr(fields, "warnings", ())


class TestSamples:
    @pytest.mark.parametrize("media_type", BODIES)
    def test_columns_that_are_no_features(self, media_type: str):
        fields = decoded(media_type, BODIES[media_type](ROWS), True)
        assert fields["y"] == ["ok", "fraud"]
        assert fields["weight"] == [1, 4]
        assert fields.keys() - {"names"} == {"x", "y", "weight"}
        samples = read_samples(fields, prepared=True)
        assert tuple(samples.X.names) == ("amount", "shop")  # type: ignore[union-attr]

    @pytest.mark.parametrize("media_type", BODIES)
    @pytest.mark.parametrize("name", ["y", "Label", "TARGET", "class"])
    def test_an_unmistakable_name_is_the_label(self, media_type: str, name: str):
        rows = [{"a": 1, name: "u"}, {"a": 2, name: "v"}]
        assert decoded(media_type, BODIES[media_type](rows), True, Roles())["y"] == ["u", "v"]

    @pytest.mark.parametrize("media_type", BODIES)
    def test_no_other_column_is_taken_for_the_label(self, media_type: str):
        error = refused(media_type, BODIES[media_type](ROWS), roles=Roles())
        assert "say which one has the labels, as label=NAME or --label NAME" in error.detail
        assert "amount, shop, Outcome, order, w" in error.detail

    @pytest.mark.parametrize("media_type", BODIES)
    def test_a_name_that_no_column_has(self, media_type: str):
        error = refused(media_type, BODIES[media_type](ROWS), roles=Roles("outcome"))
        assert "no column 'outcome'; choose the label (did you mean 'Outcome'?)" in error.detail
        assert "amount, shop, Outcome, order, w" in error.detail

    @pytest.mark.parametrize("media_type", BODIES)
    def test_two_unmistakable_names(self, media_type: str):
        rows = [{"a": 1, "y": "u", "Class": "v"}]
        error = refused(media_type, BODIES[media_type](rows), roles=Roles())
        assert "y and Class could each be the label" in error.detail

    @pytest.mark.parametrize("media_type", [JSON, MSGPACK, NDJSON])
    def test_a_label_that_some_rows_lack(self, media_type: str):
        rows = [ROWS[0], {"amount": 1, "order": 9, "w": 1}, {**ROWS[1], "Outcome": None}]
        error = refused(media_type, BODIES[media_type](rows))
        assert [wrong["row"] for wrong in error.errors] == [1, 2]
        assert [wrong["pointer"] for wrong in error.errors] == ["/1/Outcome", "/2/Outcome"]
        assert "is missing: leave the row out" in error.errors[0]["detail"]

    def test_a_label_that_a_line_of_csv_lacks(self):
        error = refused(CSV, "a,Outcome,order,w\n1,u,1,1\n2,,2,1\n")
        assert error.errors[0]["line"] == 3
        assert "the label is missing: leave the row out" in error.detail

    @pytest.mark.parametrize("media_type", [JSON, MSGPACK, NDJSON])
    def test_values_in_values_become_columns_and_texts(self, media_type: str):
        user = {"user": {"plan": "free", "home": {"km": 2.5}}, "tags": ["new", "paid"], "y": "u"}
        flat = {"user.plan": "free", "user.home.km": 2.5, "tags": "new, paid", "y": "u"}
        for rows, same in ([[user], [flat]], [[user, {"y": "v"}], [flat, {"y": "v"}]]):
            nested, plain = (
                decoded(media_type, BODIES[media_type](each), True, Roles())
                for each in (rows, same)
            )
            assert nested == plain
            nested, plain = (
                read_question({"x": each}, prepared=True).rows for each in (rows, same)
            )
            assert isinstance(nested, NamedRows)
            assert isinstance(plain, NamedRows)
            assert (nested.names, nested.texts) == (plain.names, plain.texts)
            assert np.array_equal(nested.value, plain.value, equal_nan=True)
        roles = Roles(label="user.plan")
        assert decoded(media_type, BODIES[media_type]([user]), True, roles)["y"] == ["free"]

    @pytest.mark.parametrize("media_type", [JSON, MSGPACK, NDJSON])
    @pytest.mark.parametrize(
        ("nested", "kind"), [([{"id": 7}], "array"), ([7], "array"), ({"w": 1}, "object")]
    )
    def test_a_value_that_holds_others_gets_columns(self, media_type: str, nested: Any, kind: str):
        row = {**ROWS[1], "shop": nested, "shop.w": 2}
        error = refused(media_type, BODIES[media_type]([{**ROWS[0], "shop.w": 1}, row]))
        assert error.detail.startswith("some values in rows are not valid")
        told = error.errors[0]["detail"]
        assert told.startswith(f"must be a number, a text, true, false or null, not an {kind}: ")
        assert told.endswith("give each value in it a column of its own")

    def test_columns_without_a_name_are_listed_as_such(self):
        error = refused(CSV, ",amount,shop\n0,1,a\n", roles=Roles("Shop"))
        assert "among (no name), amount, shop" in error.detail

    def test_places_are_those_of_the_body(self):
        error = refused(JSON, json.dumps([ROWS[0], {**ROWS[1], "amount": [1], "w": "much"}]))
        assert error.errors[0]["pointer"] == "/1/amount"
        error = refused(JSON, json.dumps([ROWS[0], {**ROWS[1], "w": "much"}]))
        assert error.errors[0]["pointer"] == "/1/w"
        error = refused(NDJSON, as_ndjson([ROWS[0], {**ROWS[1], "Outcome": 0.5}]))
        assert error.errors[0] | {"detail": ""} == {
            "row": 1,
            "line": 2,
            "pointer": "/1/Outcome",
            "detail": "",
        }

    def test_one_row(self):
        fields = decoded(JSON, json.dumps(ROWS[0]), True)
        assert fields == {
            "x": [[12.5, "north"]],
            "names": ["amount", "shop"],
            "y": ["ok"],
            "weight": [1],
        }

    def test_rows_inside_an_object(self):
        fields = decoded(JSON, json.dumps({"x": ROWS}), True)
        assert fields["y"] == ["ok", "fraud"]
        table = {"names": list(ROWS[0]), "x": [list(row.values()) for row in ROWS]}
        assert decoded(JSON, json.dumps(table), True) == fields
        error = refused(JSON, json.dumps({"x": ROWS, "y": [1, 2]}))
        assert "the body has y beside its rows" in error.detail

    @pytest.mark.parametrize("content", ["[1]", "[[1, 2]]", '[{"a": 1}, 3]', '["a"]', "[null]"])
    def test_rows_without_names(self, content: str):
        assert "flat rows are objects" in refused(JSON, content, roles=Roles()).detail

    def test_an_empty_list(self):
        assert "is empty" in refused(JSON, "[]").detail

    @pytest.mark.parametrize("labelled", [True, False])
    @given(body=st.recursive(SCALAR, _nested, max_leaves=12))
    def test_any_body_is_read_or_refused(self, labelled: bool, body: Any):
        with suppress(Refusal):
            fields = with_roles(body, Roles("a", weight="b"), labelled)
            (read_samples if labelled else read_question)(fields, prepared=True)

    def test_names_that_are_no_names(self):
        for names in ([["a"], "b"], ["a", "a"], [1, "b"], ["a"], "ab"):
            assert refused(JSON, json.dumps({"names": names, "x": [[1, 2]]})).detail
        assert "flat rows are objects" in refused(MSGPACK, msgpack.packb([{b"a": 1}])).detail

    def test_many_columns(self):
        row = {f"c{k}": k for k in range(10_000)} | {"Outcome": "u", "order": 1, "w": 1}
        assert len(decoded(JSON, json.dumps([row]), True)["names"]) == 10_000

    def test_svmlight_has_no_columns(self):
        assert "svmlight has none" in refused("text/x-libsvm", "1 1:2").detail


class TestRows:
    @pytest.mark.parametrize("media_type", BODIES)
    def test_the_file_that_was_learned_can_be_predicted(self, media_type: str):
        fields = decoded(media_type, BODIES[media_type](ROWS), False)
        assert fields["ids"] == [7, 8]
        assert fields.keys() - {"names"} == {"x", "ids"}

    @pytest.mark.parametrize("media_type", BODIES)
    def test_a_label_is_not_needed(self, media_type: str):
        rows = [{"amount": 1, "order": 9}]
        fields = decoded(media_type, BODIES[media_type](rows), False)
        assert fields.keys() - {"names"} == {"x", "ids"}

    @pytest.mark.parametrize("media_type", BODIES)
    def test_an_id_is(self, media_type: str):
        error = refused(media_type, BODIES[media_type]([{"amount": 1}]), labelled=False)
        assert "no column 'order'; choose the id" in error.detail


class TestOverHttp:
    def post(self, client: httpx.Client, path: str, media_type: str, content: Any) -> Any:
        answer = client.post(path, content=content, headers={"Content-Type": media_type})
        return answer.json()

    @pytest.mark.parametrize("media_type", [CSV, JSON, NDJSON])
    def test_learn_and_predict(self, client: httpx.Client, name: str, media_type: str):
        path = f"/v1/models/{name}"
        client.put(path, json=QUICK)
        query = "label=Outcome&id=order&weight=w"
        content = BODIES[media_type](ROWS * 6)
        told = self.post(client, f"{path}/samples?{query}", media_type, content)
        assert told["learned"] == 12
        names = [column["name"] for column in client.get(path).json()["columns"]]
        assert names == ["amount", "shop"]
        told = self.post(client, f"{path}/predict?{query}", media_type, BODIES[media_type](ROWS))
        assert (told["prediction"], told["ids"]) == (["ok", "fraud"], [7, 8])
        assert "warnings" not in told

    def test_a_column_without_a_name_is_left_out_and_reported(
        self, client: httpx.Client, name: str
    ):
        path = f"/v1/models/{name}"
        client.put(path, json=QUICK)
        told = self.post(client, f"{path}/samples", CSV, ",a,y\n0,1,u\n1,2,v\n")
        (warning,) = told["warnings"]
        assert (warning["slug"], warning["column"]) == ("column-left-out", None)
        assert "column 1 has no name" in warning["message"]
        assert [column["name"] for column in client.get(path).json()["columns"]] == ["a"]
        told = self.post(client, f"{path}/predict", CSV, ",a\n0,1\n1,2\n")
        assert len(told["prediction"]) == 2
        assert len(told["warnings"]) == 1

    @pytest.mark.parametrize("query", ["label=", "label=a&label=b", "lable=a", "label=%ff"])
    def test_queries_that_name_no_column(self, client: httpx.Client, name: str, query: str):
        path = f"/v1/models/{name}"
        client.put(path, json=QUICK)
        answer = client.post(f"{path}/samples?{query}", json=ROWS)
        assert answer.status_code == 422

    def test_names_outside_ascii(self, client: httpx.Client, name: str):
        path = f"/v1/models/{name}"
        client.put(path, json=QUICK)
        rows = [{"a": 1, "Größe & +": "u"}, {"a": 2, "Größe & +": "v"}]
        answer = client.post(f"{path}/samples", json=rows, params={"label": "Größe & +"})
        assert answer.json()["learned"] == 2
