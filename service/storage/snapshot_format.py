"""The format of a snapshot: a model's state as bytes with a checksum.

    8 bytes of magic and version | SHA-256 of the rest, 32 bytes | npz archive, without pickles

The archive has the state's arrays and, as the array `plain`, everything else in JSON. A file is
written under another name, fsynced and renamed, so a file of the right name is complete; the
checksum reveals later damage. It does not prove who wrote the file: clients upload some, so an
archive is read as one that anybody may have made.
"""

import hashlib
import io
import json
import math
import os
import struct
import threading
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.storage.directories import is_plain_file, sync_directory

# The signature of an entry in a zip's directory. Entries are counted before zipfile reads them,
# because each takes memory before it can be checked.
_ENTRY_SIGNATURE = b"PK\x01\x02"
_MAX_ENTRIES = 4096
_SUFFIX = ".npy"
# Version of an array's header -> its reader. numpy writes others only for names of fields.
_READ_HEADER = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
# numpy parses headers with Python's own parser, which before CPython 3.11.8 raises SystemError if
# garbage collection lets another thread into it (github.com/python/cpython/issues/106905).
_HEADER_LOCK = threading.Lock()

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
    if archive.count(_ENTRY_SIGNATURE) > _MAX_ENTRIES:
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
    with _HEADER_LOCK:
        shape, fortran_order, dtype = _READ_HEADER[version](file)
    if dtype.kind not in "biuf" or not dtype.isnative:
        raise UnreadableArchive(f"{name[:80]} is not of numbers as this machine has them")
    n_bytes = len(content) - file.tell()
    if any(length < 0 for length in shape) or math.prod(shape) * dtype.itemsize != n_bytes:
        raise UnreadableArchive(f"{name[:80]} has {n_bytes} bytes, which its shape contradicts")
    flat = np.frombuffer(content, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if fortran_order else "C").copy(order="A")


# Of the format.
VERSION = 1
_MAGIC, _VERSION = b"WOLFSN\x00", bytes([VERSION])
_DIGEST_BYTES = 32


class DamagedSnapshot(Exception):
    """A snapshot differs from what was written, or cannot be read.

    Attributes:
        reason: the message without the snapshot's name; it begins with a verb.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} {reason}")
        self.reason = reason


class UnreadableSnapshot(DamagedSnapshot):
    """A snapshot cannot be read at present; its bytes may be undamaged."""


class State(NamedTuple):
    """A model's saved state."""

    plain: dict[str, Any]  # what JSON can hold; it includes `sequence`
    arrays: dict[str, NDArray[Any]]


def encode_state(state: State) -> tuple[bytes, bytes]:
    """Return the bytes of a snapshot, in two consecutive parts."""
    archive = io.BytesIO()
    plain = np.frombuffer(json.dumps(state.plain).encode(), np.uint8)
    np.savez(archive, allow_pickle=False, plain=plain, **state.arrays)
    content = archive.getvalue()  # no copy, because nothing else refers to the buffer
    return _MAGIC + _VERSION + hashlib.sha256(content).digest(), content


def write_state(path: Path, state: State) -> None:
    """Write a snapshot's file: complete and fsynced under `path`, or not at all. Raises OSError."""
    write_content(path, *encode_state(state))


def write_content(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file from consecutive parts: complete and fsynced, or not at all. Raises OSError."""
    partial = path.with_suffix(".partial")
    try:
        with partial.open("wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    except BaseException:
        partial.unlink(missing_ok=True)  # on a full disk the journal needs the space
        raise
    sync_directory(path.parent)


def read_state(path: Path) -> State:
    """Read a snapshot's file. Raises DamagedSnapshot."""
    return decode_state(read_content(path), path.name)


def read_content(path: Path) -> bytes:
    """Return the bytes of a file. Raises UnreadableSnapshot."""
    try:
        _check_plain_file(path)
        return path.read_bytes()
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise UnreadableSnapshot(path.name, reason) from error


def read_plain(path: Path) -> dict[str, Any]:
    """Return the plain part of a snapshot's file, without reading arrays or checking the checksum.

    Raises DamagedSnapshot.
    """
    try:
        _check_plain_file(path)
        plain: dict[str, Any] = json.loads(read_array(path, "plain").tobytes())
    except (OSError, ValueError, UnreadableArchive) as error:
        raise DamagedSnapshot(path.name, f"cannot be read: {error}") from error
    return plain


def _check_plain_file(path: Path) -> None:
    """Raise OSError for a directory, or a device, whose reading might not end."""
    if not is_plain_file(path):
        raise OSError("it is not a file")


def decode_state(content: bytes, name: str, max_plain_bytes: int | None = None) -> State:
    """Return the state in the bytes of a snapshot.

    Args:
        content: the bytes.
        name: how messages refer to the snapshot.
        max_plain_bytes: bound on its plain part, because Python objects take many times the bytes
            of their JSON. None for files that this server wrote.

    Raises DamagedSnapshot.
    """
    begin = len(_MAGIC + _VERSION)
    if not content.startswith(_MAGIC):
        raise DamagedSnapshot(name, "is not a snapshot of this version")
    if content[len(_MAGIC) : begin] != _VERSION:
        raise DamagedSnapshot(name, "is not a snapshot of this version, but of another one")
    body = memoryview(content)[begin + _DIGEST_BYTES :]
    if hashlib.sha256(body).digest() != content[begin : begin + _DIGEST_BYTES]:
        raise DamagedSnapshot(name, "does not match its checksum")
    try:
        arrays = read_arrays(content)
        encoded = arrays.pop("plain")
        if max_plain_bytes is not None and encoded.nbytes > max_plain_bytes:
            raise UnreadableArchive(f"its plain part has more than {max_plain_bytes} bytes")
        plain = json.loads(encoded.tobytes())
    except KeyError:
        raise DamagedSnapshot(name, "cannot be decoded: it has no plain part") from None
    except (ValueError, RecursionError, UnreadableArchive) as error:
        raise DamagedSnapshot(name, f"cannot be decoded: {error}") from error
    if not isinstance(plain, dict):
        raise DamagedSnapshot(name, "cannot be decoded: its plain part is no object")
    return State(plain, arrays)
