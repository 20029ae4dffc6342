"""What a body may have is counted before it is built."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import msgpack
import pytest

from tests.service.decoding import BOUNDS
from wolfstream.service.errors import Refusal, TooLarge
from wolfstream.service.samples.validation import read_samples
from wolfstream.service.web.formats import bounds
from wolfstream.service.web.formats.bounds import Bounds
from wolfstream.service.web.formats.inference import read_inference
from wolfstream.service.web.formats.wire import JSON, MSGPACK, format_of_body

MEGABYTE = 1 << 20
SMALL = Bounds(values=1_000, rows=100)


def packed(header: int, content: bytes) -> bytes:
    """An array of single bytes."""
    return bytes([header]) + len(content).to_bytes(4, "big") + content


HOSTILE: dict[str, tuple[str, bytes]] = {
    "objects": ("application/json", b"[" + b"{}," * (4 * MEGABYTE // 3) + b"1]"),
    "arrays": ("application/json", b"[" + b"[]," * (4 * MEGABYTE // 3) + b"1]"),
    "numbers": ("application/json", b"[" + b"1," * (5 * MEGABYTE) + b"1]"),
    "fields": ("application/json", b"{" + b'"":1,' * MEGABYTE * 3 + b'"":1}'),
    "maps": ("application/vnd.msgpack", packed(0xDD, b"\x80" * 4 * MEGABYTE)),
    "lists": ("application/vnd.msgpack", packed(0xDD, b"\x90" * 4 * MEGABYTE)),
    "integers": ("application/vnd.msgpack", packed(0xDD, b"\x01" * 5 * MEGABYTE)),
    "extensions": ("application/vnd.msgpack", packed(0xDD, b"\xd4\x01\x00" * MEGABYTE)),
    "names": (
        "application/vnd.msgpack",
        b"\xdf"
        + MEGABYTE.to_bytes(4, "big")
        + b"".join(b"\xa5%05x\x01" % i for i in range(MEGABYTE)),
    ),
    "empty lines": ("application/x-ndjson", b"\n" * 4 * MEGABYTE),
    "lines of objects": ("application/x-ndjson", b"{}\n" * MEGABYTE),
    "rows": ("text/csv", b"1,1\n" * MEGABYTE),
    "fields of csv": ("text/csv", b"1," * (5 * MEGABYTE) + b"1\n"),
    "blank csv": ("text/csv", b"\n" * 4 * MEGABYTE),
    "returns": ("text/csv", b"\r" * 4 * MEGABYTE),
    "labels": ("text/x-libsvm", b"1\n" * 2 * MEGABYTE),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_body_is_refused_before_it_is_built(name: str):
    media_type, body = HOSTILE[name]
    tracemalloc.start()
    try:
        with pytest.raises(Refusal):
            format_of_body(media_type, labelled=True).decode(body, BOUNDS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60 * MEGABYTE


def test_object_names_are_bounded_by_two_rows() -> None:
    few = Bounds(values=10_000, rows=100, columns=50)
    names = {f"name{i}": 1 for i in range(101)}
    assert MSGPACK.decode(msgpack.packb({"x": dict(list(names.items())[:100])}), few)["x"]
    with pytest.raises(TooLarge, match="may have at most 100 names"):
        MSGPACK.decode(msgpack.packb({"x": names}), few)


def json_of(values: int) -> bytes:
    return JSON.encode({"x": [[0] * values], "y": [1]})


def msgpack_of(values: int) -> bytes:
    return msgpack.packb({"x": [[0] * values], "y": [1]})


@pytest.mark.parametrize(("encode", "spoken"), [(json_of, JSON), (msgpack_of, MSGPACK)])
def test_the_bound_on_values(encode: Callable[[int], bytes], spoken: Any):
    read_samples(spoken.decode(encode(900), SMALL))
    with pytest.raises(TooLarge, match="1000 numbers"):
        spoken.decode(encode(1_001), SMALL)


def rows(n: int) -> dict[str, Any]:
    return {"x": [[]] * n, "y": []}


@pytest.mark.parametrize("spoken", [JSON, MSGPACK])
def test_the_bound_on_arrays(spoken: Any):
    bounds = Bounds(10_000, 100)
    spoken.decode(spoken.encode(rows(1_300)), bounds)
    with pytest.raises(TooLarge, match="1400 arrays and objects"):
        spoken.decode(spoken.encode(rows(1_500)), bounds)


def test_raw_arrays_are_not_counted():
    raw = {"dtype": "<f8", "shape": [1000, 10], "data": bytes(80_000)}
    body = msgpack.packb({"x": raw, "y": [1]})
    assert MSGPACK.decode(body, SMALL)["x"]["shape"] == [1000, 10]


def test_tensors_are_counted():
    with pytest.raises(TooLarge):
        read_inference(json_of(1_001), None, False, SMALL)


def nested_texts(n: int) -> bytes:
    """Arrays that never end, one in another, each with fewer texts than are allowed."""
    return b"".join(b"\xdd\x00\x10\x00\x00" + b"\xa2ab" * n for _ in range(12))


def test_texts_in_arrays_that_never_end_are_counted() -> None:
    body, most = nested_texts(100_000), Bounds(200_000, 100_000)
    tracemalloc.start()
    with pytest.raises(TooLarge, match="numbers, texts and names"):
        MSGPACK.decode(body, most)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 << 20


@pytest.mark.parametrize(
    "value",
    [
        {"x": [[0.5, -1, 200, 70_000, 2**40, -(2**40), 1e300] * 30] * 50, "y": ["a" * 40] * 50},
        {"x": {"dtype": "<f8", "shape": [4, 2], "data": bytes(range(0xA0, 0xC0)) * 20_000}},
        ["é" * 300, b"\xa1" * 70_000, None, True, {"k" * 20: [["a"] * 70_000, {}]}],
    ],
    ids=["rows", "raw", "mixed"],
)
def test_a_walk_over_messagepack_ends_where_it_ends(
    value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each value is counted once: one more than there are is allowed, one fewer is not."""
    body = msgpack.packb(value)

    def values(part: Any) -> int:
        inner = part if isinstance(part, list) else []
        if isinstance(part, dict):
            inner = [item for pair in part.items() for item in pair]
        return 1 + sum(map(values, inner))

    monkeypatch.setattr(Bounds, "containers", 0)
    n = values(value)
    bounds._walk(body, Bounds(n, n))
    bounds._walk(body + b"\xa1" * 9, Bounds(n, n))
    with pytest.raises(TooLarge):
        bounds._walk(body, Bounds(n - 1, n))


def test_a_body_that_is_cut_off_ends_the_walk() -> None:
    for at in range(1, 40):
        bounds._walk(msgpack.packb(["ab", 1.5, b"cd", {"e": 2**40}, "f" * 40])[:at], Bounds(100, 9))
