"""The largest requests that a server takes, of each format and call: bytes and seconds.

    python -m benchmarks largest_requests --write-table

The table is that of docs/authentication-and-limits.md. Each request has as many values as the
default limits allow, which is tried; it is sent by curl, or over a websocket, to a server that does
nothing else. The models have ASSET alone, with a dimension of 16, so that the time is that of
reading, checking and answering; the last rows are of the default model, and an uploaded model has
rows that wait for their labels, too. `/livez` is asked meanwhile.
"""

import io
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgpack
import numpy as np
from numpy.typing import NDArray
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from benchmarks.harness import Options, Study
from benchmarks.machine import machine_line
from benchmarks.processes import Server, wolfstream
from benchmarks.results import Figures, Results, markdown

ROWS = 100_000  # and as many numbers in a row, by default
_LIGHT = {"working_set": None, "adaptive": None, "asset": {"dimension": 16}, "serve": "asset"}
_SPARSE = {**_LIGHT, "prepare": {"named": "sparse"}}
_TOO_LARGE = 413


class Body(NamedTuple):
    """A format: its media type, what makes a body of rows and labels, and more of the query."""

    media_type: str
    make: Callable[[NDArray[np.float64], list[int]], bytes]
    query: str = ""


class Serving(NamedTuple):
    """A server, the shape of what is sent to it, and a folder for bodies."""

    server: Server
    shape: str
    folder: Path


class Case(NamedTuple):
    """A call with a format. shapes: of its rows, to be narrowed until the server takes them.

    before: what the model gets first, by a client and with the shape.
    """

    call: str
    name: str
    body: Body
    shapes: tuple[tuple[int, int], ...]
    spec: dict[str, Any] = _LIGHT
    before: Callable[[httpx.Client, tuple[int, int]], object] = lambda *_: None


def _json(X: NDArray[np.float64], y: list[int]) -> bytes:
    return json.dumps({"x": X.tolist(), "y": y}).encode()


def _rows(X: NDArray[np.float64], _: list[int]) -> bytes:
    return json.dumps({"x": X.tolist()}).encode()


def _flat(X: NDArray[np.float64], y: list[int]) -> bytes:
    names = [f"c{k}" for k in range(X.shape[1])]
    rows = ({**dict(zip(names, row, strict=True)), "y": label} for row, label in _pairs(X, y))
    return json.dumps(list(rows)).encode()


def _named(X: NDArray[np.float64], y: list[int]) -> bytes:
    names = [f"c{k}" for k in range(X.shape[1])]
    rows = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    return json.dumps({"x": rows, "y": y}).encode()


def _texts(X: NDArray[np.float64], y: list[int]) -> bytes:
    """Different texts alone, in columns with names."""
    x = [[f"text {i} {k}" for k in range(X.shape[1])] for i in range(len(X))]
    return json.dumps({"x": x, "names": [f"c{k}" for k in range(X.shape[1])], "y": y}).encode()


def _packed(X: NDArray[np.float64], y: list[int]) -> bytes:
    packed: bytes = msgpack.packb({"x": X.tolist(), "y": y})
    return packed


def _raw(X: NDArray[np.float64], y: list[int]) -> bytes:
    raw = {"dtype": "<f4", "shape": list(X.shape), "data": X.astype("<f4").tobytes()}
    labels = {"dtype": "<i8", "shape": [len(y)], "data": np.array(y, "<i8").tobytes()}
    packed: bytes = msgpack.packb({"x": raw, "y": labels})
    return packed


def _raw_rows(X: NDArray[np.float64], _: list[int]) -> bytes:
    raw = {"dtype": "<f4", "shape": list(X.shape), "data": X.astype("<f4").tobytes()}
    packed: bytes = msgpack.packb({"x": raw})
    return packed


def _lines(X: NDArray[np.float64], y: list[int]) -> bytes:
    return b"".join(
        json.dumps({"x": row, "y": label}).encode() + b"\n" for row, label in _pairs(X, y)
    )


def _csv(X: NDArray[np.float64], y: list[int]) -> bytes:
    header = ",".join(["y", *(f"c{k}" for k in range(X.shape[1]))])
    rows = (",".join(map(str, [label, *row])) for row, label in _pairs(X, y))
    return "\n".join([header, *rows]).encode()


def _svmlight(X: NDArray[np.float64], y: list[int]) -> bytes:
    places = range(1, X.shape[1] + 1)
    rows = (
        f"{label} " + " ".join(f"{k}:{x}" for k, x in zip(places, row, strict=True))
        for row, label in _pairs(X, y)
    )
    return "\n".join(rows).encode()


def _table(X: NDArray[np.float64], y: list[int]) -> Any:
    import pyarrow

    return pyarrow.table({"y": y, **{f"c{k}": X[:, k] for k in range(X.shape[1])}})


def _arrow(X: NDArray[np.float64], y: list[int]) -> bytes:
    import pyarrow

    table, sink = _table(X, y), io.BytesIO()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _parquet(X: NDArray[np.float64], y: list[int]) -> bytes:
    import pyarrow.parquet

    sink = io.BytesIO()
    pyarrow.parquet.write_table(_table(X, y), sink)
    return sink.getvalue()


def _tensor(X: NDArray[np.float64], _: list[int]) -> bytes:
    given = {"name": "x", "datatype": "FP64", "shape": list(X.shape), "data": X.ravel().tolist()}
    return json.dumps({"inputs": [given]}).encode()


def _rows_with_ids(X: NDArray[np.float64], _: list[int]) -> bytes:
    return json.dumps({"x": X.tolist(), "ids": list(range(len(X)))}).encode()


def _labels(_: NDArray[np.float64], y: list[int]) -> bytes:
    return json.dumps({"ids": list(range(len(y))), "y": y}).encode()


def _learning_frame(X: NDArray[np.float64], y: list[int]) -> bytes:
    return json.dumps({"id": 1, "op": LEARN, "x": X.tolist(), "y": y}).encode()


def _predicting_frame(X: NDArray[np.float64], _: list[int]) -> bytes:
    return json.dumps({"id": 1, "op": PREDICT, "x": X.tolist()}).encode()


def _packed_frame(X: NDArray[np.float64], y: list[int]) -> bytes:
    packed: bytes = msgpack.packb({"id": 1, "op": LEARN, **msgpack.unpackb(_raw(X, y))})
    return packed


def _pairs(X: NDArray[np.float64], y: list[int]) -> Iterator[tuple[list[float], int]]:
    return zip(X.tolist(), y, strict=True)


_JSON = "application/json"
_MSGPACK = "application/vnd.msgpack"
_FILE = "application/octet-stream"
_TALL, _WIDE = (ROWS, 41), (41, ROWS)
_BOTH = (_TALL, _WIDE)
# What a table of more values is refused with does not say that it is too large.
_TABLE = (ROWS, 40)
# Where each value has its name.
_NAMED_TALL, _NAMED_BOTH = (ROWS, 20), ((ROWS, 20), (20, ROWS))
LEARN, PREDICT, INFER = "asset", "predict", "infer"
LABELS, STATE, STREAM = "labels", "state", "stream"


def _learn_few(client: httpx.Client, shape: tuple[int, int]) -> None:
    client.post("/v1/models/m/asset", content=_json(*_samples(2, shape[1]))).raise_for_status()


def _predict_under_ids(client: httpx.Client, shape: tuple[int, int]) -> None:
    _learn_few(client, shape)
    content = _rows_with_ids(*_samples(*shape))
    client.post("/v1/models/m/predict", content=content).raise_for_status()


def _uploaded(X: NDArray[np.float64], y: list[int]) -> bytes:
    """Return nothing: the body of an upload is the file of the model that was there before."""
    del X, y
    return b""


def _let_rows_wait(client: httpx.Client, shape: tuple[int, int]) -> None:
    """Predict rows in requests that are as large as they may be; a model's file has them all."""
    rows, width = shape
    _learn_few(client, shape)
    X, _ = _samples(rows, width)
    for begin in range(0, rows, _AT_ONCE):
        part = X[begin : begin + _AT_ONCE]
        raw = msgpack.unpackb(_raw_rows(part, []))
        content = msgpack.packb({**raw, "ids": list(range(begin, begin + len(part)))})
        headers = {"Content-Type": _MSGPACK}
        client.post("/v1/models/m/predict", content=content, headers=headers).raise_for_status()


_WAITING = {**_LIGHT, "pending": {"max_bytes": 1 << 30}}
_AT_ONCE = ROWS // 2
CASES = (
    Case(PREDICT, "JSON, rows of numbers", Body(_JSON, _rows), _BOTH, _LIGHT, _learn_few),
    Case(
        *(PREDICT, "MessagePack, raw arrays", Body(_MSGPACK, _raw_rows), ((ROWS, 170),)),
        *(_LIGHT, _learn_few),
    ),
    Case(
        *(PREDICT, "JSON, rows with ids", Body(_JSON, _rows_with_ids), (_TALL,)),
        *(_WAITING, _learn_few),
    ),
    Case(INFER, "JSON tensor", Body(_JSON, _tensor), (_TALL,), _LIGHT, _learn_few),
    Case(LEARN, "JSON, rows of numbers", Body(_JSON, _json), _BOTH),
    Case(LEARN, "JSON, flat rows", Body(_JSON, _flat, "label=y"), (_NAMED_TALL,)),
    Case(LEARN, "JSON, sparse rows", Body(_JSON, _named), _NAMED_BOTH, _SPARSE),
    Case(LEARN, "MessagePack, rows of numbers", Body(_MSGPACK, _packed), (_TALL,)),
    Case(LEARN, "MessagePack, raw arrays", Body(_MSGPACK, _raw), ((ROWS, 170),)),
    Case(LEARN, "NDJSON", Body("application/x-ndjson", _lines), (_TALL,)),
    Case(LEARN, "CSV", Body("text/csv", _csv), (_TALL,)),
    Case(LEARN, "svmlight", Body("text/x-libsvm", _svmlight), (_NAMED_TALL,), _SPARSE),
    Case(LEARN, "Arrow", Body("application/vnd.apache.arrow.stream", _arrow), (_TABLE,)),
    Case(LEARN, "Parquet", Body("application/vnd.apache.parquet", _parquet), (_TABLE,)),
    Case(LEARN, "JSON, different texts", Body(_JSON, _texts), (_TALL,)),
    Case(
        *(LABELS, "JSON", Body(_JSON, _labels), ((ROWS, 30),)),
        *(_WAITING, _predict_under_ids),
    ),
    Case(STREAM, "a frame of JSON that learns", Body(_JSON, _learning_frame), (_TALL,)),
    Case(
        *(STREAM, "a frame of JSON that predicts", Body(_JSON, _predicting_frame), (_TALL,)),
        *(_LIGHT, _learn_few),
    ),
    Case(
        STREAM, "a frame of raw arrays that learns", Body(_MSGPACK, _packed_frame), ((ROWS, 170),)
    ),
    Case(
        *(
            STATE,
            "a model file",
            Body("application/octet-stream", _uploaded),
            ((ROWS, 330),),
        ),
        *(_WAITING, _let_rows_wait),
    ),
    Case("samples", "JSON, rows of numbers, default model", Body(_JSON, _json), (_TALL,), {}),
)


@contextmanager
def serving(shape: str, _: Options) -> Iterator[Serving]:
    """A server that does nothing else, and the shape of what is sent to it."""
    with tempfile.TemporaryDirectory() as folder, wolfstream(Path(folder) / "data") as server:
        yield Serving(server, shape, Path(folder))


def measure(case: Case, serving: Serving, options: Options) -> Figures:
    """Send the largest request of a shape to a new model, narrowing what is too large.

    shape: of its rows. processor: the seconds of it that the server took. livez: the longest answer
    of `/livez` meanwhile.
    """
    server, name, folder = serving
    shape = next(shape for shape in case.shapes if _named_shape(shape) == name)
    if options.rows:
        shape = min(shape[0], options.rows), min(shape[1], options.rows)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        path = folder / "body"
        while True:
            client.put("/v1/models/m", json=case.spec).raise_for_status()
            case.before(client, shape)
            path.write_bytes(_body(case, client, shape))
            before = _processor_seconds(server.pid)
            with _pulse(server.url) as livez:
                status, seconds = _sent(server.url, case, path)
            processor = _processor_seconds(server.pid) - before
            client.delete("/v1/models/m").raise_for_status()
            if status != _TOO_LARGE:
                break
            shape = _narrower(shape)
    return {
        "shape": [*shape],
        "n_bytes": path.stat().st_size,
        "status": status,
        "seconds": seconds,
        "processor": processor,
        "livez": max(livez),
    }


def _named_shape(shape: tuple[int, int]) -> str:
    return "tall" if shape[0] > shape[1] else "wide"


def _processor_seconds(pid: int) -> float:
    """Return the processor's time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _samples(rows: int, width: int) -> tuple[NDArray[np.float64], list[int]]:
    random = np.random.default_rng(0)
    X = random.integers(0, 100, (rows, width)) / 8.0
    return X, (np.arange(rows) % 2).tolist()


def _body(case: Case, client: httpx.Client, shape: tuple[int, int]) -> bytes:
    if case.call != STATE:
        return case.body.make(*_samples(*shape))
    content = client.get("/v1/models/m/state").raise_for_status().content
    client.delete("/v1/models/m").raise_for_status()
    return content


def _narrower(shape: tuple[int, int]) -> tuple[int, int]:
    """Return the shape with a little less of what is not at its limit."""
    rows, width = shape
    if rows > width:
        return rows, width - max(width // 40, 1)
    return rows - max(rows // 40, 1), width


def _sent(url: str, case: Case, path: Path) -> tuple[int, float]:
    """Send a body; return the status and the seconds until the answer has come."""
    if case.call == STREAM:
        return _streamed(url, case, path)
    address = f"{url}/v2/models/m/infer" if case.call == INFER else f"{url}/v1/models/m/{case.call}"
    command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{time_total}", "-H"]
    command += [f"Content-Type: {case.body.media_type}", "-H", "Expect:"]
    command += ["-X", "PUT" if case.call == STATE else "POST"]
    command += ["--data-binary", f"@{path}", f"{address}?{case.body.query}"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(said[0]), float(said[1])


def _streamed(url: str, case: Case, path: Path) -> tuple[int, float]:
    """The same with a frame. A connection that is closed for its size counts as its status."""
    is_text = case.body.media_type == _JSON
    protocol = Subprotocol("wolfstream.v1.json" if is_text else "wolfstream.v1.msgpack")
    address = f"{url.replace('http', 'ws', 1)}/v1/models/m/stream"
    frame = path.read_bytes()
    with connect(address, subprotocols=[protocol], proxy=None, max_size=None) as stream:
        stream.recv()
        began = time.perf_counter()
        try:
            stream.send(frame.decode() if is_text else frame)
            answer = stream.recv()
        except ConnectionClosed:
            return _TOO_LARGE, 0.0
        seconds = time.perf_counter() - began
    read = json.loads(answer) if isinstance(answer, str) else msgpack.unpackb(answer)
    return int(read["error"]["status"]) if "error" in read else 200, seconds


@contextmanager
def _pulse(url: str) -> Iterator[list[float]]:
    """The seconds that each call of `/livez` takes within the block."""
    seconds, ended = [0.0], threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=url, timeout=60) as client:
            while not ended.wait(0.02):
                began = time.perf_counter()
                client.get("/livez")
                seconds.append(time.perf_counter() - began)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield seconds
    finally:
        ended.set()
        asking.join()


def table(kept: Results) -> str:
    """Return the results as Markdown, below a line of what they were measured on."""
    last = max(kept.results, key=lambda result: str(result.measured["day"])).measured
    rows = []
    for contender in kept.contenders:
        for shape in ("tall", "wide"):
            for figures in kept.of(contender, shape):
                call, _, name = contender.partition(": ")
                height, width = figures["shape"]
                cells = [
                    f"`{call}`",
                    name,
                    f"{height:,} × {width:,}",
                    f"{figures['n_bytes'] / 1e6:.1f}",
                ]
                cells += [
                    str(figures["status"]),
                    f"{figures['seconds']:.1f}",
                    f"{figures['processor']:.1f}",
                ]
                rows.append([*cells, f"{1e3 * figures['livez']:.0f}"])
    heads = ["call", "format", "rows × values", "MB", "status", "seconds"]
    heads += ["of the processor", "longest `/livez`, ms"]
    return (
        f"By `python -m benchmarks largest_requests`: {machine_line(last)}, where "
        f"{last['load']:.0f} processes wanted to run.\n\n{markdown(heads, rows)}"
    )


BY_NAME = {f"{case.call}: {case.name}": case for case in CASES}
STUDIES = {
    "largest_requests": Study(
        BY_NAME,
        {shape: partial(serving, shape) for shape in ("tall", "wide")},
        measure,
        table,
        takes=lambda case, shape: shape in map(_named_shape, BY_NAME[case].shapes),
        page=Path(__file__).parents[1] / "docs" / "authentication-and-limits.md",
    )
}
