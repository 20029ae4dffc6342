"""Samples in lines: the same samples in every format are the same model; errors name the line."""

import csv
import io
import json
import math
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.decoding import BOUNDS
from tests.service.specs import PAPERS
from tests.service.streams import curve, few_words, part, plain_rows, three_classes, two_classes
from wolfstream.service.errors import InvalidSamples, Refusal, TooLarge, Unreadable
from wolfstream.service.files.charset import _CODECS
from wolfstream.service.files.labelled import open_data
from wolfstream.service.files.roles import Roles
from wolfstream.service.samples.validation import Samples, read_rows, read_samples
from wolfstream.service.web.formats.charset import MOST_GROWTH, text_in_utf8
from wolfstream.service.web.formats.flat_rows import Fields
from wolfstream.service.web.formats.lines import DECODERS
from wolfstream.service.web.formats.wire import SAMPLE_MEDIA_TYPES, format_of_body
from wolfstream.solver.prepare.cells import Cells
from wolfstream.solver.prepare.named_rows import NamedRows

QUICK = {"working_set": None, "asset": None}
NDJSON, CSV, SVMLIGHT = "application/x-ndjson", "text/csv", "text/x-libsvm"


def decoded(media_type: str, content: bytes, labelled: bool = True) -> Any:
    return format_of_body(media_type, labelled).decode(content, BOUNDS)


def typed(samples: Samples) -> tuple[Any, Any]:
    """Rows to the bit and labels with their types."""
    rows = samples.X.numbers if isinstance(samples.X, Cells) else samples.X
    arrays = rows[1:4] if isinstance(rows, NamedRows) else [rows]
    names = rows.names if isinstance(rows, NamedRows) else None
    labels = [(type(label), label) for label in samples.y]
    return (names, [(a.shape, a.dtype.kind, a.tobytes()) for a in arrays]), labels


def as_json(x: list[Any], y: list[Any]) -> bytes:
    return json.dumps({"x": x, "y": y}).encode()


def as_msgpack(x: list[Any], y: list[Any]) -> bytes:
    packed: bytes = msgpack.packb({"x": x, "y": y})
    return packed


def as_raw_msgpack(x: list[Any], y: list[Any]) -> bytes:
    array = np.array(x, "<f8")
    raw = {"dtype": "<f8", "shape": list(array.shape), "data": array.tobytes()}
    packed: bytes = msgpack.packb({"x": raw, "y": y})
    return packed


def as_ndjson(x: list[Any], y: list[Any]) -> bytes:
    lines = [json.dumps({"x": row, "y": label}) for row, label in zip(x, y, strict=True)]
    return "\n".join(lines).encode()


def as_csv(x: list[Any], y: list[Any], end: str = "\r\n") -> bytes:
    """As RFC 4180 writes it, the label in the last column."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=end)
    writer.writerow([*(f"x{k}" for k in range(len(x[0]))), "y"])
    writer.writerows([*row, label] for row, label in zip(x, y, strict=True))
    return text.getvalue().encode()


def as_csv_with_header(x: list[Any], y: list[Any]) -> bytes:
    """The label in front, in the column that the header calls y."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["y", *(f"x{k}" for k in range(len(x[0])))])
    writer.writerows([label, *row] for row, label in zip(x, y, strict=True))
    return text.getvalue().encode()


def as_svmlight(x: list[Any], y: list[Any]) -> bytes:
    lines = [
        " ".join([str(label), *(f"{name}:{value!r}" for name, value in row.items())])
        for row, label in zip(x, y, strict=True)
    ]
    return "\n".join(lines).encode()


OF_ARRAYS: dict[str, tuple[str, Callable[[list[Any], list[Any]], bytes]]] = {
    "msgpack": ("application/vnd.msgpack", as_msgpack),
    "raw msgpack": ("application/vnd.msgpack", as_raw_msgpack),
    "ndjson": (NDJSON, as_ndjson),
    "csv": (CSV, as_csv),
    "csv with a header": (CSV, as_csv_with_header),
}
OF_NAMES = {
    "msgpack": ("application/vnd.msgpack", as_msgpack),
    "ndjson": (NDJSON, as_ndjson),
    "svmlight": (SVMLIGHT, as_svmlight),
}

NUMBER = st.floats(allow_nan=False, allow_infinity=False)
WORD = st.text("aé ,\"'\n;:#", min_size=1, max_size=5).filter(lambda text: text.strip() == text)
LABELS = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3),
    # A label that is no number makes text of all.
    st.tuples(WORD, WORD | st.just("7"), WORD | st.just("0.50")).map(list),
)


def of_json(x: list[Any], y: list[Any]) -> Samples:
    return read_samples(decoded("application/json", as_json(x, y)))


class TestTheSameSamples:
    @pytest.mark.parametrize("name", OF_ARRAYS)
    @given(x=st.lists(st.lists(NUMBER, min_size=2, max_size=2), min_size=3, max_size=3), y=LABELS)
    def test_of_arrays(self, name: str, x: list[Any], y: list[Any]):
        media_type, write = OF_ARRAYS[name]
        assert typed(read_samples(decoded(media_type, write(x, y)))) == typed(of_json(x, y))

    @pytest.mark.parametrize("name", OF_NAMES)
    @given(
        x=st.lists(st.dictionaries(st.integers(0, 2**31 - 2), NUMBER), min_size=3, max_size=3),
        y=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3)
        | st.lists(st.sampled_from(["a", "bé", "c,d"]), min_size=3, max_size=3),
    )
    def test_of_numbered_names(self, name: str, x: list[Any], y: list[Any]):
        """svmlight's indices grow from left to right."""
        x = [{str(k): row[k] for k in sorted(row)} for row in x]
        media_type, write = OF_NAMES[name]
        assert typed(read_samples(decoded(media_type, write(x, y)))) == typed(of_json(x, y))

    @pytest.mark.parametrize("suffix", ["csv", "svm"])
    @given(
        st.lists(
            st.sampled_from(
                ["1", "+1", "1.0", "2.5", "007", "1e3", "-7", "b", "true", "1_0", str(2**64), "0x1"]
            ),
            min_size=1,
            max_size=4,
        )
    )
    def test_labels_are_told_apart_as_train_does(self, suffix: str, texts: list[str]):
        head, entry = {"csv": ("a,y\n", "5,{}\n"), "svm": ("", "{} 1:5\n")}[suffix]
        content = "".join([head, *(entry.format(text) for text in texts)]).encode()
        media_type = {"csv": CSV, "svm": SVMLIGHT}[suffix]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"a.{suffix}"
            path.write_bytes(content)
            (batch,) = open_data(path).batches(9)
        found = decoded(media_type, content)["y"]
        assert [(type(y), y) for y in found] == [(type(y), y) for y in batch.labels]

    @pytest.mark.parametrize("labelled", [False, True])
    @pytest.mark.parametrize("media_type", DECODERS)
    @given(st.binary(max_size=30) | st.text('{}[]"xy:,.1 \n#qid-e', max_size=40).map(str.encode))
    def test_any_bytes_are_read_or_refused(self, media_type: str, labelled: bool, content: bytes):
        try:
            read = read_samples if labelled else read_rows
            read(decoded(media_type, content, labelled))
        except Refusal as error:
            detail = error.detail
        else:
            return
        assert 0 < len(detail) < 1000

    def test_a_label_that_is_not_finite_is_refused_as_in_json(self):
        with pytest.raises(InvalidSamples) as caught:
            read_samples(decoded(CSV, b"a,y\n1,2\n3,1e400\n"))
        assert caught.value.errors[0]["line"] == 3

    @pytest.mark.parametrize(
        "content",
        [
            f"{'0' * 5000}1 1:1",
            f"1 {'0' * 5000}1:1",
            f"1 {'9' * 5000}:1",
            f"1 1:{'9' * 5000}",
            f"{'9' * 5000} 1:1",
        ],
    )
    def test_endless_numbers_are_refused(self, content: str):
        with pytest.raises(Refusal):
            read_samples(decoded(SVMLIGHT, content.encode()))


def create(client: httpx.Client, name: str, serve: str = "working_set") -> str:
    spec = PAPERS | {"serve": serve}
    assert client.put(f"/v1/models/{name}", json=spec).status_code == 201
    return f"/v1/models/{name}"


def post(client: httpx.Client, path: str, media_type: str, content: bytes) -> httpx.Response:
    return client.post(path, content=content, headers={"Content-Type": media_type})


def described(client: httpx.Client, path: str) -> dict[str, Any]:
    """A description without what tells models apart that learned the same."""
    told: dict[str, Any] = client.get(path).json()
    return {key: told[key] for key in told.keys() - {"model", "epoch", "rows", "columns"}}


class TestTables:
    """Lines with names, texts and missing values, learned by a model that prepares its rows."""

    LEARNED = "warmth,room,y\n18,hall,dry\n19,,dry\n26,attic,humid\n,attic,humid\n" * 4

    def test_a_header_names_the_columns(self, client: httpx.Client, name: str):
        path = f"/v1/models/{name}"
        client.put(path, json=QUICK)
        content = self.LEARNED.partition("\n")[0] + "\n"
        content += "\n".join(line for line in self.LEARNED.splitlines() if "warmth" not in line)
        answer = post(client, f"{path}/samples", CSV, content.encode())
        assert answer.status_code == 200, answer.text
        kinds = {c["name"]: c["kind"] for c in client.get(path).json()["columns"]}
        assert kinds == {"warmth": "number", "room": "category"}
        asked = [b"warmth,room\n25,attic\n", b"room,warmth\nattic,25\n"]
        one, other = (post(client, f"{path}/predict", CSV, rows).json() for rows in asked)
        assert one == other
        told = client.post(f"{path}/predict", json={"x": {"room": "attic", "warmth": 25}}).json()
        assert told == one
        (warning,) = post(client, f"{path}/predict", CSV, b"warmth,rom\n25,attic\n").json()[
            "warnings"
        ]
        assert "did you mean `room`" in warning["message"]

    def test_rows_of_ndjson_are_a_table(self, client: httpx.Client, name: str):
        path = f"/v1/models/{name}"
        client.put(path, json=QUICK)
        lines = [{"x": {"a": 1, "b": "u"}, "y": 1}, {"x": {"b": None, "a": True}, "y": 2}]
        content = "\n".join(map(json.dumps, lines)).encode()
        answer = post(client, f"{path}/samples", NDJSON, content)
        assert answer.status_code == 200, answer.text
        refused = post(client, f"{path}/samples", NDJSON, content + b'\n{"x": {"c": [1]}, "y": 1}')
        assert refused.json()["errors"][0]["line"] == 3
        wider = post(client, f"{path}/samples", NDJSON, content + b'\n{"x": {"c": 1}, "y": 1}')
        assert wider.status_code == 200
        assert [c["name"] for c in client.get(path).json()["columns"]] == ["a", "b", "c"]

    def test_what_exports_have_is_learned(self, client: httpx.Client, name: str):
        path = f"/v1/models/{name}"
        client.put(path, json=QUICK)
        header = ",price,code,Y,y\n"
        row = '{0},"$1,{0:03}.50",{1},7,{2}\n'
        codes = ["747_380_1127", "blue", "x" * 300]
        lines = [row.format(k, codes[k % 3], "ab"[k % 2]) for k in range(150)]
        answer = post(client, f"{path}/samples", CSV, (header + "".join(lines)).encode())
        assert answer.status_code == 200, answer.text
        later = row.format(3, "inf", "a").replace('"$1,003.50"', "soon")
        answer = post(client, f"{path}/samples", CSV, (header + later).encode())
        assert [one["slug"] for one in answer.json()["warnings"]] == [
            *("column-left-out", "unread-value"),
        ]
        kinds = {c["name"]: c["kind"] for c in client.get(path).json()["columns"]}
        assert kinds == {
            **{"price": "number in text"},
            **{"code": "text", "Y": "constant"},
        }


class TestOverHttp:
    @pytest.mark.parametrize("head", ["samples", "asset"])
    def test_arrays_make_the_same_model(self, client: httpx.Client, name: str, head: str):
        samples = two_classes(200)
        x, y = plain_rows(samples), samples.y
        serve = "asset" if head == "asset" else "working_set"
        first = create(client, name, serve)
        told = client.post(f"{first}/{head}", json={"x": x, "y": y}).json()
        for number, (media_type, write) in enumerate(OF_ARRAYS.values()):
            path = create(client, f"{name}.{number}", serve)
            answer = post(client, f"{path}/{head}", media_type, write(x, y))
            assert answer.status_code == 200, answer.text
            assert described(client, path) == described(client, first)
        answer = post(client, f"{path}/{head}", CSV, as_csv(x, y))
        again = client.post(f"{first}/{head}", json={"x": x, "y": y}).json()
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["results"] == again["results"]
        assert told["results"] != again["results"]

    def test_numbers_to_be_regressed_make_the_same_model(self, client: httpx.Client, name: str):
        samples = curve(100)
        x, y = plain_rows(samples), [float(value) for value in samples.y]
        y[:2] = [2.0, -3.0]  # integers, as text may write them
        spec = {"task": "regression", "asset": {"dimension": 32}}
        answers = []
        for number, (media_type, write) in enumerate(OF_ARRAYS.values()):
            path = f"/v1/models/{name}.{number}"
            assert client.put(path, json=spec).status_code == 201
            answer = post(client, f"{path}/asset", media_type, write(x, y))
            assert answer.status_code == 200, answer.text
            answers.append(described(client, path))
        assert all(answer == answers[0] for answer in answers)
        assert answers[0]["heads"]["asset"]["prequential"]["samples"] > 90
        refused = post(client, f"{path}/asset", CSV, b"a,b,c,y\n1,2,3,0.5\n\n1,2,3,high\n")
        assert [error["line"] for error in refused.json()["errors"]] == [4]
        assert "task is regression" in refused.json()["detail"]

    def test_named_rows_make_the_same_model(self, client: httpx.Client, name: str):
        samples = few_words(150)
        place = {n: str(k) for k, n in enumerate(samples.X.names)}  # type: ignore[union-attr]
        x = [{place[n]: value for n, value in row.items()} for row in plain_rows(samples)]
        x = [{n: row[n] for n in sorted(row, key=int)} for row in x]
        first = create(client, name)
        client.post(f"{first}/samples", json={"x": x, "y": samples.y})
        for number, (media_type, write) in enumerate(OF_NAMES.values()):
            path = create(client, f"{name}.{number}")
            answer = post(client, f"{path}/samples", media_type, write(x, samples.y))
            assert answer.status_code == 200, answer.text
            assert described(client, path) == described(client, first)

    def test_predictions(self, client: httpx.Client, name: str):
        samples = three_classes(200)
        path = create(client, name)
        post(client, f"{path}/samples", CSV, as_csv(plain_rows(samples), samples.y))
        x = plain_rows(part(samples, 0, 9))
        expected = client.post(f"{path}/predict", json={"x": x}).json()
        bodies = {
            NDJSON: "\n".join(json.dumps({"x": row}) for row in x),
            CSV: "\n".join(",".join(map(repr, row)) for row in x),
            f"{CSV}; header=present": "x0,x1,x2\n"
            + "\n".join(",".join(map(repr, row)) for row in x),
        }
        for media_type, content in bodies.items():
            assert post(client, f"{path}/predict", media_type, content.encode()).json() == expected

    @pytest.mark.parametrize("label", ["", "1 "])
    def test_predictions_of_svmlight(self, client: httpx.Client, name: str, label: str):
        """A label may stand there: the file that was used to learn can be used to predict."""
        path = create(client, name)
        content = b"1 1:1\n-1 2:1\n" * 20
        post(client, f"{path}/samples", SVMLIGHT, content)
        told = post(client, f"{path}/predict", SVMLIGHT, f"{label}2:1\n{label}1:1".encode())
        assert told.json()["prediction"] == [-1, 1]

    def test_messagepack_may_be_asked_for(self, client: httpx.Client, name: str):
        path = create(client, name)
        headers = {"Content-Type": CSV, "Accept": "application/vnd.msgpack"}
        answer = client.post(f"{path}/samples", content=b"x,y\n1,a\n2,b\n", headers=headers)
        assert msgpack.unpackb(answer.content)["learned"] == 2

    @pytest.mark.parametrize(
        ("media_type", "content", "line", "detail"),
        [
            (NDJSON, '{"x": [1, 2], "y": 1}\n\n{"x": [1, NaN], "y": 1}', 3, "finite"),
            (NDJSON, '{"x": [1, 2], "y": 1}\n{"x": [1], "y": 1}', 2, "has 1 numbers"),
            (NDJSON, '{"x": [1, 2], "y": 1}\n{"x": [1, 2]}', 2, "x and y"),
            (NDJSON, '{"x": [1, 2], "y": 1}\n{"x": [1, 2], "y": 1, "z": 1}', 2, "x and y"),
            (NDJSON, '{"x": [1, 2], "y": 1}\n[1, 2]', 2, "x and y"),
            (NDJSON, '{"x": [1, 2], "y": 1}\n\n{"x": 1, "y": 1}', 3, "one row"),
            (NDJSON, '{"x": [1, 2], "y": 1}\n\n{"x": [1, 2], "y": null}', 3, "is missing"),
            (NDJSON, '{"x": [1, 2], "y": 1}\n{"x": [1e300, 2], "y": 1}', 2, "kernel"),
            (CSV, "u,v,y\n1,2,a\n1,x,a\n", 3, "must be a number, not text"),
            (CSV, "u,v,y\n1,2,a\n1,nan,a\n", 3, "must be a number, not null"),
            (CSV, "u,v,y\n1,2,a\n1,inf,a\n", 3, "must be a number, not text"),
            (CSV, "u;v;y\n1;2;a\n1;2,5;a\n", 3, "must be a number, not text"),
            (CSV, "u,v,y\n1,2,a\n1,2\n", 3, "has 2 columns"),
            (CSV, 'u,v,y\n1,2,a\n1,2,"a"b\n', 3, "not CSV"),
            (CSV, "u,v,y\n1,2,a\n1,2,\n", 3, "label is missing"),
            (CSV, "u,v,y\n1,2,a\n\n1e300,2,a\n", 4, "kernel"),
            (CSV, f"u,v,y\n1,2,a\n1,2,{'b' * 257}\n", 3, "longer than 256"),
            (CSV, "u,v,y\n1,2,0.5\n\n1,2,1.5\n", 2, "label"),
            (SVMLIGHT, "# a comment\n1 1:1\n1 1:x\n", 3, "'1:x'"),
            (SVMLIGHT, "1 1:1\n1 2:1 1:1\n", 2, "grow"),
            (SVMLIGHT, "1 1:1\n\n1:1 2:1\n", 3, "label is missing"),
            (SVMLIGHT, "1 1:1\n\n1 1:1e300\n", 3, "kernel"),
        ],
    )
    def test_what_is_wrong_is_told_with_its_line(
        self, client: httpx.Client, name: str, media_type: str, content: str, line: int, detail: str
    ):
        path = create(client, name)
        answer = post(client, f"{path}/samples", media_type, content.encode())
        told = answer.json()
        assert answer.status_code == 422, told
        assert answer.headers["content-type"] == "application/problem+json"
        assert told["type"] == "urn:wolfstream:invalid-samples"
        assert told["errors"][0]["line"] == line
        assert detail in told["detail"] + told["errors"][0]["detail"]
        assert client.get(path).json()["sequence"] == 0

    @pytest.mark.parametrize(
        ("media_type", "content", "status", "detail"),
        [
            (NDJSON, b'{"x": [1], "y": 1}\n{"x": ', 400, "line 2 is not JSON"),
            (NDJSON, b"", 422, "is empty"),
            (NDJSON, b"\n\n", 422, "is empty"),
            (CSV, b"1,\xff", 400, "UTF-8"),
            (
                CSV,
                b"PK\x03\x04\x14\xff\xff",
                400,
                "is a spreadsheet or another archive: save it as CSV",
            ),
            (CSV, b"\x1f\x8b\x08\xff\xff", 400, "or send Content-Encoding: gzip"),
            (CSV, b'a,y\n"1,2\n', 422, "a quotation mark opens a field that nothing ends"),
            ("application/json", b"a,y\n1,2\n", 400, "as in Content-Type: text/csv"),
            (
                "application/json",
                b'{"a": 1, "y": 2}\n{"a": 2, "y": 1}',
                400,
                "application/x-ndjson",
            ),
            (CSV, b"", 422, "is empty"),
            (CSV, b"a,y\n", 422, "is empty"),
            (CSV, b"1,2,a\n", 422, "there is no header"),
            (CSV, b"u,v,w\n1,2,a\n", 422, "--label NAME: u, v, w"),
            (CSV, b"label,a,y\n1,2,3\n", 422, "say which one, as label=NAME"),
            (CSV, b"y\n1\n", 422, "no column besides the label"),
            (SVMLIGHT, b"\xff 1:1", 400, "UTF-8"),
            (SVMLIGHT, b"# nothing", 422, "is empty"),
            ("text/x-svmlight", b"1 1:1", 415, "text/csv"),
        ],
    )
    def test_bodies_without_samples(
        self,
        client: httpx.Client,
        name: str,
        media_type: str,
        content: bytes,
        status: int,
        detail: str,
    ):
        path = create(client, name)
        answer = post(client, f"{path}/samples", media_type, content)
        assert answer.status_code == status, answer.text
        assert detail in answer.json()["detail"]

    def test_a_row_of_the_other_kind(self, client: httpx.Client, name: str):
        path = create(client, name)
        post(client, f"{path}/samples?label=2", CSV, b"1,a\n2,b\n")
        answer = post(client, f"{path}/samples", SVMLIGHT, b"a 1:1\n")
        assert "arrays of numbers" in answer.json()["detail"]

    @pytest.mark.parametrize("media_type", DECODERS)
    def test_a_spec_has_no_lines(self, client: httpx.Client, name: str, media_type: str):
        headers = {"Content-Type": media_type}
        assert client.put(f"/v1/models/{name}", content=b"{}", headers=headers).status_code == 415


def test_all_media_types_are_spoken() -> None:
    for media_type in SAMPLE_MEDIA_TYPES:
        for labelled in (False, True):
            assert format_of_body(f"{media_type}; charset=utf-8", labelled).encode(math.pi)


@pytest.mark.parametrize("media_type", [NDJSON, CSV])
def test_a_byte_order_mark_is_no_part_of_a_body(media_type: str) -> None:
    body = b'{"a": 1, "y": 2}\n' if media_type == NDJSON else b"a,y\n1,2\n"
    assert decoded(media_type, b"\xef\xbb\xbf" + body) == decoded(media_type, body)


def in_utf8(content_type: str, content: bytes) -> Any:
    """What is read of a body in the charset of its content type."""
    read = format_of_body(content_type, True)
    assert read.utf8 is not None
    return read.decode(read.utf8(content, 1 << 20), BOUNDS)


@pytest.mark.parametrize(
    ("encoding", "charset"),
    [
        ("cp1252", "; charset=windows-1252"),
        ("cp1252", ';header=present; Charset="Windows-1252"'),
        ("iso8859-15", "; charset=iso-8859-15"),
        ("utf-16", ""),
        ("utf-16", "; charset=utf-16"),
        ("utf-16-le", "; charset=utf-16le"),
        ("utf-8", "; charset=utf-8"),
    ],
)
@pytest.mark.parametrize("media_type", [NDJSON, CSV])
def test_text_in_another_charset_is_read(media_type: str, encoding: str, charset: str) -> None:
    text = "Betrag;y\n5 €;groß\n" if media_type == CSV else '{"Betrag": "5 €", "y": "groß"}\n'
    read = in_utf8(f"{media_type}{charset}", text.encode(encoding))
    assert read == decoded(media_type, text.encode())


@pytest.mark.parametrize("charset", ["cp1252", "Windows-1252", "latin-1", "ISO_8859_1"])
def test_a_charset_may_have_its_other_names(charset: str) -> None:
    assert text_in_utf8("y\nä".encode("cp1252"), f"{CSV}; charset={charset}", 99) == "y\nä".encode()


@pytest.mark.parametrize(
    ("charset", "body", "detail"),
    [
        ("", b"a,y\n\xe4,1\n", "charset=windows-1252"),
        ("; charset=zip", b"a,y\n1,1\n", "windows-1252"),
        ("; charset=utf-16", b"a,y\n1,1\n1", "utf-16"),
    ],
)
def test_text_in_no_known_charset_is_refused(charset: str, body: bytes, detail: str) -> None:
    with pytest.raises(Unreadable, match=detail):
        in_utf8(f"{CSV}{charset}", body)


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16", "shift_jis", "windows-1252"])
def test_text_is_converted_in_parts_to_so_many_bytes(encoding: str) -> None:
    text = "y\n" + "ä€" * 200_000 if encoding == "windows-1252" else "y\n" + "a漢字" * 150_000
    body, content_type = text.encode(encoding), f"{CSV}; charset={encoding}"
    n_bytes = len(text.encode())
    assert text_in_utf8(body, content_type, n_bytes) == text.encode()
    with pytest.raises(TooLarge, match="in UTF-8 a body may have at most"):
        text_in_utf8(body, content_type, n_bytes - 1)


def test_no_charset_grows_more_than_is_counted() -> None:
    every = bytes(range(256))
    for codec in set(_CODECS.values()):
        for first in range(256):
            for body in (bytes([first]), *(bytes([first, second]) for second in every)):
                with suppress(UnicodeError):
                    assert len(body.decode(codec).encode()) <= MOST_GROWTH * len(body)


TITLED = [
    b"Report 2024,,\n,,\nday,amount,paid\n1,2,yes\n3,4,no\n",
    b"Report 2024\n\nday;amount;paid\n1;2;yes\n3;4;no\n",
    b'"Account";"DE1"\n\nday;amount;paid\n1;2;yes\n3;4;no\n',
    b"Account;DE1;;\n;;;\nday;amount;paid;shop\n1;2;yes;a\n3;4;no;b\n",
    b"# ---\n# Pages, all of them\nday\tamount\tpaid\n1\t2\tyes\n3\t4\tno\n",
    b'"Report, of\n2024"\nday,amount,paid\n1,2,yes\n3,4,no\n',
]


@pytest.mark.parametrize("body", TITLED)
@pytest.mark.parametrize("labelled", [True, False])
def test_titles_above_a_header_are_left_out(body: bytes, labelled: bool) -> None:
    roles = Roles(label="paid")
    read = DECODERS[CSV](body, labelled, BOUNDS, roles)
    assert isinstance(read, Fields)
    assert read["names"][:2] == ["day", "amount"]
    assert read.get("y") == (["yes", "no"] if labelled else None)
    assert read.origin.line_of_row == [4, 5]
    (warning,) = read.warnings
    assert warning.slug == "lines-left-out"
    assert warning.message.startswith("lines 1 to 2 are left out as titles: line 3 is the header")


@pytest.mark.parametrize(
    "body",
    [
        b"Report 2024\n,day,amount,paid\n0,1,2,yes\n1,3,4,no\n",
        b"Report, all\n;day;amount;paid\n0;1;2;yes\n1;3;4;no\n",
        b"# by shop\n\tday\tamount\tpaid\n0\t1\t2\tyes\n1\t3\t4\tno\n",
    ],
)
def test_titles_above_a_header_with_an_index(body: bytes) -> None:
    read = DECODERS[CSV](body, True, BOUNDS, Roles(label="paid"))
    assert isinstance(read, Fields)
    assert (read["names"], read["y"]) == (["day", "amount"], ["yes", "no"])
    slugs = [warning.slug for warning in read.warnings]
    assert slugs == ["lines-left-out", "column-left-out"]


SPACED = [
    b"day amount paid\n1 2 yes\n3 4 no\n",
    b"  day   amount  paid\n    1      2   yes\n   3      4    no \n",
    b"# from the till\n# day amount paid\n1 2 yes\n3 4 no\n",
    b"#Version: 1.0\n#Fields: day amount paid\n1 2 yes\n3 4 no\n",
    b"day \t amount   paid\n1\t 2 yes\n3 4 no\n",
    b'day amount paid\n1 2 "yes"\n3 4 "no"\n',
]


@pytest.mark.parametrize("body", SPACED)
@pytest.mark.parametrize("labelled", [True, False])
def test_spaces_separate_columns_where_nothing_else_does(body: bytes, labelled: bool) -> None:
    read = DECODERS[CSV](body, labelled, BOUNDS, Roles(label="paid"))
    assert isinstance(read, Fields)
    assert read["names"] == ["day", "amount"]
    assert read.get("y") == (["yes", "no"] if labelled else None)


def test_a_comment_may_be_the_header_of_other_tables() -> None:
    body = b"# a run, of Monday\n# day,amount,paid\n1,2,yes\n3,4,no\n"
    for each in (body, body.partition(b"\n")[2]):
        read = DECODERS[CSV](each, True, BOUNDS, Roles(label="paid"))
        assert isinstance(read, Fields)
        assert (read["names"], read["y"]) == (["day", "amount"], ["yes", "no"])


@pytest.mark.parametrize(
    "body",
    [
        b"note\nall is well\nnot so well\n",
        b"#,y\n1,a\n2,b\n",
        b"# of rooms,price\n1,2\n3,4\n",
    ],
)
def test_texts_and_marks_are_no_tables_of_spaces(body: bytes) -> None:
    read = DECODERS[CSV](body, False, BOUNDS, Roles())
    assert isinstance(read, Fields)
    assert read["names"] == body.split(b"\n")[0].decode().split(",")


def test_values_between_spaces_are_bounded() -> None:
    body = b"day amount paid\n" + 40 * b"1 2 yes\n"
    with pytest.raises(TooLarge):
        DECODERS[CSV](body, True, BOUNDS._replace(values=100), Roles(label="paid"))


SUMMED = [
    b"shop,sold,y\na,1,3\nb,2,5\nTotal,3,8\n",
    b"shop,sold,y\na,1,3\nb,2,5\nAverage,1.5,4\n",
    b"shop,sold,y\na,1,3\nb,2,5\nTotal:,,8\n",
    b"shop;sold;y\na;1,5;3,5\nb;2,25;5,5\nSumme;3,75;9,0\n",
    b'shop,sold,y\na,"$1,000.00",3\nb,$2.00,5\nGrand total,"$1,002.00",8\n',
    b"shop,sold,y\na,1,3\nb,2,5\nTotal,,\n",
]


@pytest.mark.parametrize("body", SUMMED)
def test_a_last_line_of_sums_is_no_sample(body: bytes) -> None:
    read = DECODERS[CSV](body, True, BOUNDS, Roles())
    assert isinstance(read, Fields)
    assert len(read["y"]) == 2
    (warning,) = read.warnings
    assert (warning.slug, warning.column) == ("lines-left-out", None)
    assert warning.message == "line 4 is left out: it has sums or means of the lines above it"
    assert len(DECODERS[CSV](body, False, BOUNDS, Roles(label="y"))["x"]) == 3


@pytest.mark.parametrize(
    "body",
    [
        b"shop,sold,y\na,1,3\nb,2,5\nTotal,7,9\n",  # a shop of this name
        b"shop,sold,y\na,1,3\nTotal,2,5\nTotal,3,8\n",
        b"sold,y\n1,total\n2,mean\n3,total\n",
    ],
)
def test_lines_without_sums_are_samples(body: bytes) -> None:
    read = DECODERS[CSV](body, True, BOUNDS, Roles())
    assert isinstance(read, Fields)
    assert (len(read["y"]), read.warnings) == (3, ())


@pytest.mark.parametrize("first", [b"sep=;", b'"sep=;"', b"SEP=;\r"])
def test_a_separator_in_the_first_line_is_no_row(first: bytes) -> None:
    read = DECODERS[CSV](first + b"\nsize, cm;y\n1,5;a\n2,5;b\n", True, BOUNDS, Roles())
    assert isinstance(read, Fields)
    assert (read["names"], read["y"], read.warnings) == (["size, cm"], ["a", "b"], ())
    assert read["x"] == [["1,5"], ["2,5"]]


@pytest.mark.parametrize(
    "body",
    [
        b"1\n2,3,4\n3,4,5\n4,5,6\n",
        b"day,amount\nx,y,z\nu,v,w\nu,v\n",
    ],
)
def test_what_may_be_no_title_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidSamples, match="columns"):
        DECODERS[CSV](body, True, BOUNDS, Roles(label="1"))


def test_message_finds_header_below_titles() -> None:
    body = b"a,b,c,d\nReport,of,2024\nday,amount,paid\n1,2,yes\n1,2\n"
    with pytest.raises(InvalidSamples, match="line 3 seems to be the header"):
        DECODERS[CSV](body, True, BOUNDS, Roles(label="paid"))


@pytest.mark.parametrize(
    "body", [b"y,,\na,b,c\nd,e,f\n", b",y,z\n0,a,b\n1,b,c\n", b"y,,\n1,2,3\n1,2,4\n"]
)
def test_columns_without_names_are_no_titles(body: bytes) -> None:
    read = DECODERS[CSV](body.replace(b"y,,", b"x,,y"), True, BOUNDS, Roles())
    assert isinstance(read, Fields)
    assert {warning.slug for warning in read.warnings} == {"column-left-out"}


@pytest.mark.parametrize("labelled", [True, False])
def test_a_body_without_lines_has_no_samples_under_roles_either(labelled: bool) -> None:
    roles = Roles(label="y") if labelled else Roles(id="id")
    read = DECODERS[NDJSON](b" \n\n", labelled, BOUNDS, roles)
    assert read == ({"x": [], "y": []} if labelled else {"x": []})
