"""Encoders that refuse NaN and infinity, which JSON cannot have and no answer may.

Raised at a response, ValueError becomes a problem with status 500: a model that answers such
numbers is broken, and a client must not take them for a prediction.
"""

import re
from typing import Any

import msgpack
from pydantic_core import from_json, to_json

# In MessagePack: infinities, and what processors make where a number is none. No text has these
# bytes, which are not UTF-8.
_NOT_FINITE = re.compile(rb"\xcb[\x7f\xff][\xf0\xf8]\x00{6}")


def finite_json(data: Any) -> bytes:
    """Return data as JSON. Raises ValueError for a number that is not finite."""
    content = to_json(data)
    # A label may have such a word; only then is the whole read again.
    if b"NaN" in content or b"Infinity" in content:
        from_json(content, allow_inf_nan=False)
    return content


def finite_msgpack(data: Any) -> bytes:
    """Return data as MessagePack. Raises ValueError for a number that is not finite."""
    content: bytes = msgpack.packb(data)
    if _NOT_FINITE.search(content):
        raise ValueError("a number of the response is not finite")
    return content
