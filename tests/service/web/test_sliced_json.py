"""JSON that is decoded in slices is what it is as a whole, and as wrong."""

import json
from random import Random
from typing import Any

import pytest
from pydantic_core import from_json

from wolfstream.service.errors import Unreadable
from wolfstream.service.web.formats import sliced_json
from wolfstream.service.web.formats.repeated_names import check_json_names

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
    for body in BODIES:
        text = json.dumps(body, ensure_ascii=False).encode()
        for _ in range(400):
            at = random.randrange(len(text))
            byte = random.choice([b"", b",", b"]", b"}", b"[", b"{", b'"', b"\\", b":", b" ", b"1"])
            wrong = text[:at] + byte + text[at + random.randrange(2) :]
            assert told(sliced_json.decode, wrong) == told(from_json, wrong), wrong


def test_large_body_is_never_decoded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other threads run between slices."""
    decoded = list[int]()

    def counted(content: bytes) -> Any:
        decoded.append(len(content))
        return from_json(content)

    monkeypatch.setattr(sliced_json, "from_json", counted)
    for rows in ([[f"é{i}", 0.5] for i in range(900)], [{"a": i, "b": "c"} for i in range(900)]):
        for body in (rows, {"x": rows, "y": ["u"] * len(rows)}):
            text = json.dumps(body, ensure_ascii=False).encode()
            assert sliced_json.decode(text) == body
            assert max(decoded) < 2 * sliced_json.SLICE_BYTES + 100
            assert sum(decoded) < len(text) + 100 * len(decoded)
            decoded.clear()
