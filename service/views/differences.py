"""The difference of two versions of an array: the ranges of bytes that have changed.

Stored rows keep their slots while others come and go, and a ring buffer overwrites its oldest
column, so most bytes of an array are the same in the next version. Arrays are compared as bytes,
whatever they mean, so the result is identical to the bit.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]

# Bytes compared, and sent, at a time.
_BLOCK = 256
_WORD = 8
# If a larger share of the blocks has changed, the whole array is sent.
_MAX_CHANGED_SHARE = 0.75


class WrongDifference(ValueError):
    """A difference was applied to bytes that it was not made from."""


def difference(old: Bytes | None, new: Bytes) -> list[Any] | None:
    """Return the difference of two arrays as plain data; None if they are equal.

    Args:
        old: bytes of the earlier version; None if there is none.
        new: bytes of the later version.

    The result is [bytes] with all bytes of the new version, or [length, starts, stops, bytes] with
    its length and the ranges that differ from the old one.
    """
    if old is None:
        return [new.tobytes()]
    common = min(len(old), len(new)) // _BLOCK * _BLOCK
    words = [array[:common].view(np.uint64).reshape(-1, _BLOCK // _WORD) for array in (old, new)]
    changed = (words[0] != words[1]).any(axis=1)
    if changed.sum() > _MAX_CHANGED_SHARE * len(changed):
        return [new.tobytes()]
    edges = np.flatnonzero(np.diff(changed, prepend=False, append=False)) * _BLOCK
    starts, stops = edges[0::2].tolist(), edges[1::2].tolist()
    if not np.array_equal(old[common:], new[common:]):
        starts.append(common)
        stops.append(len(new))
    if not starts:
        return None
    ranges = [new[start:stop] for start, stop in zip(starts, stops, strict=True)]
    return [len(new), starts, stops, np.concatenate(ranges).tobytes()]


def apply_difference(old: Bytes | None, plain: Any) -> Bytes:
    """Return the new bytes, given the old ones and a difference. Raises WrongDifference."""
    match plain:
        case [bytes() as whole]:
            return np.frombuffer(whole, np.uint8).copy()
        case [int() as length, list() as starts, list() as stops, bytes() as data] if length >= 0:
            return _patch(old, length, starts, stops, data)
    raise WrongDifference("it is not a difference of arrays")


def _patch(
    old: Bytes | None, length: int, starts: list[Any], stops: list[Any], data: bytes
) -> Bytes:
    """Return the old bytes at a new length, with ranges replaced by consecutive parts of data."""
    # The bound on the length comes first: a forged one must not allocate memory.
    if old is None or len(starts) != len(stops) or length > len(old) + len(data):
        raise WrongDifference("it does not fit the present bytes")
    new = np.zeros(length, np.uint8)
    common = min(length, len(old))
    new[:common] = old[:common]
    position = 0  # in `data`
    for start, stop in zip(starts, stops, strict=True):
        if not 0 <= start <= stop <= length:
            raise WrongDifference("a range lies outside the array")
        part = np.frombuffer(data, np.uint8)[position : position + stop - start]
        if len(part) != stop - start:
            raise WrongDifference("its ranges are longer than its bytes")
        new[start:stop] = part
        position += stop - start
    return new
