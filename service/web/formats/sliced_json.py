"""Decodes large JSON in slices, so that other threads run in between.

The decoder lets no other thread run before it returns, which takes seconds for the texts or objects
of a large body. So a body is cut at commas between elements of lists or members of objects, at any
depth. Each slice is completed to JSON of its own, and what it holds is joined. Where a slice is no
JSON, the body is none, and its error is that of the decoder, which is found in that slice. Results
are those of the decoder, but for names that an object has twice, which `bounds` refuses.
"""

import re
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

# A slice of texts takes some ten milliseconds.
SLICE_BYTES = 1 << 18
_QUOTE, _COMMA = b'",'
_BLANK = b" \t\n\r"
_LIST, _OBJECT = b"[{"
# The member that continues the object of the slice before. No body has this name.
_CONTINUED = secrets.token_hex(16)
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1
# The decoder refuses what is nested more deeply than 200 containers.
_MOST_DEPTH = 250
_POSITION = re.compile(r"line (\d+) column (\d+)$")


def decode(body: bytes) -> Any:
    """Return what JSON holds. Raises ValueError."""
    if len(body) < 2 * SLICE_BYTES:
        return from_json(body)
    whole: Any = None
    kinds, containers = b"", list[Any]()  # that the slice continues, outermost first
    start = 0
    for stop, kinds_after in _cuts(body):
        opening, content = _opening(kinds), body[start:stop]
        try:
            part = from_json(opening + content + _closing(kinds_after))
            is_empty = stop is not None and content.rstrip(_BLANK).endswith((b"[", b"{"))
        except ValueError:
            is_empty = True
        if is_empty:  # of what comes before a comma
            return _failed(body, start, stop, opening)
        if start:
            _join(containers, part)
        else:
            whole = part
        if stop is not None:
            kinds, containers, start = kinds_after, _open(whole, kinds_after), stop + 1
    return whole


def _opening(kinds: bytes) -> bytes:
    """Return the beginning of containers in one another, the innermost with one element."""
    named = b'{"%s":' % _CONTINUED.encode()
    begun = b"".join(b"[" if kind == _LIST else named for kind in kinds)
    return begun + b"0," if begun else b""


def _closing(kinds: bytes) -> bytes:
    """Return the end of containers in one another."""
    return b"".join(b"]" if kind == _LIST else b"}" for kind in reversed(kinds))


def _join(containers: Sequence[Any], part: Any) -> None:
    """Add what a slice holds to the containers that it continues."""
    for container in containers:
        if type(container) is list:
            container += part[1:]
            part = part[0]
        else:
            continued = part.pop(_CONTINUED)
            container |= part
            part = continued


def _open(whole: Any, kinds: bytes) -> list[Any]:
    """Return the containers of these kinds that are the last ones in one another.

    If an object has a name twice, its last value may be another one. Then the rest of the body goes
    into new containers: it is only read to find errors, because the body will be refused.
    """
    containers, last = list[Any](), whole
    for kind in kinds:
        container: Any = [] if kind == _LIST else {}
        if type(last) is type(container):
            container = last
        containers.append(container)
        last = next(reversed(container if kind == _LIST else container.values()), None)
    return containers


def _failed(body: bytes, start: int, stop: int | None, opening: bytes) -> Any:
    """Raise the decoder's ValueError for a body, given the slice that is no JSON.

    The slice is decoded without its end, but with the comma after it. Should this be the beginning
    of JSON all the same, the body is decoded at once.
    """
    try:
        from_json(opening + body[start : None if stop is None else stop + 1])
    except ValueError as error:
        text = str(error)
        position = _POSITION.search(text)
        if position is not None and (stop is None or not text.startswith("EOF")):
            line, column = map(int, position.groups())
            if line == 1:
                column += start - body.rfind(b"\n", 0, start) - 1 - len(opening)
            line += body.count(b"\n", 0, start)
            moved = f"{text[: position.start()]}line {line} column {column}"
            raise ValueError(moved) from None
    return from_json(body)


def _cuts(body: bytes) -> Iterator[tuple[int | None, bytes]]:
    """Yield the indices of commas in containers, in steps of about a slice, and the kinds of these.

    Brackets and commas within texts do not count. The last index is None: the end. In what is no
    JSON, any index may be yielded.
    """
    kinds, in_text = b"", False
    start = 0
    while start < len(body):
        stop = start + SLICE_BYTES
        if body[stop - 1 : stop] == b"\\":  # it may escape the byte after it
            rest = body[stop : stop + SLICE_BYTES]
            stop += len(rest) - len(rest.lstrip(b"\\")) + 1
        chunk = body[start:stop].replace(rb"\\", b"__").replace(rb"\"", b"__")
        content = np.frombuffer(chunk, np.uint8)
        outside = ~(np.bitwise_xor.accumulate(content == _QUOTE) ^ in_text)
        steps = _STEPS[content] * outside
        depths = len(kinds) + np.cumsum(steps, dtype=np.int32)
        if depths.min() < 0 or depths.max() > _MOST_DEPTH:
            break  # the decoder refuses the body there
        cuts = np.flatnonzero((content == _COMMA) & (depths > 0) & outside)
        if len(cuts):
            before = slice(0, int(cuts[-1]) + 1)
            yield start + int(cuts[-1]), _kinds(kinds, content[before], steps[before], depths)
        kinds, in_text = _kinds(kinds, content, steps, depths), not outside[-1]
        start = stop
    yield None, b""


def _kinds(
    before: bytes, content: NDArray[np.uint8], steps: NDArray[np.int8], depths: NDArray[np.int32]
) -> bytes:
    """Return the kinds of the containers that are open after some bytes, outermost first.

    Args:
        before: the kinds of those that were open before.
        content: (n,) bytes.
        steps: (n,) by how much each changes the depth.
        depths: after each of at least n bytes.
    """
    depths = depths[: len(content)]
    opened = np.flatnonzero(steps > 0)
    last = np.zeros(_MOST_DEPTH + 1, np.uint8)
    last[depths[opened]] = content[opened]  # the last one at each depth counts
    kept = min(len(before), int(depths.min()))
    return before[:kept] + last[kept + 1 : int(depths[-1]) + 1].tobytes()
