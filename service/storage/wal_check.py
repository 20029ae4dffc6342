"""A check of SQLite's write-ahead file before SQLite opens it.

SQLite stops reading at the first frame whose checksum is wrong, and takes everything after it for
what a crash left unfinished. So damage in the middle would silently lose every later commit. A
crash can leave one unfinished commit at the end, because each commit is fsynced before the next
begins: where two end after a wrong frame, the file was damaged.

The format is that of https://www.sqlite.org/fileformat2.html, section 4; damage to the last commit
cannot be distinguished from a commit that a crash cut short.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.errors import StartupError

Words = NDArray[np.uint64]

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
# The magic number's last bit is the order of the bytes in the words that are summed.
_ORDERS = {0x377F0682: "<u4", 0x377F0683: ">u4"}
# Frames of earlier generations stay where no later one has come yet. Each adds 1 to the first salt.
_GENERATIONS = 1 << 20
_MASK = np.uint64(0xFFFFFFFF)


def write_ahead_path(database: Path) -> Path:
    """Return the path of a database's write-ahead file."""
    return database.with_name(f"{database.name}-wal")


def check_write_ahead(path: Path) -> bool:
    """Return whether anything follows the last complete commit, as after a crash.

    Raises StartupError if more than one commit does, or where the header is wrong.
    """
    try:
        with path.open("rb") as file:
            after = _unfinished(file)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StartupError(f"{path} cannot be read: {error}; check its permissions") from error
    if after is None or after > 1:
        what = "its header" if after is None else "a frame before later commits"
        raise StartupError(
            f"{path} is damaged: {what} does not match its checksum. Restore the data directory "
            "from a backup (`wolfstream restore`); starting with this file would silently lose "
            "acknowledged samples"
        )
    return after > 0


def _unfinished(file: BinaryIO) -> int | None:
    """Commits, complete or begun, from the first wrong frame on; None if the header is wrong."""
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size:
        return 0
    magic, _, page, _, *salts, sum_0, sum_1 = _HEADER.unpack(head)
    order = _ORDERS.get(magic)
    if order is None:
        # Nothing is written before the header is on disk.
        return None if file.read(1) else 0
    sums = _added(np.zeros(2, np.uint64), head[:24], order, _weights(3))
    if sums.tolist() != [sum_0, sum_1]:
        return None
    weights = _weights((8 + page) // 8)
    commits, begun, whole = 0, False, True
    for frame_head, data in _frames(file, page):
        _, size_after_commit, *own_salts, sum_0, sum_1 = _FRAME.unpack(frame_head)
        # The second salt is a random number of each generation.
        if own_salts[1] != salts[1] and 0 < (salts[0] - own_salts[0]) % 2**32 < _GENERATIONS:
            break
        if whole:
            sums = _added(sums, frame_head[:8] + data, order, weights)
            whole = own_salts == salts and sums.tolist() == [sum_0, sum_1]
        if not whole:
            begun = not size_after_commit
            commits += not begun
    return commits + begun


def _frames(file: BinaryIO, page: int) -> Iterator[tuple[bytes, bytes]]:
    """The headers and pages of all frames; a frame that was cut short is filled with zeros."""
    while head := file.read(_FRAME.size):
        yield head.ljust(_FRAME.size, b"\0"), file.read(page).ljust(page, b"\0")


def _weights(pairs: int) -> Words:
    """Return the contribution of each word to the two sums, (2, 2 + 2 pairs) modulo 2^32.

    A pair (x, z) turns the sums (s, t) into s' = s + t + x and t' = s' + t + z, so the highest
    power of that matrix belongs to the first pair. The first two columns are the contribution of
    the sums themselves.
    """
    step = np.array([[1, 1], [1, 2]], np.uint64)
    power, columns = np.eye(2, dtype=np.uint64), list[Words]()
    pair = np.array([[1, 0], [1, 1]], np.uint64)
    for _ in range(pairs):
        columns.append(power @ pair & _MASK)
        power = power @ step & _MASK
    return np.hstack([power, *columns[::-1]])


def _added(sums: Words, data: bytes, order: str, weights: Words) -> Words:
    words = np.concatenate([sums, np.frombuffer(data, order).astype(np.uint64)])
    added: Words = weights @ words & _MASK
    return added
