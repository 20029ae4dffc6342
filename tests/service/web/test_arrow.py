"""Arrow IPC streams and Parquet files over HTTP."""

import io
from typing import Any

import httpx
import numpy as np
import pytest

from wolfstream.service.files import arrow as reader
from wolfstream.service.web.formats.wire import ARROW, PARQUET

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

QUICK = {"working_set": None, "asset": None}
TABLE = pa.table(
    {
        "amount": [12.5, 99.0, None] * 4,
        "shop": ["north", "south", None] * 4,
        "Outcome": ["ok", "fraud", "ok"] * 4,
        "order": list(range(12)),
    }
)


def written(media_type: str, table: Any) -> bytes:
    sink = io.BytesIO()
    if media_type == PARQUET:
        pq.write_table(table, sink)
        return sink.getvalue()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def post(client: httpx.Client, path: str, media_type: str, content: bytes) -> httpx.Response:
    return client.post(path, content=content, headers={"Content-Type": media_type})


@pytest.mark.parametrize("media_type", [ARROW, PARQUET])
class TestBothFormats:
    def test_learn_and_predict(self, client: httpx.Client, name: str, media_type: str):
        path = f"/v1/models/{name}"
        client.put(path, json=QUICK)
        content = written(media_type, TABLE)
        told = post(client, f"{path}/samples?label=Outcome&id=order", media_type, content)
        assert told.status_code == 200, told.text
        assert (told.json()["learned"], told.headers["content-type"]) == (12, "application/json")
        names = [column["name"] for column in client.get(path).json()["columns"]]
        assert names == ["amount", "shop"]
        told = post(client, f"{path}/predict?label=Outcome&id=order", media_type, content)
        assert told.json()["ids"] == list(range(12))
        assert told.json()["prediction"][:2] == ["ok", "fraud"]

    def test_the_label_is_not_guessed(self, client: httpx.Client, name: str, media_type: str):
        path = f"/v1/models/{name}"
        client.put(path, json=QUICK)
        told = post(client, f"{path}/samples", media_type, written(media_type, TABLE))
        assert told.status_code == 422
        assert "label=NAME or --label NAME: amount, shop, Outcome, order" in told.json()["detail"]
        assert client.get(path).json()["sequence"] == 0

    @pytest.mark.parametrize(
        "table",
        [
            pa.table({"a": [[1]], "y": ["u"]}),
            pa.table({"a": [1], "y": pa.array([None], pa.string())}),
            pa.table({"y": ["u"]}),
            pa.table({"a": pa.array([], pa.int64()), "y": pa.array([], pa.string())}),
            pa.table({"a": [np.inf], "y": ["u"]}),
        ],
        ids=["nested", "no label", "no features", "no rows", "infinity"],
    )
    def test_what_cannot_be_learned(
        self, client: httpx.Client, name: str, media_type: str, table: Any
    ):
        path = f"/v1/models/{name}"
        client.put(path, json=QUICK)
        told = post(client, f"{path}/samples", media_type, written(media_type, table))
        assert told.status_code == 422, told.text
        assert told.headers["content-type"] == "application/problem+json"
        assert client.get(path).json()["sequence"] == 0

    @pytest.mark.parametrize(
        "values",
        [
            [{"a": 1, "b": "x"}] * 4,
            [{"a": {"b": 1}}] * 4,
            [[1, 2]] * 4,
            [[{"a": 1}]] * 4,
            pa.array([[("k", 1)]] * 4, pa.map_(pa.string(), pa.int64())),
            pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float64(), 2)),
        ],
        ids=["struct", "struct in struct", "list", "struct in list", "map", "fixed list"],
    )
    def test_nested_column_is_named(
        self, client: httpx.Client, name: str, media_type: str, values: Any
    ):
        path = f"/v1/models/{name}"
        client.put(path, json=QUICK)
        table = pa.table({"n": [1.0, 2.0] * 2, "größe": values, "y": ["u", "v"] * 2})
        for call in ("samples", "predict"):
            told = post(client, f"{path}/{call}?label=y", media_type, written(media_type, table))
            assert told.status_code == 422, told.text
            assert "column 'größe'" in told.json()["detail"]

    @pytest.mark.parametrize("content", [b"", b"PAR1", b"a,y\n1,2\n", b"\xff" * 100])
    def test_other_content(self, client: httpx.Client, name: str, media_type: str, content: bytes):
        path = f"/v1/models/{name}"
        client.put(path, json=QUICK)
        told = post(client, f"{path}/samples?label=y", media_type, content)
        assert told.status_code == 422, told.text


def test_a_spec_is_no_table(client: httpx.Client, name: str):
    assert post(client, f"/v1/models/{name}/labels", ARROW, b"").status_code in (404, 415)


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch):
    from tests.service.decoding import BOUNDS
    from wolfstream.service.errors import UnsupportedFormat
    from wolfstream.service.web.formats.wire import format_of_body

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(reader.importlib, "import_module", missing)
    for media_type in (ARROW, PARQUET):
        with pytest.raises(UnsupportedFormat, match=r"pip install 'wolfstream\[arrow\]'"):
            format_of_body(media_type, True).decode(b"", BOUNDS)
