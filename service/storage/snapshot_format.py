"""A model's state as bytes, which show whether they are complete and undamaged.

The format is 8 bytes of magic and version, the SHA-256 of the rest, and the rest: an npz archive
(no pickles) of the state's arrays and, as `plain`, the JSON of everything else. A file is written
under another name, fsynced and renamed, so a file with the right name was written completely; the
digest reveals what happened to it since.
"""

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.storage.directories import sync_directory

_MAGIC = b"WOLFSN\x00\x01"
_DIGEST_BYTES = 32


class DamagedSnapshot(Exception):
    """A snapshot is not what was written, or cannot be read.

    reason: completes a sentence that begins with the snapshot's name.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} {reason}")
        self.reason = reason


class UnreadableSnapshot(DamagedSnapshot):
    """A snapshot's bytes cannot be had now; what they are is not known."""


class State(NamedTuple):
    """A model's state: plain data, `sequence` among it, and named arrays."""

    plain: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def write_state(path: Path, state: State) -> None:
    """Write one file: complete and fsynced under `path`, or not at all. Raises OSError."""
    archive = io.BytesIO()
    plain = np.frombuffer(json.dumps(state.plain).encode(), np.uint8)
    np.savez(archive, allow_pickle=False, plain=plain, **state.arrays)
    content = archive.getbuffer()
    write_content(path, _MAGIC, hashlib.sha256(content).digest(), content)


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
    """The bytes of one file. Raises UnreadableSnapshot."""
    try:
        return path.read_bytes()
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise UnreadableSnapshot(path.name, reason) from error


def read_plain(path: Path) -> dict[str, Any]:
    """The plain part of one file. Neither are its arrays read, nor is the checksum verified.

    Raises DamagedSnapshot.
    """
    try:
        with zipfile.ZipFile(path) as archive, archive.open("plain.npy") as member:
            encoded = np.lib.format.read_array(member, allow_pickle=False)
        plain: dict[str, Any] = json.loads(encoded.tobytes())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DamagedSnapshot(path.name, f"cannot be read: {error}") from error
    return plain


def decode_state(content: bytes, name: str) -> State:
    """The state in the bytes of a snapshot, which messages call `name`. Raises DamagedSnapshot."""
    head, body = content[: len(_MAGIC) + _DIGEST_BYTES], content[len(_MAGIC) + _DIGEST_BYTES :]
    if not head.startswith(_MAGIC):
        raise DamagedSnapshot(name, "is not a snapshot of this version")
    if hashlib.sha256(body).digest() != head[len(_MAGIC) :]:
        raise DamagedSnapshot(name, "does not match its checksum")
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        plain = json.loads(arrays.pop("plain").tobytes())
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise DamagedSnapshot(name, f"cannot be decoded: {error}") from error
    return State(plain, arrays)
