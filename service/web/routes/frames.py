"""Frames of the websocket stream: decoded and checked, before anything is done with them."""

from collections.abc import Mapping
from typing import Any, Literal, cast

from wolfstream.service.errors import Invalid, SampleError, Unreadable
from wolfstream.service.model.revision import read_awaited, read_expected
from wolfstream.service.web.formats.bounds import Bounds
from wolfstream.service.web.formats.wire import JSON, MSGPACK, Format

SUBPROTOCOLS = {"wolfstream.v1.json": JSON, "wolfstream.v1.msgpack": MSGPACK}
Operation = Literal["learn", "asset", "predict", "label"]
FrameId = int | str

_LONGEST_ID = 128
_FIELDS = {
    "learn": {"id", "op", "x", "names", "y", "weight", "if_match"},
    "asset": {"id", "op", "x", "names", "y", "weight", "if_match"},
    "predict": {
        *("id", "op", "x", "names", "head", "min_sequence"),
        *("probability", "confidence", "explain", "costs", "ids"),
    },
    "label": {"id", "op", "ids", "y", "if_match"},
}


def decode_frame(
    message: Mapping[str, Any], frame_format: Format, bounds: Bounds
) -> dict[str, Any]:
    """Return the fields of a message's frame. Raises Unreadable, TooLarge."""
    data = message.get("bytes")
    if data is None:
        if frame_format is MSGPACK:
            raise Unreadable("this stream takes MessagePack; send binary frames")
        data = message["text"].encode()
    frame = frame_format.decode(data, bounds)
    if not isinstance(frame, dict):
        raise Unreadable("a frame must be an object")
    return frame


def frame_id(frame: dict[str, Any]) -> FrameId:
    """Return the id that the answer to a frame carries. Raises Invalid."""
    given = frame.get("id")
    if type(given) is int or (type(given) is str and len(given) <= _LONGEST_ID):
        return given
    raise Invalid(f"a frame needs an id: an integer, or up to {_LONGEST_ID} characters")


def operation(frame: dict[str, Any]) -> Operation:
    """The operation of a frame, which has no other fields than this takes. Raises Invalid."""
    op = frame.get("op")
    if not isinstance(op, str) or op not in _FIELDS:
        raise Invalid(f"op must be one of {', '.join(_FIELDS)}")
    unknown: list[SampleError] = [
        {"pointer": f"/{name}", "detail": "unknown field"}
        for name in frame
        if name not in _FIELDS[op]
    ]
    if unknown:
        raise Invalid(f"{op} takes {', '.join(sorted(_FIELDS[op]))} and nothing else", unknown)
    read_awaited(frame.get("min_sequence"))
    read_expected(frame.get("if_match"))
    return cast(Operation, op)
