"""Decodes large JSON in slices, so that other threads run in between.

The decoder lets no other thread run before it returns, which takes more than two seconds for the
texts of a large body. So a body is cut between the elements of the lists that are its members, or
of the list that it is. Each slice is completed to JSON of its own, and what it holds is joined.
Where a slice is no JSON, the whole is decoded: results and errors are always those of the decoder,
but for names that an object has twice, which `repeated_names` refuses.
"""

import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
from pydantic_core import from_json

# A slice of texts takes some ten milliseconds.
SLICE_BYTES = 1 << 18
_QUOTE, _COMMA = b'",'
_BLANK = b" \t\n\r"
# Before the elements that continue the list of the slice before. No body has this name.
_CONTINUED = secrets.token_hex(16)
_DEPTHS = np.zeros(256, np.int8)
_DEPTHS[list(b"[{")], _DEPTHS[list(b"]}")] = 1, -1


def decode(body: bytes) -> Any:
    """Return what JSON holds. Raises ValueError."""
    if len(body) >= 2 * SLICE_BYTES:
        first = body[:64].lstrip(_BLANK)[:1]
        joined = None
        if first in (b"{", b"["):
            joined = _joined(body, first == b"{")
        if joined is not None:
            return joined
    return from_json(body)


def _joined(body: bytes, is_object: bool) -> Any:
    """Decode slices and join them; return None if a slice is no JSON.

    is_object: whether the body is an object; otherwise it is a list.
    """
    opening, closing = (b'{"%s":[' % _CONTINUED.encode(), b"]}") if is_object else (b"[", b"]")
    whole: Any = None
    current = list[Any]()  # that the next slice continues
    start = 0
    for stop in _cuts(body, 2 if is_object else 1):
        content = body[start:] if stop is None else body[start:stop] + closing
        try:
            part = from_json(opening + content if start else content)
        except ValueError:
            return None
        if start:
            continued = part.pop(_CONTINUED) if is_object else part
            if not continued:  # a comma without an element
                return None
            current += continued
            if is_object:
                whole |= part
        else:
            whole = part
        if stop is not None:
            if not start or (is_object and part):
                current = part[list(part)[-1]] if is_object else part
            if type(current) is not list or not current:
                return None
            start = stop + 1
    return whole


def _cuts(body: bytes, depth: int) -> Iterator[int | None]:
    """Yield the indices of commas between the elements of lists, in steps of about a slice.

    depth: of these elements. Brackets and commas within texts do not count.

    The last is None: the end. In what is no JSON, any index may be yielded.
    """
    reached, in_text = 0, False
    start = 0
    while start < len(body):
        stop = start + SLICE_BYTES
        if body[stop - 1 : stop] == b"\\":  # it may escape the byte after it
            rest = body[stop : stop + SLICE_BYTES]
            stop += len(rest) - len(rest.lstrip(b"\\")) + 1
        chunk = body[start:stop].replace(rb"\\", b"__").replace(rb"\"", b"__")
        content = np.frombuffer(chunk, np.uint8)
        outside = ~(np.bitwise_xor.accumulate(content == _QUOTE) ^ in_text)
        depths = reached + np.cumsum(_DEPTHS[content] * outside, dtype=np.int32)
        cuts = np.flatnonzero((content == _COMMA) & (depths == depth) & outside)
        if len(cuts):
            yield start + int(cuts[-1])
        reached, in_text = int(depths[-1]), not outside[-1]
        start = stop
    yield None
