"""Decodes and checks the frames of a websocket stream.

A frame has the fields of a call's body, those parameters of the call that streams support, and two
more fields, `id` and `op`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from wolfstream.service.calls.samples import BODIES
from wolfstream.service.calls.table import CALLS, Call
from wolfstream.service.errors import Invalid, SampleError, Unreadable
from wolfstream.service.model.revision import read_awaited, read_expected
from wolfstream.service.web.formats.bounds import Bounds
from wolfstream.service.web.formats.wire import JSON, MSGPACK, Format

SUBPROTOCOLS = {"wolfstream.v1.json": JSON, "wolfstream.v1.msgpack": MSGPACK}
FrameId = int | str

_MAX_ID_LENGTH = 128
# The parameters that streams support: name in a request -> field of a frame.
_PARAMETERS = {"head": "head", "min_sequence": "min_sequence", "If-Match": "if_match"}


class Frame(NamedTuple):
    """A frame that has been checked, apart from its body."""

    id: FrameId
    call: Call
    fields: Mapping[str, Any]  # all fields of the frame
    body: dict[str, Any]  # the fields that the body of a request would have
    n_bytes: int  # size of the message


_CALLS = {call.frame: call for call in CALLS if call.frame is not None}
# op -> the fields of its body, and all its fields.
_BODY = {op: tuple(BODIES[call.takes].__annotations__) for op, call in _CALLS.items()}
_FIELDS = {
    op: {
        *("id", "op", *_BODY[op]),
        *(_PARAMETERS[name] for name in (*call.query, *call.headers) if name in _PARAMETERS),
    }
    for op, call in _CALLS.items()
}


def decode_frame(
    message: Mapping[str, Any], frame_format: Format, bounds: Bounds
) -> dict[str, Any]:
    """Return the fields of the frame in a message. Raises Unreadable, TooLarge."""
    data = message.get("bytes")
    if data is None:
        if frame_format is MSGPACK:
            raise Unreadable("this stream takes MessagePack; send binary frames")
        data = message["text"].encode()
    frame = frame_format.decode(data, bounds)
    if not isinstance(frame, dict):
        raise Unreadable("a frame must be an object")
    return frame


def read_frame_id(fields: dict[str, Any]) -> FrameId:
    """Return the id of a frame, which its answer repeats. Raises Invalid."""
    given = fields.get("id")
    if type(given) is int or (type(given) is str and len(given) <= _MAX_ID_LENGTH):
        return given
    raise Invalid(f"a frame needs an id: an integer, or up to {_MAX_ID_LENGTH} characters")


def read_frame(frame_id: FrameId, fields: dict[str, Any], n_bytes: int) -> Frame:
    """Return a frame. Raises Invalid for an unknown op or field, or an invalid parameter.

    Args:
        frame_id: its id.
        fields: all its fields.
        n_bytes: size of the message.
    """
    op = fields.get("op")
    if not isinstance(op, str) or op not in _CALLS:
        raise Invalid(f"op must be one of {', '.join(_CALLS)}")
    unknown: list[SampleError] = [
        {"pointer": f"/{name}", "detail": "unknown field"}
        for name in fields
        if name not in _FIELDS[op]
    ]
    if unknown:
        raise Invalid(f"{op} takes {', '.join(sorted(_FIELDS[op]))} and nothing else", unknown)
    read_awaited(fields.get("min_sequence"))
    read_expected(fields.get("if_match"))
    body = {name: fields[name] for name in _BODY[op] if name in fields}
    return Frame(frame_id, _CALLS[op], fields, body, n_bytes)
