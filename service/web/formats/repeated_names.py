"""Refuses objects that have the same name twice.

Decoders silently use the last value, while another reader of the same bytes, such as a proxy, may
have used the first one.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from wolfstream.service.errors import Unreadable

_QUOTE, _COLON = b'":'
_CHUNK_BYTES = 1 << 20
# In larger bodies, the repeated name is not searched for: that would take longer than decoding.
_SEARCHED_BYTES = 1 << 17


def check_json_names(body: bytes, decoded: Any) -> None:
    """Raise Unreadable if an object in a JSON body has the same name twice.

    Every name in the text is followed by a colon, but of two equal names in an object only one was
    decoded. So there is no repeated name if the decoded objects have as many names as there are
    colons. Only if they have fewer are the colons counted again, without those in texts.
    """
    if not _has_fewer_names(decoded, body.count(b":")):
        return
    if _has_fewer_names(decoded, _count_names(body)):
        if len(body) <= _SEARCHED_BYTES:
            json.loads(body, object_pairs_hook=build_object)
        raise Unreadable("an object has the same name twice; leave one of them out")


def build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of (name, value) pairs; a hook for decoders. Raises Unreadable."""
    built = dict(pairs)
    if len(built) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise Unreadable(f"an object has the name {twice[:40]!r} twice; leave one of them out")
    return built


def _has_fewer_names(decoded: Any, most: int) -> bool:
    """Return whether all objects in plain data have fewer than `most` names in total.

    It proceeds level by level, to count an object's names before it searches the object's arrays.
    """
    names, level = 0, [decoded]
    while level:
        names += sum(len(value) for value in level if type(value) is dict)
        if names >= most:
            return False
        level = [
            inner
            for value in level
            if type(value) is dict or type(value) is list
            for inner in (value.values() if type(value) is dict else value)
            if type(inner) is dict or type(inner) is list
        ]
    return names < most


def _count_names(body: bytes) -> int:
    """Count the colons of a JSON body outside its texts; other threads may run meanwhile."""
    names, in_text = 0, False
    for chunk in _chunks(body):
        # Remove escaped backslashes first: then each remaining backslash escapes the next byte.
        content = np.frombuffer(chunk.replace(rb"\\", b"").replace(rb"\"", b""), np.uint8)
        if len(content):
            inside = np.bitwise_xor.accumulate(content == _QUOTE) ^ in_text
            names += int(np.count_nonzero((content == _COLON) & ~inside))
            in_text = bool(inside[-1])
    return names


def _chunks(body: bytes) -> Iterator[bytes]:
    """Yield chunks that do not end in a backslash, which could escape a byte of the next chunk."""
    start = 0
    while start < len(body):
        stop = start + _CHUNK_BYTES
        if body[stop - 1 : stop] == b"\\":
            rest = body[stop:]
            stop += len(rest) - len(rest.lstrip(b"\\")) + 1
        yield body[start:stop]
        start = stop
