"""Read an untrusted npz archive without taking more memory than its size.

`numpy.load` inflates compressed entries, and allocates whatever shape a header claims. Here nothing
is inflated: `numpy.savez` stores arrays uncompressed, so each must have exactly the bytes that its
header says, and all together no more than the archive.
"""

import io
import math
import struct
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The signature of an entry in a zip's directory. Entries are counted before zipfile reads them,
# because each takes memory before it can be checked.
_ENTRY = b"PK\x01\x02"
_MAX_ENTRIES = 4096
_SUFFIX = ".npy"
_READ_HEADER = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
# numpy parses headers with Python's own parser, which before CPython 3.11.8 raises SystemError if
# garbage collection lets another thread into it (github.com/python/cpython/issues/106905).
_PARSING = threading.Lock()

# What zipfile and numpy raise for damaged bytes.
_DAMAGE_ERRORS = (
    zipfile.BadZipFile,
    struct.error,
    ValueError,
    EOFError,
    OverflowError,
    RuntimeError,  # and its subclass NotImplementedError
)


class UnreadableArchive(Exception):
    """An archive is damaged, or holds anything but arrays of numbers; the message says what."""


def read_arrays(archive: bytes) -> dict[str, NDArray[Any]]:
    """Return copies of all arrays in an archive, by name. Raises UnreadableArchive.

    Args:
        archive: the bytes; other bytes may precede them, as zipfile allows.
    """
    if archive.count(_ENTRY) > _MAX_ENTRIES:
        raise UnreadableArchive(f"it has more than {_MAX_ENTRIES} arrays")
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            entries = opened.infolist()
            _check_entries(entries, len(archive))
            return {
                entry.filename.removesuffix(_SUFFIX): _array(entry.filename, opened.read(entry))
                for entry in entries
            }
    except _DAMAGE_ERRORS as error:
        raise UnreadableArchive(str(error)) from None


def read_array(path: Path, name: str) -> NDArray[Any]:
    """Return one array of an archive that this server wrote, without reading the others.

    Raises UnreadableArchive, OSError.
    """
    try:
        with zipfile.ZipFile(path) as opened:
            return _array(name, opened.read(f"{name}{_SUFFIX}"))
    except (*_DAMAGE_ERRORS, KeyError) as error:
        raise UnreadableArchive(str(error)) from None


def _check_entries(entries: list[zipfile.ZipInfo], max_bytes: int) -> None:
    """Raise UnreadableArchive unless all entries are uncompressed arrays within a size."""
    names = {entry.filename for entry in entries}
    if len(names) < len(entries):
        raise UnreadableArchive("it has two arrays of one name")
    if not all(name.endswith(_SUFFIX) for name in names):
        raise UnreadableArchive("it has entries that are no arrays")
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise UnreadableArchive(f"{entry.filename[:80]} is compressed")
    if sum(entry.file_size for entry in entries) > max_bytes:
        raise UnreadableArchive("its arrays claim more bytes than it has")


def _array(name: str, content: bytes) -> NDArray[Any]:
    """Return a copy of the array in an entry, because compiled code expects writable arrays."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version not in _READ_HEADER:
        raise UnreadableArchive(f"{name[:80]} has a header of another version")
    with _PARSING:
        shape, fortran_order, dtype = _READ_HEADER[version](file)
    if dtype.kind not in "biuf" or not dtype.isnative:
        raise UnreadableArchive(f"{name[:80]} is not of numbers as this machine has them")
    n_bytes = len(content) - file.tell()
    if any(length < 0 for length in shape) or math.prod(shape) * dtype.itemsize != n_bytes:
        raise UnreadableArchive(f"{name[:80]} has {n_bytes} bytes, which its shape contradicts")
    flat = np.frombuffer(content, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if fortran_order else "C").copy(order="A")
