"""Tables, files and rows that have their labels in a column: the same model in every form."""

import asyncio
import csv
import io
import json
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.service.decoding import BOUNDS
from tests.service.process import ServerProcess
from wolfstream.service.client.aio import AsyncClient
from wolfstream.service.client.batches import (
    Batches,
    as_rows,
    row_fields,
    rows_and_ids,
    split_roles,
)
from wolfstream.service.client.sync import Client
from wolfstream.service.client.wire import pack
from wolfstream.service.files.roles import NO_ROLES, Roles
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import read_samples
from wolfstream.service.spec.model import read_spec
from wolfstream.service.web.formats.flat_rows import Fields, with_roles
from wolfstream.service.web.formats.wire import MSGPACK, format_of_body

QUICK = {"working_set": None, "asset": None}
ROLES = Roles("Outcome", weight="w")
ROWS = [
    {"amount": 12.5, "shop": "north", "Outcome": "ok", "w": 1.0},
    {"amount": 99.0, "shop": "south, east", "Outcome": "fraud", "w": 4.0},
    {"amount": None, "shop": "north", "Outcome": "ok", "w": 1.0},
]


def of_body(media_type: str, body: bytes, roles: Roles = ROLES) -> Any:
    """What a server reads of a body."""
    fields = format_of_body(media_type, True, roles).decode(body, BOUNDS)
    return fields if isinstance(fields, Fields) else with_roles(fields, roles, True)


def of_client(X: Any, roles: Roles = ROLES) -> Any:
    """What a server reads of the only batch that a client sends."""
    batch = Batches(X, None, 1000, roles=roles).take()
    assert batch is not None
    return MSGPACK.decode(pack(batch.fields()), BOUNDS)


def as_csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def state_of(fields: Any) -> Any:
    """The state of a new model that has learned a body."""
    samples = read_samples(fields, prepared=True)
    learner = Learner(Model(1, "m", read_spec(QUICK)))
    learner.absorb("adaptive", samples)
    plain, arrays = learner.state()
    return plain, {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()}


def forms(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The same rows in every form, as a server reads them."""
    frame, text = pl.DataFrame(rows), as_csv(rows)
    found = {
        "csv": of_body("text/csv", text.encode()),
        "json": of_body("application/json", json.dumps(rows).encode()),
        "ndjson": of_body("application/x-ndjson", "\n".join(map(json.dumps, rows)).encode()),
        "dicts": of_client(rows),
        "DictReader": of_client(csv.DictReader(io.StringIO(text))),
        "list of DictReader": of_client(list(csv.DictReader(io.StringIO(text)))),
        "pandas": of_client(pd.DataFrame(rows)),
        "polars": of_client(frame),
        "lazy polars": of_client(frame.lazy()),
    }
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return found
    table = pa.Table.from_pylist(rows)
    stream, parquet = io.BytesIO(), io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    pq.write_table(table, parquet)
    return found | {
        "arrow": of_body("application/vnd.apache.arrow.stream", stream.getvalue()),
        "parquet": of_body("application/vnd.apache.parquet", parquet.getvalue()),
        "pyarrow": of_client(table),
        "record batch": of_client(table.to_batches()[0]),
    }


NUMBER = st.floats(-1e9, 1e9) | st.integers(-1000, 1000).map(float)
TEXT = st.text(st.sampled_from("aé ,\"';:#\n"), min_size=1, max_size=6).filter(
    lambda text: text.strip() == text and text.lower() not in ("nan",)
)
SAMPLE = st.fixed_dictionaries(
    {
        "n": NUMBER,
        "gap": NUMBER | st.none(),
        "t": TEXT | st.none(),
        "Outcome": st.sampled_from(["u", "v, w"]),
        "w": st.sampled_from([0.5, 1.0, 3.0]),
    }
)
# Of each column something is known: one of nothing has no type, and says nothing.
FIRST = {"n": 1.5, "gap": 2.0, "t": "a", "Outcome": "u", "w": 1.0}


class TestTheSameModel:
    @settings(max_examples=20, deadline=None)
    @given(st.lists(SAMPLE, min_size=1, max_size=8))
    def test_in_every_form(self, rows: list[dict[str, Any]]):
        states = {form: state_of(fields) for form, fields in forms([FIRST, *rows]).items()}
        expected = states["json"]
        for form, state in states.items():
            assert state == expected, form

    @pytest.mark.parametrize("labels", [[0, 1], [0.0, 1.0], [True, False], ["0", "1"]])
    def test_of_labels_in_every_spelling(self, labels: list[Any]):
        rows = [{"a": float(k), "Outcome": labels[k % 2], "w": 1.0} for k in range(8)]
        plain = [{**row, "Outcome": int(row["Outcome"])} for row in rows]
        expected = state_of(forms(plain)["json"])[1]
        for form, fields in forms(rows).items():
            arrays = state_of(fields)[1]
            # The first samples are kept as they came, with the spelling of their labels.
            assert arrays | {"first": None} == expected | {"first": None}, form


class TestValues:
    def test_values_of_python_and_numpy(self):
        token = uuid.UUID(int=5)
        row = {
            "decimal": Decimal("1.50"),
            "day": date(2025, 3, 1),
            "at": datetime(2025, 3, 1, 4, 12, tzinfo=UTC),
            "took": timedelta(minutes=1.5),
            "id": token,
            "i": np.int64(3),
            "f": np.float32(0.5),
            "b": np.bool_(True),
            "ns": np.datetime64("2025-03-01T04:12:00.000000001"),
            "gap": float("nan"),
            "na": pd.NA,
            "nat": pd.NaT,
        }
        assert as_rows([row]) == [
            {
                "decimal": 1.5,
                "day": "2025-03-01",
                "at": "2025-03-01T04:12:00+00:00",
                "took": 90.0,
                "id": str(token),
                "i": 3,
                "f": 0.5,
                "b": True,
                "ns": "2025-03-01T04:12:00",
                "gap": None,
                "na": None,
                "nat": None,
            }
        ]

    def test_values_that_are_none(self):
        with pytest.raises(TypeError, match=r"\[1\] is a list, neither a number nor a text"):
            as_rows([{"a": [1]}])
        with pytest.raises(TypeError, match="leave its column out"):
            as_rows(pl.DataFrame({"a": [[1], [2]]}))

    def test_cells_of_texts_alone_are_those_of_csv(self):
        assert as_rows([{"a": "12.5", "b": "x", "c": "", "d": "747_380"}]) == [
            {"a": 12.5, "b": "x", "c": None, "d": "747_380"}
        ]
        assert as_rows([{"a": "12.5", "b": 1}]) == [{"a": "12.5", "b": 1}]

    def test_a_sparse_matrix(self):
        X = scipy.sparse.csr_matrix(np.array([[0, 1.5, 0], [2.0, 0, 0], [0, 0, 0]]))
        for matrix in (X, X.tocoo(), scipy.sparse.csr_array(X)):
            batches = Batches(matrix, ["a", "b", "a"], 2)
            first, second = batches.take(), batches.take()
            assert first is not None
            assert second is not None
            assert first.fields()["x"] == [{"1": 1.5}, {"0": 2.0}]
            assert second.fields() == {"x": [{}], "y": ["a"]}
            assert batches.take() is None
        assert row_fields(as_rows(X[:1])) == {"x": [{"1": 1.5}]}

    @pytest.mark.parametrize("y", [np.array([0.0, 1.0]), [0.0, 1.0], pd.Series([0.0, 1.0])])
    def test_labels_that_are_floats(self, y: Any):
        batch = Batches(np.zeros((2, 1)), y, 9).take()
        assert batch is not None
        assert read_samples(MSGPACK.decode(pack(batch.fields()), BOUNDS)).y == [0, 1]

    def test_what_narwhals_reads(self):
        narwhals = pytest.importorskip("narwhals")
        frame = narwhals.from_native(pl.DataFrame(ROWS))
        assert pack(row_fields(as_rows(frame))) == pack(row_fields(as_rows(pl.DataFrame(ROWS))))
        assert pack(of_client(frame.lazy())) == pack(of_client(pl.DataFrame(ROWS)))


class TestColumns:
    @pytest.mark.parametrize("form", [pd.DataFrame, pl.DataFrame, list, iter])
    def test_no_column_is_taken_for_the_label(self, form: Any):
        with pytest.raises(
            ValueError, match="label=NAME or --label NAME: amount, shop, Outcome, w"
        ):
            Batches(form(ROWS), None, 9).take()

    @pytest.mark.parametrize("form", [pd.DataFrame, pl.DataFrame, list, iter])
    def test_a_column_that_is_not_there(self, form: Any):
        with pytest.raises(ValueError, match="no column 'outcome'; choose the label"):
            Batches(form(ROWS), None, 9, roles=Roles("outcome")).take()

    @pytest.mark.parametrize("form", [pd.DataFrame, pl.DataFrame, list, iter])
    def test_a_label_that_a_row_lacks(self, form: Any):
        with pytest.raises(ValueError, match="label of row 3 is missing: leave the row out"):
            Batches(form([*ROWS[:2], {**ROWS[2], "Outcome": None}]), None, 9, roles=ROLES).take()

    def test_labels_in_two_places(self):
        with pytest.raises(ValueError, match="leave y out"):
            Batches(pd.DataFrame(ROWS), ["a"] * 3, 9, roles=ROLES)
        with pytest.raises(ValueError, match="leave y out"):
            Batches("rows.csv", ["a"], 9)
        with pytest.raises(ValueError, match="the rows of X have no names"):
            rows_and_ids([[1, 2]], ROLES)

    def test_an_index_is_no_column(self):
        frame = pd.read_csv(io.StringIO(pd.DataFrame(ROWS).to_csv()))
        assert frame.columns[0] == "Unnamed: 0"
        assert of_client(frame)["names"] == ["amount", "shop"]

    def test_ids_of_rows_to_predict(self):
        rows = [{**row, "order": k} for k, row in enumerate(ROWS)]
        roles = ROLES._replace(id="order")
        for X in (rows, pd.DataFrame(rows), pl.DataFrame(rows).lazy()):
            found, ids = rows_and_ids(X, roles)
            assert list(ids or ()) == [0, 1, 2]
            read = row_fields(found)
            assert read.get("names", ["amount", "shop"]) == ["amount", "shop"]

    def test_rows_are_read_as_they_are_taken(self):
        given = 0

        def rows() -> Any:
            nonlocal given
            for k in range(100):
                given += 1
                yield {"a": k, "y": k % 2}

        batches = Batches(rows(), None, 10)
        batch = batches.take()
        assert batch is not None
        assert (batch.X.rows[1], batch.y, given) == ([1], [0, 1] * 5, 10)


class TestServed:
    def test_tables_files_and_paths(self, server: ServerProcess, name: str, tmp_path: Path):
        path = tmp_path / "rows.csv"
        path.write_text(as_csv(ROWS))
        with Client(server.url) as client:
            client.create(name, QUICK)
            told = client.learn(name, pd.DataFrame(ROWS), label="Outcome", weight="w")
            assert told.learned == 3
            client.learn(name, str(path), label="Outcome", weight="w")
            client.learn(name, path, label="Outcome", weight="w", batch=2)
            with path.open() as file:
                client.learn(name, csv.DictReader(file), label="Outcome", weight="w")
            names = [column["name"] for column in client.describe(name)["columns"]]
            assert names == ["amount", "shop"]
            served = client.predict(name, path, label="Outcome", weight="w")
            assert served.sequence == 12
            again = client.predict(name, ROWS, label="Outcome", weight="w")
            assert np.array_equal(again.decisions, served.decisions)
            orders = pd.DataFrame(ROWS).assign(order=[7.0, 8.0, 9.0])
            later = client.predict(name, orders, label="Outcome", id="order", weight="w")
            assert later.ids == [7, 8, 9]
            for call in (client.predict_proba, client.predict_set, client.explain):
                same = call(name, ROWS, label="Outcome", weight="w")
                assert np.array_equal(same.predictions, served.predictions)
                same = call(name, orders, label="Outcome", id="order", weight="w")
                assert same.ids is None
            with pytest.raises(ValueError, match=r"absent\.csv: cannot be read: No such file"):
                client.learn(name, tmp_path / "absent.csv", label="Outcome")

    def test_asyncio(self, server: ServerProcess, name: str):
        async def run() -> None:
            async with AsyncClient(server.url) as client:
                await client.create(name, QUICK)
                told = await client.learn(name, pl.DataFrame(ROWS), label="Outcome", weight="w")
                assert told.learned == 3
                served = await client.predict(name, ROWS, label="Outcome", weight="w")
                assert served.sequence == 3
                for call in (client.predict_proba, client.predict_set, client.explain):
                    same = await call(name, ROWS, label="Outcome", weight="w")
                    assert np.array_equal(same.predictions, served.predictions)

        asyncio.run(run())

    def test_a_task_is_a_spec(self, server: ServerProcess, name: str):
        with Client(server.url) as client:
            assert client.create(name, "regression")["spec"]["task"] == "regression"
            with pytest.raises(ValueError, match="'regresion' is no task: say 'classification' or"):
                client.create(name, "regresion")
            with pytest.raises(TypeError, match="a spec is a dict"):
                client.create(name, ["regression"])  # type: ignore[arg-type]


class TestFrames:
    """Data frames as people have them: what is read, and which message says what to do."""

    FRAME = pd.DataFrame({"a": [1.5, 2.5, 3.5], "room": list("uvw"), "Outcome": list("xyx")})

    def sent(self, frame: Any, **roles: Any) -> dict[str, Any]:
        given = split_roles(roles.get("label", "Outcome"), roles.get("id"), None)[0]
        batch = Batches(frame, None, 9, None, given).take()
        assert batch is not None
        return row_fields(batch.X)

    def test_objects_and_lists_of_texts_in_cells(self):
        home = [{"city": "Bari", "km": 2}, None, {"city": "Rom"}]
        frame = self.FRAME.assign(home=home, tags=[["p", "q"], [], None])
        sent = self.sent(frame)
        assert sent["names"] == ["a", "room", "home.city", "home.km", "tags"]
        assert sent["x"][0] == [1.5, "u", "Bari", 2, "p, q"]
        assert sent["x"][1] == [2.5, "v", None, None, None]
        assert rows_and_ids(frame.to_dict("records")[:1], Roles("Outcome"))[0].rows == sent["x"][:1]

    @pytest.mark.parametrize(
        "cell",
        [[1, 2], {"a"}, np.arange(2.0), 1j, b"x", [{"a": 1}]],
        ids=lambda cell: type(cell).__name__,
    )
    def test_the_column_of_other_cells_is_named(self, cell: Any):
        with pytest.raises(TypeError, match=r"column 'odd': .* neither a number nor a text"):
            self.sent(self.FRAME.assign(odd=[cell] * 3))

    def test_intervals_and_periods_are_what_they_are_in_csv(self):
        frame = self.FRAME.assign(
            cut=pd.cut(self.FRAME.a, 2), month=pd.period_range("2024-01", periods=3, freq="M")
        )
        written = pd.read_csv(io.StringIO(frame.to_csv(index=False)))
        assert self.sent(frame)["x"] == self.sent(written)["x"]

    @pytest.mark.parametrize("label", [("t", "Outcome"), "t.Outcome"])
    def test_several_levels_of_columns_are_joined(self, label: Any):
        sent = self.sent(pd.concat({"t": self.FRAME}, axis=1), label=label)
        assert sent["names"] == ["t.a", "t.room"]

    def test_names_that_are_no_texts_are_written(self):
        sent = self.sent(self.FRAME.rename(columns={"a": pd.Timestamp("2025-01-01"), "room": 3}))
        assert sent["names"] == ["2025-01-01 00:00:00", "3"]

    def test_a_name_that_comes_twice_is_told_with_its_places(self):
        frame = pd.concat([self.FRAME, self.FRAME[["room"]]], axis=1)
        with pytest.raises(ValueError, match="columns 2 and 4 of X have the same name, 'room'"):
            self.sent(frame)

    def test_named_index_may_be_ids_or_labels(self):
        frame = self.FRAME.set_index("Outcome")
        assert self.sent(frame)["names"] == ["a", "room"]
        rows, ids = rows_and_ids(self.FRAME.set_index("room"), Roles("Outcome", "room"))
        assert (row_fields(rows)["names"], ids) == (["a"], ["u", "v", "w"])

    def test_an_index_with_a_name_that_is_left_out_is_told(self):
        with pytest.warns(UserWarning, match=r"the index 'room' of X is left out: X.reset_index"):
            assert self.sent(self.FRAME.set_index("room"))["x"].tolist() == [[1.5], [2.5], [3.5]]

    @pytest.mark.parametrize("label", [["Outcome"], FRAME.Outcome, 1.5])
    def test_a_label_that_is_no_name(self, label: Any):
        with pytest.raises(TypeError, match="label is the name of a column of X, such as label="):
            split_roles(label, None, None)

    @pytest.mark.parametrize("X", [FRAME.a, FRAME.iloc[0]])
    def test_a_series_is_a_row_or_a_column(self, X: Any):
        with pytest.raises(ValueError, match="X is a Series: write"):
            rows_and_ids(X, NO_ROLES)

    def test_labels_that_are_a_feature_as_well(self):
        with pytest.raises(ValueError, match="column 'Outcome' of X has the labels themselves"):
            Batches(self.FRAME, self.FRAME.Outcome, 9)

    def test_labels_in_another_order_than_their_rows(self):
        X, y = self.FRAME[["a"]], self.FRAME.Outcome
        with pytest.raises(ValueError, match="the labels are in another order than the rows"):
            Batches(X, y[::-1], 9)
        for rows, labels in ((X, y), (X[::-1], y), (X[::-1], y[::-1]), (X, y.set_axis([7, 8, 9]))):
            assert Batches(rows, labels, 9).take() is not None
