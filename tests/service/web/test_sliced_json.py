"""JSON that is decoded in slices is what it is as a whole, and as wrong."""

import json
from random import Random
from typing import Any

import pytest
from pydantic_core import from_json

from wolfstream.service.errors import Unreadable
from wolfstream.service.web.formats import sliced_json
from wolfstream.service.web.formats.bounds import check_json_names

ROWS: list[Any] = [
    [1.5, None, "a,b"],
    {"a": '"', "b]": [1, "\\"]},
    [],
    {},
    "é,[",
    7,
    [["x\\\\"], {}],
]
BODIES: list[Any] = [
    {"x": ROWS * 3, "y": ["u", 'v"', "w\\"] * 7},
    {"y": [1, 2, 3] * 9, "weight": 2.0, "x": {"columns": [1] * 40}, "z": ROWS},
    ROWS * 4,
    {"x": {f"c{i}": [i] * 9 for i in range(9)}},
    {"inputs": [{"name": "x", "data": [0.5] * 90}]},
    {"a": [], "b": [[]], "c": [1, [2], [3, {"d": [4, 5]}]] * 5, "": [1, 2, 3] * 5},
    "x" * 90,
    [[[1, 2] * 30]],
    {"data": {"x": ROWS * 3, "y": {"of": [1, 2] * 9}}, "more": [[{"a": {"b": [{"c": ROWS}]}}]] * 3},
    {f"k{i}": {"a": i, "b": f"{i},"} for i in range(12)},
    [[[[[[ROWS]]]], ROWS], {"": {"": {"": ROWS}}}],
]


def told(decode: Any, body: bytes) -> str:
    """What a request hears: what its body holds, or what is wrong with it."""
    try:
        decoded = decode(body)
        check_json_names(body, decoded)
    except ValueError as error:
        return str(error)
    except Unreadable as error:
        return error.detail
    return json.dumps(decoded)


@pytest.fixture(autouse=True, params=[3, 16, 40])
def _small_slices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sliced_json, "SLICE_BYTES", request.param)


@pytest.mark.parametrize("indent", [None, 1])
def test_slices_are_joined(indent: int | None) -> None:
    for body in BODIES:
        for ascii_only in (True, False):
            text = json.dumps(body, indent=indent, ensure_ascii=ascii_only).encode()
            assert sliced_json.decode(text) == body


def test_wrong_json_has_the_error_of_the_whole() -> None:
    """A byte more, less or another one; also commas without elements, and brackets that differ."""
    random = Random(7)
    count = min(400, 40 * sliced_json.SLICE_BYTES)  # the smaller the slices, the more there are
    for body in BODIES:
        text = json.dumps(body, ensure_ascii=False).encode()
        for _ in range(count):
            at = random.randrange(len(text))
            byte = random.choice([b"", b",", b"]", b"}", b"[", b"{", b'"', b"\\", b":", b" ", b"1"])
            wrong = text[:at] + byte + text[at + random.randrange(2) :]
            assert told(sliced_json.decode, wrong) == told(from_json, wrong), wrong


ROW = ["é", 0.5]
LARGE: dict[str, Any] = {
    "rows": [[f"é{i}", 0.5] for i in range(900)],
    "objects": [{"a": i, "b": "c"} for i in range(900)],
    "columns": {"x": [ROW] * 900, "y": ["u"] * 900},
    "wrapped": {"data": {"x": [ROW] * 900, "y": ["u"] * 900}},
    "one row": {"x": [["é"] * 900]},
    "names": {"x": {f"k{i}": [1, 2, 3] for i in range(900)}},
    "deep": [[[[[[ROW] * 900]]]]],
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("end", ["", "]", "!", "cut off"])
def test_large_body_is_never_decoded_at_once(
    monkeypatch: pytest.MonkeyPatch, name: str, end: str
) -> None:
    """Other threads run between slices, also where an error comes late."""
    decoded = list[int]()

    def counted(content: bytes) -> Any:
        decoded.append(len(content))
        return from_json(content)

    text = json.dumps(LARGE[name], ensure_ascii=False).encode()
    text = text[:-2] if end == "cut off" else text + end.encode()
    monkeypatch.setattr(sliced_json, "from_json", counted)
    assert told(sliced_json.decode, text) == told(from_json, text)
    assert max(decoded) < 2 * sliced_json.SLICE_BYTES + 300
    assert sum(decoded) < len(text) + 300 * len(decoded)


@pytest.mark.parametrize("bracket", [b"[", b"{", b"]", b"}", b'{"x":', b"[" * 300])
def test_bracket_too_many_at_the_beginning(monkeypatch: pytest.MonkeyPatch, bracket: bytes) -> None:
    decoded = list[int]()

    def counted(content: bytes) -> Any:
        decoded.append(len(content))
        return from_json(content)

    text = b"[" + bracket + json.dumps([["a", "b"]] * 900).encode() + b"]"
    monkeypatch.setattr(sliced_json, "from_json", counted)
    assert told(sliced_json.decode, text) == told(from_json, text)
    # What is left once brackets are known to be wrong is decoded as far as the error.
    assert sum(decoded[:-2]) < len(text) + 300 * len(decoded)
