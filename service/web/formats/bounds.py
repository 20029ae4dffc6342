"""Counting before building: how many values a body has, before any of them is made.

A byte can become an object of a hundred: without a bound, two kilobytes of compressed empty maps
took 5 GB. Text is counted by its separators, which is an upper bound and takes a tenth of the time
of decoding; MessagePack, whose structure shows only while it is read, is counted as it is built.
Bodies so small that they cannot exceed a bound are not counted.
"""

from typing import Any, NamedTuple

import numpy as np

from service.errors import TooLarge
from service.settings import Settings

_CHUNK_BYTES = 1 << 20
# For each row its array or object, a label's, and those of the protocol around a tensor.
_CONTAINERS_PER_ROW, _OTHER_CONTAINERS = 4, 1_000


class Bounds(NamedTuple):
    """What a body may have.

    values: numbers, texts and names, except those in raw arrays. rows: lines, or the longest array.
    """

    values: int
    rows: int

    @property
    def containers(self) -> int:
        """Arrays and objects."""
        return _CONTAINERS_PER_ROW * self.rows + _OTHER_CONTAINERS

    @property
    def uncounted_bytes(self) -> int:
        """A body of at most so many bytes is within the bounds."""
        return min(self.values, self.rows)


def bounds_of(settings: Settings) -> Bounds:
    """The bounds of a server's requests."""
    return Bounds(settings.request_values, max(settings.request_rows, settings.row_numbers))


def check_json(body: bytes, bounds: Bounds) -> None:
    """Raise TooLarge where JSON may have too many values, arrays or objects."""
    if len(body) > bounds.uncounted_bytes:
        containers = _count(body, b"[{")
        _check_containers(containers, bounds)
        _check_values(containers + _count(body, b",:"), bounds)


def check_lines(body: bytes, separators: bytes, bounds: Bounds) -> None:
    """Raise TooLarge where a body may have too many lines, or values between separators."""
    if len(body) > bounds.uncounted_bytes:
        lines = _count(body, b"\n\r")
        most = 2 * bounds.rows + _OTHER_CONTAINERS  # a line may end in both, or be empty
        if lines > most:
            raise TooLarge(f"a request may have at most {most} lines; send smaller batches")
        _check_values(lines + _count(body, separators), bounds)


class Counter:
    """Counts arrays, objects and their values while they are built, as hooks of a decoder."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._containers = self._values = 0

    def array(self, built: list[Any]) -> list[Any]:
        """Count an array. Raises TooLarge."""
        self._add(len(built))
        return built

    def map(self, built: dict[str, Any]) -> dict[str, Any]:
        """Count a map. Raises TooLarge."""
        self._add(2 * len(built))
        return built

    def _add(self, values: int) -> None:
        self._containers += 1
        self._values += values
        _check_containers(self._containers, self._bounds)
        _check_values(self._values, self._bounds)


def _check_containers(found: int, bounds: Bounds) -> None:
    if found > bounds.containers:
        raise TooLarge(
            f"a request may have at most {bounds.containers} arrays and objects; send smaller "
            "batches"
        )


def _check_values(found: int, bounds: Bounds) -> None:
    if found > bounds.values:
        raise TooLarge(
            f"a request may have at most {bounds.values} numbers, texts and names; send smaller "
            "batches, or raw arrays in MessagePack"
        )


def _count(body: bytes, characters: bytes) -> int:
    """How many bytes of a body are among these; other threads run meanwhile."""
    content = np.frombuffer(body, np.uint8)
    found = 0
    for start in range(0, len(content), _CHUNK_BYTES):
        chunk = content[start : start + _CHUNK_BYTES]
        found += sum(int(np.count_nonzero(chunk == character)) for character in characters)
    return found
