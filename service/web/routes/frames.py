"""Frames of the websocket stream: decoded and checked, before anything is done with them.

A frame has the fields of a call's body, those of its parameters that a stream takes, and its own:
`id` and `op`.
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

_LONGEST_ID = 128
# The fields of parameters that a stream takes, by the names that these have in a request.
_PARAMETERS = {"head": "head", "min_sequence": "min_sequence", "If-Match": "if_match"}


class Frame(NamedTuple):
    """A frame that is for a call.

    fields: all that it has. body: those of a request's body. n_bytes: of its message.
    """

    id: FrameId
    call: Call
    fields: Mapping[str, Any]
    body: dict[str, Any]
    n_bytes: int


_CALLS = {call.frame: call for call in CALLS if call.frame is not None}
# By operation: the fields of a body, and all fields.
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


def read_frame(of_frame: FrameId, fields: dict[str, Any], n_bytes: int) -> Frame:
    """Return a frame with its call, which takes no other fields than it has. Raises Invalid."""
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
    return Frame(of_frame, _CALLS[op], fields, body, n_bytes)
