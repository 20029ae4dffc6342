"""Objects that have the same name twice, which are refused.

The decoders would keep the last of the values without a word, where another reader of the same
bytes, such as a proxy, may have seen the first.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from wolfstream.service.errors import Unreadable

_QUOTE, _COLON = b'":'
_PIECE_BYTES = 1 << 20
# In larger bodies the name is not looked for: that would take longer than the decoding did.
_SEARCHED_BYTES = 1 << 17


def check_json_names(body: bytes, decoded: Any) -> None:
    """Raise Unreadable if an object of a JSON body has a name twice.

    Each name of the text is followed by a colon, but a name that comes twice in an object was
    decoded once. Only where that does not settle it are the colons within texts left out.
    """
    if not _has_fewer_names(decoded, body.count(b":")):
        return
    if _has_fewer_names(decoded, _count_names(body)):
        if len(body) <= _SEARCHED_BYTES:
            json.loads(body, object_pairs_hook=object_of)
        raise Unreadable("an object has the same name twice; leave one of them out")


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of names and values, as a hook of a decoder. Raises Unreadable."""
    built = dict(pairs)
    if len(built) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise Unreadable(f"an object has the name {twice[:40]!r} twice; leave one of them out")
    return built


def _has_fewer_names(decoded: Any, most: int) -> bool:
    """Return whether the objects in plain data have fewer names than these.

    Level by level, so that an object around large arrays is counted without looking into them.
    """
    found, level = 0, [decoded]
    while level:
        found += sum(len(value) for value in level if type(value) is dict)
        if found >= most:
            return False
        level = [
            inner
            for value in level
            if type(value) is dict or type(value) is list
            for inner in (value.values() if type(value) is dict else value)
            if type(inner) is dict or type(inner) is list
        ]
    return found < most


def _count_names(body: bytes) -> int:
    """Count the colons of a JSON body outside its texts, while other threads may run."""
    found = within = 0
    for piece in _pieces(body):
        # First the pairs, so that a backslash that is left escapes what follows it.
        content = np.frombuffer(piece.replace(rb"\\", b"").replace(rb"\"", b""), np.uint8)
        if len(content):
            inside = np.bitwise_xor.accumulate(content == _QUOTE) ^ bool(within)
            found += int(np.count_nonzero((content == _COLON) & ~inside))
            within = int(inside[-1])
    return found


def _pieces(body: bytes) -> Iterator[bytes]:
    """Pieces that end after another byte than a backslash, which belongs to the next one."""
    start = 0
    while start < len(body):
        stop = start + _PIECE_BYTES
        if body[stop - 1 : stop] == b"\\":
            rest = body[stop:]
            stop += len(rest) - len(rest.lstrip(b"\\")) + 1
        yield body[start:stop]
        start = stop
