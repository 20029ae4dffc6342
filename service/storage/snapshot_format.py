"""A model's state as bytes, which show whether they are complete and undamaged.

The format is 8 bytes of magic and version, the SHA-256 of the rest, and the rest: an npz archive
(no pickles) of the state's arrays and, as `plain`, the JSON of everything else. A file is written
under another name, fsynced and renamed, so a file with the right name was written completely; the
digest reveals what happened to it since. It does not reveal who wrote it: `storage.archive` reads
archives that anybody made.
"""

import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.storage.archive import UnreadableArchive, read_array, read_arrays
from wolfstream.service.storage.directories import is_plain_file, sync_directory

# A reader of a version reads those before it, too.
VERSION = 1
_MAGIC, _VERSION = b"WOLFSN\x00", bytes([VERSION])
_DIGEST_BYTES = 32


class DamagedSnapshot(Exception):
    """A snapshot is not what was written, or cannot be read.

    reason: completes a sentence that begins with the snapshot's name.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} {reason}")
        self.reason = reason


class UnreadableSnapshot(DamagedSnapshot):
    """A snapshot's bytes cannot be read at present; they may be whole."""


class State(NamedTuple):
    """A model's state: plain data, `sequence` among it, and named arrays."""

    plain: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def encode_state(state: State) -> tuple[bytes, memoryview]:
    """Return the bytes of a snapshot, in two parts that follow each other."""
    archive = io.BytesIO()
    plain = np.frombuffer(json.dumps(state.plain).encode(), np.uint8)
    np.savez(archive, allow_pickle=False, plain=plain, **state.arrays)
    content = archive.getbuffer()
    return _MAGIC + _VERSION + hashlib.sha256(content).digest(), content


def write_state(path: Path, state: State) -> None:
    """Write one file: complete and fsynced under `path`, or not at all. Raises OSError."""
    write_content(path, *encode_state(state))


def write_content(path: Path, *parts: bytes | memoryview) -> None:
    """Write the bytes of one file: complete and fsynced, or not at all. Raises OSError."""
    partial = path.with_suffix(".partial")
    try:
        with partial.open("wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    except BaseException:
        partial.unlink(missing_ok=True)  # on a full disk the journal needs the room
        raise
    sync_directory(path.parent)


def read_state(path: Path) -> State:
    """Read one file. Raises DamagedSnapshot."""
    return decode_state(read_content(path), path.name)


def read_content(path: Path) -> bytes:
    """Return the bytes of one file. Raises UnreadableSnapshot."""
    try:
        if not is_plain_file(path):
            raise OSError("it is not a file")
        return path.read_bytes()
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise UnreadableSnapshot(path.name, reason) from error


def read_plain(path: Path) -> dict[str, Any]:
    """Return the plain part of one file. Neither are its arrays read, nor is the checksum verified.

    Raises DamagedSnapshot.
    """
    try:
        if not is_plain_file(path):
            raise OSError("it is not a file")
        plain: dict[str, Any] = json.loads(read_array(path, "plain").tobytes())
    except (OSError, ValueError, UnreadableArchive) as error:
        raise DamagedSnapshot(path.name, f"cannot be read: {error}") from error
    return plain


def decode_state(content: bytes, name: str, most_plain_bytes: int | None = None) -> State:
    """Return the state in the bytes of a snapshot, which messages call `name`.

    most_plain_bytes: bound on its plain part, whose objects take many times its bytes; None where
    the file is this server's own. Raises DamagedSnapshot.
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
        if most_plain_bytes is not None and encoded.nbytes > most_plain_bytes:
            raise UnreadableArchive(f"its plain part has more than {most_plain_bytes} bytes")
        plain = json.loads(encoded.tobytes())
    except KeyError:
        raise DamagedSnapshot(name, "cannot be decoded: it has no plain part") from None
    except (ValueError, RecursionError, UnreadableArchive) as error:
        raise DamagedSnapshot(name, f"cannot be decoded: {error}") from error
    if not isinstance(plain, dict):
        raise DamagedSnapshot(name, "cannot be decoded: its plain part is no object")
    return State(plain, arrays)
