"""A check of SQLite's write-ahead file before SQLite opens it.

SQLite stops reading at the first frame with a wrong checksum, and assumes that a crash left the
rest unfinished. So damage in the middle would silently lose all later commits. A crash can leave
only one unfinished commit, because each commit is fsynced before the next begins. If more than one
follows a wrong frame, the file was damaged.

The format is section 4 of https://www.sqlite.org/fileformat2.html. Damage to the last commit cannot
be told from a commit that a crash cut short.
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
# magic number -> dtype of the words from which checksums are computed
_ORDERS = {0x377F0682: "<u4", 0x377F0683: ">u4"}
# SQLite reuses the file from its beginning, so frames of earlier generations follow the last one.
# Each generation adds 1 to the first salt; a frame's may be at most this many behind.
_GENERATIONS = 1 << 20
_MASK = np.uint64(0xFFFFFFFF)


def write_ahead_path(database: Path) -> Path:
    """Return the path of a database's write-ahead file."""
    return database.with_name(f"{database.name}-wal")


def check_write_ahead(path: Path) -> bool:
    """Return whether an unfinished commit follows the last complete one, as after a crash.

    Raises StartupError if more than one commit does, or if the header is wrong.
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
    """Return the number of commits, even unfinished, from the first wrong frame on.

    None if the header is wrong.
    """
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size:
        return 0
    magic, _, page, _, *salts, sum_0, sum_1 = _HEADER.unpack(head)
    order = _ORDERS.get(magic)
    if order is None:
        # SQLite writes frames only once the header is on disk.
        return None if file.read(1) else 0
    sums = _add_words(np.zeros(2, np.uint64), head[:24], order, _weights(3))
    if sums.tolist() != [sum_0, sum_1]:
        return None
    weights = _weights((8 + page) // 8)
    # `begun`: frames of a commit follow its predecessor; `valid`: all frames so far are right.
    commits, begun, valid = 0, False, True
    for frame_head, data in _frames(file, page):
        _, size_after_commit, *own_salts, sum_0, sum_1 = _FRAME.unpack(frame_head)
        # The second salt is a random number of each generation.
        if own_salts[1] != salts[1] and 0 < (salts[0] - own_salts[0]) % 2**32 < _GENERATIONS:
            break
        if valid:
            sums = _add_words(sums, frame_head[:8] + data, order, weights)
            valid = own_salts == salts and sums.tolist() == [sum_0, sum_1]
        if not valid:
            begun = not size_after_commit
            commits += not begun
    return commits + begun


def _frames(file: BinaryIO, page: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield (header, page) of each frame; a truncated frame is padded with zeros."""
    while head := file.read(_FRAME.size):
        yield head.ljust(_FRAME.size, b"\0"), file.read(page).ljust(page, b"\0")


def _weights(pairs: int) -> Words:
    """Return the weight of each word in the two sums, (2, 2 + 2 pairs) modulo 2^32.

    A pair of words (x, z) turns the sums (s, t) into s' = s + t + x and t' = s' + t + z. That is
    linear, so the sums after all pairs are one product of a matrix and the words. The highest power
    of the step's matrix belongs to the first pair. The first two columns weigh the sums before.
    """
    step = np.array([[1, 1], [1, 2]], np.uint64)
    power, columns = np.eye(2, dtype=np.uint64), list[Words]()
    pair = np.array([[1, 0], [1, 1]], np.uint64)
    for _ in range(pairs):
        columns.append(power @ pair & _MASK)
        power = power @ step & _MASK
    return np.hstack([power, *columns[::-1]])


def _add_words(sums: Words, data: bytes, order: str, weights: Words) -> Words:
    """Return the two sums, (2,), after adding the words of some bytes."""
    words = np.concatenate([sums, np.frombuffer(data, order).astype(np.uint64)])
    result: Words = weights @ words & _MASK
    return result
