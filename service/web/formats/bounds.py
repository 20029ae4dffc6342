"""Counting before building: how many values a body has, before any of them is made.

A byte can become an object of a hundred: without a bound, two kilobytes of compressed empty maps
took 5 GB. Text is counted by its separators, which is an upper bound and takes a tenth of the time
of decoding; MessagePack, whose structure shows only while it is read, is counted as it is built,
but for texts, of which arrays that never end could hold any number.
Bodies so small that they cannot exceed a bound are not counted.
"""

from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.errors import TooLarge
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.repeated_names import object_of

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


# Of the body that makes a model.
SPEC_BYTES = 1 << 16
SPEC_BOUNDS = Bounds(SPEC_BYTES, SPEC_BYTES)


def bounds_of(settings: Settings) -> Bounds:
    """Return the bounds of a server's requests."""
    return Bounds(settings.request_values, max(settings.request_rows, settings.row_numbers))


def check_json(body: bytes, bounds: Bounds) -> None:
    """Raise TooLarge if JSON may have too many values, arrays or objects."""
    if len(body) > bounds.uncounted_bytes:
        containers = _count(body, b"[{")
        _check_containers(containers, bounds)
        _check_values(containers + _count(body, b",:"), bounds)


def check_lines(body: bytes, separators: bytes, bounds: Bounds) -> None:
    """Raise TooLarge if a body may have too many lines, or values between separators."""
    if len(body) > bounds.uncounted_bytes:
        lines = _count(body, b"\n\r")
        most = 2 * bounds.rows + _OTHER_CONTAINERS  # a line may end in both, or be empty
        if lines > most:
            raise TooLarge(f"a request may have at most {most} lines; send smaller batches")
        _check_values(lines + _count(body, separators), bounds)


def check_packed(body: bytes, bounds: Bounds) -> None:
    """Raise TooLarge if MessagePack may have more texts than values are allowed.

    `Counter` sees an array once it is built, and texts in arrays that never end are many by then.
    They are counted one by one only where the bytes that can begin a text are as many.
    """
    content = np.frombuffer(body, np.uint8)
    texts = 0
    for start in range(0, len(content), _CHUNK_BYTES):
        chunk = content[start : start + _CHUNK_BYTES]
        short, long = (chunk & 0xE0) == 0xA0, (chunk >= 0xD9) & (chunk <= 0xDB)
        texts += int(np.count_nonzero(short | long))
    if texts > bounds.values:
        _walk(body, bounds)


def _walk(body: bytes, bounds: Bounds) -> None:
    """Count the values of MessagePack, from its first byte on, without making any."""
    left, found, at = 1, 0, 0
    while left and at < len(body):
        kind = _KINDS[body[at]]
        left, found, at = left - 1, found + 1, at + 1
        if found > bounds.values + bounds.containers:
            _check_values(found, bounds)
        length = int.from_bytes(body[at : at + kind.width], "big") if kind.width else 1
        at += kind.width + kind.size + kind.bytes_each * length
        left += kind.values_each * length


class _Kind(NamedTuple):
    """What follows a byte of MessagePack.

    width: bytes of a length; without them the length is 1. size: bytes after that. bytes_each,
    values_each: for each of the length.
    """

    width: int = 0
    size: int = 0
    bytes_each: int = 0
    values_each: int = 0


def _kind(byte: int) -> _Kind:
    """See https://github.com/msgpack/msgpack/blob/master/spec.md."""
    if 0x80 <= byte <= 0x9F:  # a short map or array
        return _Kind(values_each=(byte & 15) * (2 if byte < 0x90 else 1))
    if 0xA0 <= byte <= 0xBF:  # a short text
        return _Kind(size=byte & 31)
    for first, extra in ((0xC4, 0), (0xC7, 1), (0xD9, 0)):  # bytes, extensions, texts
        if first <= byte < first + 3:
            return _Kind(width=1 << (byte - first), size=extra, bytes_each=1)
    for first, each in ((0xDC, 1), (0xDE, 2)):  # arrays, maps
        if first <= byte < first + 2:
            return _Kind(width=2 << (byte - first), values_each=each)
    return _Kind(size=_NUMBERS.get(byte, 0))


# Of floats, integers without and with a sign, and extensions of a fixed size, with their type.
_NUMBERS = {0xCA: 4, 0xCB: 8}
_NUMBERS |= {first + k: 1 << k for first in (0xCC, 0xD0) for k in range(4)}
_NUMBERS |= {0xD4 + k: 1 + (1 << k) for k in range(5)}
_KINDS = [_kind(byte) for byte in range(256)]


class Counter:
    """Counts arrays, objects and their values while they are built, as hooks of a decoder."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._containers = self._values = 0

    def array(self, built: list[Any]) -> list[Any]:
        """Count an array. Raises TooLarge."""
        self._add(len(built))
        return built

    def map(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Count a map. Raises TooLarge, Unreadable."""
        self._add(2 * len(pairs))
        return object_of(pairs)

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
    """Count how many bytes of a body are among these, while other threads may run."""
    content = np.frombuffer(body, np.uint8)
    found = 0
    for start in range(0, len(content), _CHUNK_BYTES):
        chunk = content[start : start + _CHUNK_BYTES]
        found += sum(int(np.count_nonzero(chunk == character)) for character in characters)
    return found
