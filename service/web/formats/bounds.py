"""Bounds on the number of values in a body, checked before the values are built.

One byte can become an object of a hundred bytes: without bounds, two kilobytes of compressed empty
maps took 5 GB.

In text formats, separators are counted. This gives an upper bound in a tenth of the time of
decoding. The structure of MessagePack is known only as it is read, so its arrays and maps are
counted as they are built. Its texts are counted beforehand, because an array without an end could
hold any number of them. Bodies that are too small to exceed a bound are not counted.
"""

from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.errors import TooLarge
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.repeated_names import build_object

_CHUNK_BYTES = 1 << 20
# A row is an array or object, its label may be another, and a tensor has some around its rows.
_CONTAINERS_PER_ROW, _OTHER_CONTAINERS = 4, 1_000


class Bounds(NamedTuple):
    """Maximum numbers of the parts of a body."""

    values: int  # numbers, texts and names, without those in raw arrays
    rows: int  # lines, or the length of the longest array
    n_bytes: int = 64 << 20  # decompressed
    columns: int = 10_000  # of a table

    @property
    def containers(self) -> int:
        """Maximum number of arrays and objects."""
        return _CONTAINERS_PER_ROW * self.rows + _OTHER_CONTAINERS

    @property
    def uncounted_bytes(self) -> int:
        """Size up to which any body is within the bounds."""
        return min(self.values, self.rows)


# The bounds on the spec of a new model.
SPEC_BYTES = 1 << 16
SPEC_BOUNDS = Bounds(SPEC_BYTES, SPEC_BYTES)


def bounds_of(settings: Settings) -> Bounds:
    """Return the bounds on the requests to a server."""
    rows = max(settings.request_rows, settings.row_numbers)
    return Bounds(settings.request_values, rows, settings.body_bytes, settings.row_numbers)


def check_json(body: bytes, bounds: Bounds) -> None:
    """Raise TooLarge if JSON may have too many values, arrays or objects."""
    if len(body) > bounds.uncounted_bytes:
        containers = _count(body, b"[{")
        _check_containers(containers, bounds)
        _check_values(containers + _count(body, b",:"), bounds)


def check_lines(body: bytes, separators: bytes, bounds: Bounds) -> None:
    """Raise TooLarge if a body may have too many lines, or too many separated values."""
    if len(body) > bounds.uncounted_bytes:
        lines = _count(body, b"\n\r")
        most = 2 * bounds.rows + _OTHER_CONTAINERS  # a line may end in \r\n, or be empty
        if lines > most:
            raise TooLarge(f"a request may have at most {most} lines; send smaller batches")
        _check_values(lines + _count(body, separators), bounds)


def check_msgpack(body: bytes, bounds: Bounds) -> None:
    """Raise TooLarge if MessagePack has more texts than values are allowed.

    `Counter` counts an array only once it is complete; before that, an array without an end could
    already hold too many texts. The values are walked through only if enough bytes could each
    begin a text.
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
    """Count the values of MessagePack without building any. Raises TooLarge."""
    left, values, offset = 1, 0, 0
    while left and offset < len(body):
        layout = _LAYOUTS[body[offset]]
        left, values, offset = left - 1, values + 1, offset + 1
        if values > bounds.values + bounds.containers:
            _check_values(values, bounds)
        n_items = int.from_bytes(body[offset : offset + layout.width], "big") if layout.width else 1
        offset += layout.width + layout.size + layout.bytes_each * n_items
        left += layout.values_each * n_items


class _Layout(NamedTuple):
    """The bytes after the first byte of a value in MessagePack, in this order."""

    width: int = 0  # bytes of the big-endian number of items; 0 for a single item
    size: int = 0  # other bytes
    bytes_each: int = 0  # bytes of each item
    values_each: int = 0  # values in each item


def _layout(first_byte: int) -> _Layout:
    """See https://github.com/msgpack/msgpack/blob/master/spec.md."""
    if 0x80 <= first_byte <= 0x9F:  # a short map or array
        return _Layout(values_each=(first_byte & 15) * (2 if first_byte < 0x90 else 1))
    if 0xA0 <= first_byte <= 0xBF:  # a short text
        return _Layout(size=first_byte & 31)
    for lowest, extra in ((0xC4, 0), (0xC7, 1), (0xD9, 0)):  # bytes, extensions, texts
        if lowest <= first_byte < lowest + 3:
            return _Layout(width=1 << (first_byte - lowest), size=extra, bytes_each=1)
    for lowest, each in ((0xDC, 1), (0xDE, 2)):  # arrays, maps
        if lowest <= first_byte < lowest + 2:
            return _Layout(width=2 << (first_byte - lowest), values_each=each)
    return _Layout(size=_FIXED_SIZES.get(first_byte, 0))


# First byte -> number of bytes that follow it: floats; unsigned and signed integers; extensions of
# fixed sizes, including the byte of their type.
_FIXED_SIZES = {0xCA: 4, 0xCB: 8}
_FIXED_SIZES |= {first + k: 1 << k for first in (0xCC, 0xD0) for k in range(4)}
_FIXED_SIZES |= {0xD4 + k: 1 + (1 << k) for k in range(5)}
_LAYOUTS = [_layout(first_byte) for first_byte in range(256)]


class Counter:
    """Counts arrays, maps and their values; its methods are a decoder's hooks."""

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
        return build_object(pairs)

    def _add(self, values: int) -> None:
        self._containers += 1
        self._values += values
        _check_containers(self._containers, self._bounds)
        _check_values(self._values, self._bounds)


def _check_containers(containers: int, bounds: Bounds) -> None:
    if containers > bounds.containers:
        raise TooLarge(
            f"a request may have at most {bounds.containers} arrays and objects; send smaller "
            "batches"
        )


def _check_values(values: int, bounds: Bounds) -> None:
    if values > bounds.values:
        raise TooLarge(
            f"a request may have at most {bounds.values} numbers, texts and names; send smaller "
            "batches, or raw arrays in MessagePack"
        )


def _count(body: bytes, characters: bytes) -> int:
    """Return how many bytes of a body are among some characters.

    It counts chunk by chunk with numpy, so that other threads can run meanwhile.
    """
    content = np.frombuffer(body, np.uint8)
    total = 0
    for start in range(0, len(content), _CHUNK_BYTES):
        chunk = content[start : start + _CHUNK_BYTES]
        total += sum(int(np.count_nonzero(chunk == character)) for character in characters)
    return total
