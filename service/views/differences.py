"""The difference of two versions of an array: the stretches of bytes that have changed.

Stored rows keep their places while others come and go, and a ring overwrites its oldest column, so
most bytes of an array are the same in the next version. Versions are compared as bytes, whatever
they mean, and the result is equal to the bit.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]

# The bytes that are compared, and sent, together.
_BLOCK = 256
_WORD = 8
# If a larger share of the blocks has changed, the whole array is sent.
_MOST_CHANGED = 0.75


class WrongDifference(ValueError):
    """A difference was applied to bytes that it was not made from."""


def difference(old: Bytes | None, new: Bytes) -> list[Any] | None:
    """Return, as plain data, how one array's bytes become another's; None if they are equal.

    old: None without any. [bytes] are all bytes of the new one; [length, starts, stops, bytes] its
    length, and the stretches that are not those of the old one.
    """
    if old is None:
        return [new.tobytes()]
    common = min(len(old), len(new)) // _BLOCK * _BLOCK
    words = [array[:common].view(np.uint64).reshape(-1, _BLOCK // _WORD) for array in (old, new)]
    changed = (words[0] != words[1]).any(axis=1)
    if changed.sum() > _MOST_CHANGED * len(changed):
        return [new.tobytes()]
    edges = np.flatnonzero(np.diff(changed, prepend=False, append=False)) * _BLOCK
    starts, stops = edges[0::2].tolist(), edges[1::2].tolist()
    if not np.array_equal(old[common:], new[common:]):
        starts.append(common)
        stops.append(len(new))
    if not starts:
        return None
    stretches = [new[start:stop] for start, stop in zip(starts, stops, strict=True)]
    return [len(new), starts, stops, np.concatenate(stretches).tobytes()]


def changed(old: Bytes | None, plain: Any) -> Bytes:
    """Apply a difference to bytes; return the new bytes. Raises WrongDifference."""
    match plain:
        case [bytes() as whole]:
            return np.frombuffer(whole, np.uint8).copy()
        case [int() as length, list() as starts, list() as stops, bytes() as data] if length >= 0:
            return _patched(old, length, starts, stops, data)
    raise WrongDifference("it is no difference of arrays")


def _patched(
    old: Bytes | None, length: int, starts: list[Any], stops: list[Any], data: bytes
) -> Bytes:
    if old is None or len(starts) != len(stops) or length > len(old) + len(data):
        raise WrongDifference("it is not one of these bytes")
    new = np.zeros(length, np.uint8)
    kept = min(length, len(old))
    new[:kept] = old[:kept]
    taken = 0
    for start, stop in zip(starts, stops, strict=True):
        if not 0 <= start <= stop <= length:
            raise WrongDifference("a stretch lies outside of the array")
        part = np.frombuffer(data, np.uint8)[taken : taken + stop - start]
        if len(part) != stop - start:
            raise WrongDifference("its stretches are longer than its bytes")
        new[start:stop] = part
        taken += stop - start
    return new
