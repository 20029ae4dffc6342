"""Encoders that refuse NaN and infinity, which JSON does not have.

A model that predicts such numbers is broken, and a client must not take them for a prediction: the
ValueError that is raised here becomes a response with status 500.

The description of a head is two thirds of an answer to a sample, and the same in all answers to a
block: it is encoded as JSON once.
"""

import re
from typing import Any

import msgpack
from pydantic_core import from_json, to_json

from wolfstream.service.model.shared_part import SharedPart

# The infinities and the usual NaNs in MessagePack. A text cannot contain these bytes: they are not
# valid UTF-8.
_NOT_FINITE = re.compile(rb"\xcb[\x7f\xff][\xf0\xf8]\x00{6}")


def finite_json(data: Any) -> bytes:
    """Return data as JSON. Raises ValueError for a number that is not finite."""
    shared = _shared_parts(data)
    if not shared:
        return _finite(data)
    own = {name: value for name, value in data.items() if name not in shared}
    members = [_finite(own)[1:-1]] if own else []
    for name, part in shared.items():
        part.json = part.json or _finite(part)
        members.append(to_json(name) + b":" + part.json)
    return b"{" + b",".join(members) + b"}"


def _shared_parts(data: Any) -> dict[str, SharedPart]:
    if type(data) is not dict:
        return {}
    return {name: value for name, value in data.items() if type(value) is SharedPart}


def _finite(data: Any) -> bytes:
    content = to_json(data)
    # A label may contain such a word; only decoding distinguishes it from a number.
    if b"NaN" in content or b"Infinity" in content:
        from_json(content, allow_inf_nan=False)
    return content


def finite_msgpack(data: Any) -> bytes:
    """Return data as MessagePack. Raises ValueError for a number that is not finite."""
    content: bytes = msgpack.packb(data)
    if _NOT_FINITE.search(content):
        raise ValueError("a number of the response is not finite")
    return content
