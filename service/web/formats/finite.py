"""Encoders that refuse NaN and infinity, which JSON does not have.

A model that predicts such numbers is broken, and a client must not take them for a prediction: the
ValueError that is raised here becomes a response with status 500.
"""

import re
from typing import Any

import msgpack
from pydantic_core import from_json, to_json

_N, _I = b"NI"
# The infinities and the usual NaNs in MessagePack. A text cannot contain these bytes: they are not
# valid UTF-8.
_NOT_FINITE = re.compile(rb"\xcb[\x7f\xff][\xf0\xf8]\x00{6}")


def finite_json(data: Any) -> bytes:
    """Return data as JSON. Raises ValueError for a number that is not finite."""
    content = to_json(data)
    # Single letters are found in a thirtieth of the time that words take, and most have neither.
    may_have = _N in content or _I in content
    # A label may contain such a word; only decoding distinguishes it from a number.
    if may_have and (b"NaN" in content or b"Infinity" in content):
        from_json(content, allow_inf_nan=False)
    return content


def finite_msgpack(data: Any) -> bytes:
    """Return data as MessagePack. Raises ValueError for a number that is not finite."""
    content: bytes = msgpack.packb(data)
    if _NOT_FINITE.search(content):
        raise ValueError("a number of the response is not finite")
    return content
