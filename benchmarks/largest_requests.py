"""The largest requests that a server takes, of each format and call: bytes and seconds.

    python -m benchmarks.largest_requests --write docs/authentication-and-limits.md

The results stay in `benchmarks/results/largest_requests.json`, from which the page's table is made;
`--only` replaces some of them.
Each has as many values as the default limits allow, which is tried; it is sent by curl, or over a
websocket, to a server that does nothing else. The models have ASSET alone, with a dimension of 16,
so that the time is that of reading, checking and answering; the last rows are of the default model,
and an uploaded model has rows that wait for their labels, too. `/livez` is asked meanwhile.
"""

import argparse
import io
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgpack
import numpy as np
from numpy.typing import NDArray
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from benchmarks.machine import machine_line
from benchmarks.processes import Server, wolfstream

ROWS = 100_000  # and as many numbers in a row, by default
RESULTS = Path(__file__).parent / "results" / "largest_requests.json"
_BEGIN, _END = "<!-- benchmarks.largest_requests: begin -->", "<!-- end -->"
_LIGHT = {"working_set": None, "adaptive": None, "asset": {"dimension": 16}, "serve": "asset"}
_SPARSE = {**_LIGHT, "prepare": {"named": "sparse"}}
_TOO_LARGE = 413


class Body(NamedTuple):
    """A format: its media type, what makes a body of rows and labels, and more of the query."""

    media_type: str
    make: Callable[[NDArray[np.float64], list[int]], bytes]
    query: str = ""


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


class Taken(NamedTuple):
    """What became of a request, in seconds.

    shape: of its rows. processor: that the server took. livez: the longest answer of `/livez`
    meanwhile.
    """

    call: str
    name: str
    shape: list[int]
    n_bytes: int
    status: int
    seconds: float
    processor: float
    livez: float


def measured(server: Server, case: Case, shape: tuple[int, int], folder: Path) -> Taken:
    """Send the largest request of a shape to a new model, narrowing what is too large."""
    url = server.url
    with httpx.Client(base_url=url, timeout=60) as client:
        path = folder / "body"
        while True:
            client.put("/v1/models/m", json=case.spec).raise_for_status()
            case.before(client, shape)
            path.write_bytes(_body(case, client, shape))
            before = _processor_seconds(server.pid)
            with _pulse(url) as livez:
                status, seconds = _sent(url, case, path)
            processor = _processor_seconds(server.pid) - before
            client.delete("/v1/models/m").raise_for_status()
            if status != _TOO_LARGE:
                break
            shape = _narrower(shape)
        return Taken(
            case.call,
            case.name,
            [*shape],
            path.stat().st_size,
            status,
            seconds,
            processor,
            max(livez),
        )


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


class Results(NamedTuple):
    """A run. machine: with its day. load: how many processes wanted to run meanwhile."""

    machine: str
    load: float
    taken: list[Taken]


def read_results(file: Path = RESULTS) -> Results:
    """Return the run that was kept."""
    machine, load, taken = json.loads(file.read_text()).values()
    return Results(machine, load, [Taken(**one) for one in taken])


def _keep(results: Results) -> None:
    taken = [one._asdict() for one in results.taken]
    RESULTS.write_text(json.dumps({**results._asdict(), "taken": taken}, indent=1) + "\n")


def table(results: Results) -> str:
    """Return the results as Markdown."""
    lines = [
        f"By `python -m benchmarks.largest_requests`: {results.machine}, where "
        f"{results.load:.0f} processes wanted to run.",
        "",
        "| call | format | rows × values | MB | status | seconds | of the processor "
        "| longest `/livez`, ms |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for one in results.taken:
        rows, width = one.shape
        lines.append(
            f"| `{one.call}` | {one.name} | {rows:,} × {width:,} | "
            f"{one.n_bytes / 1e6:.1f} | {one.status} | {one.seconds:.1f} | "
            f"{one.processor:.1f} | "
            f"{1e3 * one.livez:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the table, and write it between its marks in a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="the page whose table is replaced")
    parser.add_argument("--only", default="", help="cases whose call and format have this text")
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in f"{case.call} {case.name}"]
    taken = list[Taken]()
    with tempfile.TemporaryDirectory() as folder, wolfstream(Path(folder) / "data") as server:
        for case in cases:
            for shape in case.shapes:
                taken.append(measured(server, case, shape, Path(folder)))
                results = Results(machine_line(), os.getloadavg()[2], taken)
                print(table(results).splitlines()[-1], flush=True)
                if options.write is not None:
                    _keep(_merged(results))
                    page = options.write.read_text()
                    options.write.write_text(written(page, read_results()))


def _merged(results: Results) -> Results:
    """Return the results with those that were kept of other cases, in the cases' order."""
    places = {(case.call, case.name): place for place, case in enumerate(CASES)}
    new = {(one.call, one.name) for one in results.taken}
    kept = read_results().taken if RESULTS.exists() else []
    taken = [one for one in kept if (one.call, one.name) in places.keys() - new]
    taken = sorted([*taken, *results.taken], key=lambda one: places[one.call, one.name])
    return results._replace(taken=taken)


def written(page: str, results: Results) -> str:
    """Return a page with the results in the place of what stands between its marks."""
    before, _, rest = page.partition(_BEGIN)
    return f"{before}{_BEGIN}\n{table(results)}\n{_END}{rest.partition(_END)[2]}"


if __name__ == "__main__":
    main()
