"""What is checked in a body before its values are built, and in its rows before numbers are read.

One byte can become an object of a hundred bytes: without bounds, two kilobytes of compressed empty
maps took 5 GB.

In text formats, separators are counted. This gives an upper bound in a tenth of the time of
decoding. The structure of MessagePack is known only as it is read, so its arrays and maps are
counted as they are built. Its texts are counted beforehand, because an array without an end could
hold any number of them. Bodies that are too small to exceed a bound are not counted.

An object that has a name twice is refused: decoders silently use the last value, while another
reader of the same bytes, such as a proxy, may have used the first one.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.errors import InvalidSamples, TooLarge, Unreadable
from wolfstream.service.settings import Settings
from wolfstream.solver.prepare.named_rows import NamedRows, Rows, n_entries, n_rows

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

    `ValueCounter` counts an array only once it is complete; before that, an array without an end
    could already hold too many texts. The values are walked through only if enough bytes could each
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


class ValueCounter:
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


def check_size(body: Any, settings: Settings) -> None:
    """Raise TooLarge for too many rows in `x`, InvalidSamples for a row with too many numbers.

    A body without a valid `x` passes; it is refused when its numbers are read.
    """
    _check(*_size(body.get("x") if isinstance(body, dict) else None), settings)


def check_rows(rows: Rows, settings: Settings) -> None:
    """Check rows like `check_size`, for formats whose size is known only after reading them."""
    if isinstance(rows, NamedRows):
        _check(n_rows(rows), rows.lengths.tolist(), settings)
    else:
        _check(n_rows(rows), [n_entries(rows) // n_rows(rows)], settings)


def check_ids(body: Any, settings: Settings) -> None:
    """Raise TooLarge if there are labels for too many ids."""
    ids = body.get("ids") if isinstance(body, dict) else None
    if isinstance(ids, list):
        _check(len(ids), (), settings)


def _check(rows: int, widths: Sequence[int], settings: Settings) -> None:
    if rows > settings.request_rows:
        raise TooLarge(
            f"a request may have at most {settings.request_rows} rows, this one has {rows}; "
            "send smaller batches"
        )
    most = settings.row_numbers
    if max(widths, default=0) > most:
        i, width = next(pair for pair in enumerate(widths) if pair[1] > most)
        detail = f"has {width} numbers, a row may have at most {most}"
        raise InvalidSamples("a row is too long", [{"row": i, "pointer": "/x", "detail": detail}])


def _size(x: Any) -> tuple[int, Sequence[int]]:
    """Return the number of rows, and the numbers in each row; a raw array's rows count once."""
    if isinstance(x, dict):
        match x.get("shape"):
            case [int(rows), int(width)]:
                return rows, [width]
            case [int(width)]:
                return 1, [width]
        return 1, [len(x)]
    if not isinstance(x, list):
        return 0, []
    if x and isinstance(x[0], (list, dict)):
        return len(x), [len(row) if isinstance(row, (list, dict)) else 0 for row in x]
    return 1, [len(x)]
