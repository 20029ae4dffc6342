"""Bodies that somebody got wrong: valid ones, changed in one or several ways, by a seed.

A case is known by its seed alone, so one that fails can be made again.
"""

import copy
import gzip
import json
import zlib
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import msgpack
import numpy as np
import zstandard

DEEP = 3_000
DTYPES = ("<f4", "<f8", "<i8", ">f8", "O", "<c16", "S8", "float64", "", None, 7, ["<f4"])
NUMBERS = (
    *(0, -1, 1, 2**31, -(2**31), 2**53 + 1, 2**63, -(2**63) - 1, 2**64 - 1, 10**400),
    *(1e-320, 1e100, 1e155, 1e308, -1e308, float("nan"), float("inf"), -float("inf"), 0.5, -0.0),
)
TEXTS = (
    *("", "x", "y", "\0", "é", "\ud800", "a\udfffb", "𝔘" * 70, "x" * 70_000, "1", "NaN", "1e999"),
    *("__class__", "../../etc/passwd", "\u202e", "\r\nX: 1", "'; DROP TABLE models; --", "/~1"),
)


class Body(NamedTuple):
    """What is sent: its bytes and the headers that speak of them."""

    content_type: str
    content: bytes
    headers: dict[str, str] = {}


def any_value(random: Random) -> Any:
    """A value that may stand anywhere and belongs almost nowhere."""
    kinds: list[Callable[[], Any]] = [
        lambda: random.choice(NUMBERS),
        lambda: random.choice(TEXTS),
        lambda: random.choice([None, True, False, [], {}, [[]], [{}], {"": 0}, [None], b""]),
        lambda: random.randbytes(random.randrange(40)),
        lambda: _nested(random),
        lambda: [random.choice(NUMBERS) for _ in range(random.randrange(2_000))],
        lambda: {str(random.random()): random.choice(NUMBERS) for _ in range(random.randrange(99))},
        lambda: _raw(random),
    ]
    return random.choice(kinds)()


def _nested(random: Random) -> Any:
    value: Any = random.choice([1, "x", None])
    as_list = random.random() < 0.5
    for _ in range(random.choice([3, 60, 400])):  # as deep as Python's own encoders go
        value = [value] if as_list else {"x": value}
    return value


def _raw(random: Random) -> dict[str, Any]:
    """A raw array that tells the truth about itself, or not."""
    shape = [random.choice([0, 1, 2, 3, -1, 2**31, 2**40, 1.5, "2"]) for _ in range(2)]
    rows = random.randrange(1, 4)
    array = np.array([[random.gauss(0, 1), 1.0]] * rows, random.choice(["<f4", "<f8"]))
    told = {"dtype": array.dtype.str, "shape": list(array.shape), "data": array.tobytes()}
    match random.randrange(5):
        case 0:
            told["dtype"] = random.choice(DTYPES)
        case 1:
            told["shape"] = random.choice([shape, shape[:1], [*shape, 2], [], None, "2", {}])
        case 2:
            told["data"] = told["data"][: random.randrange(len(told["data"]))]
        case 3:
            told["data"] = random.randbytes(len(told["data"]))
    return told


def changed(data: Any, random: Random) -> Any:
    """Plain data with something in it replaced, removed, doubled, renamed or moved."""
    data = copy.deepcopy(data)
    for _ in range(random.choice([0, 0, 1, 1, 1, 2])):
        places = list(_places(data, ()))
        if not places:
            return any_value(random)
        *path, last = random.choice(places)
        holder = data
        for step in path:
            holder = holder[step]
        match random.randrange(6):
            case 0:
                del holder[last]
            case 1 if isinstance(holder, list):
                holder[last:last] = [holder[last]] * random.choice([1, 2, 50])
            case 1 | 2 if isinstance(holder, dict):
                holder[random.choice(TEXTS)] = holder[last]
            case 3:
                data = {"x": data} if random.random() < 0.5 else [data]
            case _:
                holder[last] = any_value(random)
    return data


def _places(data: Any, path: tuple[Any, ...]) -> Any:
    if isinstance(data, dict | list) and len(path) < 8:
        keys = data.keys() if isinstance(data, dict) else range(len(data))
        for key in keys:
            yield (*path, key)
            yield from _places(data[key], (*path, key))


def damaged(content: bytes, other: bytes, random: Random) -> bytes:
    """Bytes flipped, cut, doubled, inserted, or spliced with another body's."""
    out = bytearray(content)
    for _ in range(random.choice([1, 1, 2, 8])):
        at, to = sorted(random.randrange(len(out) + 1) for _ in range(2))
        match random.randrange(8):
            case 0 | 1 if out:
                out[random.randrange(len(out))] ^= 1 << random.randrange(8)
            case 2:
                del out[at:]
            case 3:
                del out[at:to]
            case 4:
                out[at:at] = out[at:to]
            case 5:
                out[at:at] = random.randbytes(random.randrange(9))
            case 6:
                out[at:] = other[random.randrange(len(other) + 1) :]
            case _:
                out[at:at] = random.choice([b"[" * DEEP, b'{"x":' * DEEP, b"\x91" * DEEP, b"\0"])
    return bytes(out)


def as_json(data: Any) -> bytes:
    """JSON, or what Python takes for it: NaN, Infinity, lone surrogates as escapes."""
    return json.dumps(data, default=lambda v: v.decode("latin-1")).encode()


def as_msgpack(data: Any) -> bytes:
    """MessagePack; what it has no form for becomes text."""
    packed: bytes = msgpack.packb(data, default=str, unicode_errors="surrogatepass")
    return packed


def as_lines(data: Any) -> bytes:
    """NDJSON of a body with rows, with labels or without."""
    x = data.get("x") if isinstance(data, dict) else data
    if not isinstance(x, list):
        return as_json(data)
    rows: list[Any] = [{"x": row} for row in x]
    if isinstance(data, dict) and isinstance(data.get("y"), list):
        rows = [row | {"y": y} for row, y in zip(rows, data["y"], strict=False)]
    return b"\n".join(map(as_json, rows))


def as_csv(data: Any) -> bytes:
    """CSV of a body with rows, without a care."""
    lines = [",".join(map(str, row if isinstance(row, list) else [row])) for row in _rows(data)]
    return "\n".join(lines).encode(errors="surrogatepass")


def as_svmlight(data: Any) -> bytes:
    """Svmlight of a body with rows."""
    lines = []
    for row in _rows(data):
        *values, label = row if isinstance(row, list) else [row]
        entries = " ".join(f"{i}:{value}" for i, value in enumerate(values, 1))
        lines.append(f"{label} {entries}")
    return "\n".join(lines).encode(errors="surrogatepass")


def _rows(data: Any) -> list[Any]:
    x = data.get("x", []) if isinstance(data, dict) else data
    y = data.get("y", []) if isinstance(data, dict) else []
    if not isinstance(x, list):
        return [x]
    labels = y if isinstance(y, list) else [y]
    return [
        [*(row if isinstance(row, list) else [row]), *labels[i : i + 1]] for i, row in enumerate(x)
    ]


ENCODERS: dict[str, Callable[[Any], bytes]] = {
    "application/json": as_json,
    "application/vnd.msgpack": as_msgpack,
    "application/x-msgpack": as_msgpack,
    "application/x-ndjson": as_lines,
    "text/csv": as_csv,
    "text/x-libsvm": as_svmlight,
}
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda content: gzip.compress(content, 1, mtime=0),
    "x-gzip": lambda content: gzip.compress(content, 1, mtime=0),
    "zstd": lambda content: zstandard.compress(content, 1),
    "deflate": zlib.compress,  # not spoken
}


def encoded(data: Any, content_types: list[str], random: Random) -> Body:
    """A body of changed data, perhaps damaged, perhaps packed and then damaged."""
    content_type = random.choice(content_types)
    encode = ENCODERS[content_type]
    content = encode(changed(data, random))
    if random.random() < 0.3:
        content = damaged(content, encode(data), random)
    headers = {}
    if random.random() < 0.2:
        encoding = random.choice(list(COMPRESSORS))
        content = COMPRESSORS[encoding](content)
        headers["Content-Encoding"] = encoding
        if random.random() < 0.3:
            content = damaged(content, content, random)
    if random.random() < 0.05:
        content_type = random.choice([*ENCODERS, "text/plain", "", "a/b; charset=\xff", "json"])
    return Body(content_type, content, headers)


# What is repeated in a body that says much in few bytes, between a beginning and an end.
_SWOLLEN: dict[str, list[tuple[bytes, bytes, bytes]]] = {
    "application/json": [
        *((b'{"x": [', unit, b"0]}") for unit in (b"0,", b"[],", b"{},", b'"",', b"[0,0],")),
        (b'{"x": {', b'"a":0,', b'"b":0}}'),
        (b'{"x": [', b"1", b"]}"),
        (b'{"x": "', b"\\u0000", b'"}'),
        (b"", b"[", b""),
        (b"", b" ", b"0"),
    ],
    "application/vnd.msgpack": [
        (b"\x81\xa1x\xdd\x00\x08\x00\x00", unit, b"")
        for unit in (b"\x00", b"\x80", b"\x90", b"\xa0", b"\xc0", b"\x91")
    ],
    "application/x-ndjson": [(b"", unit, b"") for unit in (b"{}\n", b"\n", b'{"x":[0]}\n')],
    "text/csv": [(b"", unit, b"") for unit in (b",", b"0,", b"0\n", b'"', b"\n", b'"",')],
    "text/x-libsvm": [(b"0", unit, b"") for unit in (b" 1:0", b" ", b"\n0")],
}


def swollen(content_types: list[str], random: Random) -> Body:
    """A body of up to two million bytes, most of them the same, packed or not."""
    content_type = random.choice([kind for kind in content_types if kind in _SWOLLEN])
    begin, unit, end = random.choice(_SWOLLEN[content_type])
    content = begin + unit * (random.choice([10**5, 5 * 10**5, 2 * 10**6]) // len(unit)) + end
    encoding = random.choice(["", "gzip", "zstd"])
    if not encoding:
        return Body(content_type, content)
    return Body(content_type, COMPRESSORS[encoding](content), {"Content-Encoding": encoding})
