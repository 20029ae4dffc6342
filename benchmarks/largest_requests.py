"""The largest requests that a server takes, of each format and call: bytes and seconds.

    python -m benchmarks.largest_requests --write docs/authentication-and-limits.md

Each has as many values as the default limits allow, which is tried; it is sent by curl to a server
that does nothing else. The models have ASSET alone, with a dimension of 16, so that the
time is that of reading, checking and answering; the last rows are of the default model. `/livez`
is asked meanwhile.
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

from benchmarks.machine import machine_line
from benchmarks.processes import Server, wolfstream

ROWS = 100_000  # and as many numbers in a row, by default
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
    """A call with a format. shapes: of its rows, to be narrowed until the server takes them."""

    call: str
    name: str
    body: Body
    shapes: tuple[tuple[int, int], ...]
    spec: dict[str, Any] = _LIGHT


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


def _pairs(X: NDArray[np.float64], y: list[int]) -> Iterator[tuple[list[float], int]]:
    return zip(X.tolist(), y, strict=True)


_JSON = "application/json"
_MSGPACK = "application/vnd.msgpack"
_TALL, _WIDE = (ROWS, 41), (41, ROWS)
_BOTH = (_TALL, _WIDE)
# What a table of more values is refused with does not say that it is too large.
_TABLE = (ROWS, 40)
# Where each value has its name.
_NAMED_TALL, _NAMED_BOTH = (ROWS, 20), ((ROWS, 20), (20, ROWS))
LEARN, PREDICT, INFER = "asset", "predict", "infer"
CASES = (
    Case(PREDICT, "JSON, rows of numbers", Body(_JSON, _rows), _BOTH),
    Case(PREDICT, "MessagePack, raw arrays", Body(_MSGPACK, _raw_rows), ((ROWS, 170),)),
    Case(INFER, "JSON tensor", Body(_JSON, _tensor), (_TALL,)),
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
    Case("samples", "JSON, rows of numbers, default model", Body(_JSON, _json), (_TALL,), {}),
)


class Taken(NamedTuple):
    """What became of a request, in seconds.

    processor: that the server took. livez: the longest answer of `/livez` meanwhile.
    """

    case: Case
    shape: tuple[int, int]
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
            if case.call in (PREDICT, INFER):
                _learn_few(client, shape[1])
            path.write_bytes(_body(case, shape))
            before = _processor_seconds(server.pid)
            with _pulse(url) as livez:
                status, seconds = _sent(url, case, path)
            processor = _processor_seconds(server.pid) - before
            client.delete("/v1/models/m").raise_for_status()
            if status != _TOO_LARGE:
                break
            shape = _narrower(shape)
        return Taken(case, shape, path.stat().st_size, status, seconds, processor, max(livez))


def _processor_seconds(pid: int) -> float:
    """Return the processor's time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _learn_few(client: httpx.Client, width: int) -> None:
    X, y = _samples(2, width)
    answer = client.post("/v1/models/m/asset", content=_json(X, y), timeout=60)
    answer.raise_for_status()


def _samples(rows: int, width: int) -> tuple[NDArray[np.float64], list[int]]:
    random = np.random.default_rng(0)
    X = random.integers(0, 100, (rows, width)) / 8.0
    return X, (np.arange(rows) % 2).tolist()


def _body(case: Case, shape: tuple[int, int]) -> bytes:
    return case.body.make(*_samples(*shape))


def _narrower(shape: tuple[int, int]) -> tuple[int, int]:
    """Return the shape with a little less of what is not at its limit."""
    rows, width = shape
    if rows > width:
        return rows, width - max(width // 40, 1)
    return rows - max(rows // 40, 1), width


def _sent(url: str, case: Case, path: Path) -> tuple[int, float]:
    address = f"{url}/v2/models/m/infer" if case.call == INFER else f"{url}/v1/models/m/{case.call}"
    command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{time_total}", "-H"]
    command += [f"Content-Type: {case.body.media_type}", "-H", "Expect:", "-X", "POST"]
    command += ["--data-binary", f"@{path}", f"{address}?{case.body.query}"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(said[0]), float(said[1])


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


def table(taken: list[Taken]) -> str:
    """Return the results as Markdown."""
    lines = [
        f"By `python -m benchmarks.largest_requests`: {machine_line()}, where "
        f"{os.getloadavg()[2]:.0f} processes wanted to run.",
        "",
        "| call | format | rows × values | MB | status | seconds | of the processor "
        "| longest `/livez`, ms |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for one in taken:
        rows, width = one.shape
        lines.append(
            f"| `{one.case.call}` | {one.case.name} | {rows:,} × {width:,} | "
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
                print(table(taken[-1:]).splitlines()[-1], flush=True)
                if options.write is not None:
                    write(taken, options.write)


def write(taken: list[Taken], page: Path) -> None:
    """Replace what stands between the marks of a page by the results."""
    text = page.read_text()
    before, _, rest = text.partition(_BEGIN)
    page.write_text(f"{before}{_BEGIN}\n{table(taken)}\n{_END}{rest.partition(_END)[2]}")


if __name__ == "__main__":
    main()
