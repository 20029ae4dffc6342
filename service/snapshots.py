"""Snapshots: a model's state in one file that says itself whether it is whole.

A file is 8 bytes of magic and version, the SHA-256 of the rest, and the rest: an npz archive
(no pickles) of the state's arrays and, as `plain`, the JSON of everything else. It is written
under another name, fsynced and renamed, so a file with the right name was written whole; the
digest tells what happened to it since.
"""

import contextlib
import hashlib
import io
import json
import os
import shutil
import time
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"WOLFSN\x00\x01"
_DIGEST_BYTES = 32
_SUFFIX = ".snapshot"


class DamagedSnapshot(Exception):
    """The file is not what was written."""


class State(NamedTuple):
    """What `Model.state` gives and `Model.restore` takes."""

    plain: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class Snapshots:
    """The snapshot files of all models: `DIR/snapshots/<model id>/<sequence>.snapshot`.

    kept: how many of a model; the oldest ones are forgotten.
    """

    def __init__(self, directory: Path, kept: int = 4) -> None:
        self._directory = directory
        self._kept = kept

    def sequences(self, model: int) -> list[int]:
        """Sequences of the snapshots kept of a model, newest first."""
        files = self._of(model).glob(f"*{_SUFFIX}")
        return sorted((int(file.stem) for file in files if file.stem.isdecimal()), reverse=True)

    def save(self, model: int, state: State) -> None:
        """Write a snapshot durably and forget those that are too many. Raises OSError."""
        folder = self._of(model)
        folder.mkdir(parents=True, exist_ok=True)
        for partial in folder.glob("*.partial"):  # of a process that was killed
            partial.unlink(missing_ok=True)
        write_state(folder / f"{state.plain['sequence']:020d}{_SUFFIX}", state)
        for sequence in self.sequences(model)[self._kept :]:
            self.path(model, sequence).unlink(missing_ok=True)

    def load(self, model: int, sequence: int) -> State:
        """Read a snapshot. Raises DamagedSnapshot."""
        return read_state(self.path(model, sequence))

    def age(self, model: int, sequence: int) -> float:
        """Seconds since a snapshot was written, as far as the clock on the wall can tell."""
        return max(0.0, time.time() - self.path(model, sequence).stat().st_mtime)

    def set_aside(self, model: int, sequence: int) -> None:
        """Keep a damaged snapshot under a name that is not counted as one."""
        path = self.path(model, sequence)
        with contextlib.suppress(OSError):
            path.rename(path.with_suffix(".damaged"))

    def delete(self, model: int) -> None:
        """Forget all snapshots of a model."""
        shutil.rmtree(self._of(model), ignore_errors=True)

    def keep_only(self, models: set[int]) -> None:
        """Forget what a deletion that was cut short left behind."""
        for folder in self._directory.glob("*"):
            if folder.name.isdigit() and int(folder.name) not in models:
                shutil.rmtree(folder, ignore_errors=True)

    def path(self, model: int, sequence: int) -> Path:
        """Where a snapshot is, or would be."""
        return self._of(model) / f"{sequence:020d}{_SUFFIX}"

    def _of(self, model: int) -> Path:
        return self._directory / str(model)


def write_state(path: Path, state: State) -> None:
    """Write one file: whole and fsynced under `path`, or not at all. Raises OSError."""
    archive = io.BytesIO()
    plain = np.frombuffer(json.dumps(state.plain).encode(), np.uint8)
    np.savez(archive, allow_pickle=False, plain=plain, **state.arrays)
    content = archive.getbuffer()
    partial = path.with_suffix(".partial")
    try:
        with partial.open("wb") as file:
            file.write(_MAGIC + hashlib.sha256(content).digest())
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    except BaseException:
        partial.unlink(missing_ok=True)  # on a full disk the log needs the room
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_state(path: Path) -> State:
    """Read one file. Raises DamagedSnapshot, with the reason, where it is not whole."""
    return decode_state(read_content(path), path.name)


def read_content(path: Path) -> bytes:
    """The bytes of one file. Raises DamagedSnapshot."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DamagedSnapshot(f"{path.name} cannot be read: {error}") from error


def read_plain(path: Path) -> dict[str, Any]:
    """What one file says beside its arrays, which are not read; nor is the checksum looked at.

    Raises DamagedSnapshot.
    """
    try:
        with zipfile.ZipFile(path) as archive, archive.open("plain.npy") as member:
            plain = np.lib.format.read_array(member, allow_pickle=False)
        told: dict[str, Any] = json.loads(plain.tobytes())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DamagedSnapshot(f"{path.name} cannot be read: {error}") from error
    return told


def decode_state(content: bytes, name: str) -> State:
    """The state in the bytes of a file of this name. Raises DamagedSnapshot."""
    head, body = content[: len(_MAGIC) + _DIGEST_BYTES], content[len(_MAGIC) + _DIGEST_BYTES :]
    if not head.startswith(_MAGIC):
        raise DamagedSnapshot(f"{name} is not a snapshot of this version")
    if hashlib.sha256(body).digest() != head[len(_MAGIC) :]:
        raise DamagedSnapshot(f"{name} does not match its checksum")
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        plain = json.loads(arrays.pop("plain").tobytes())
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise DamagedSnapshot(f"{name} cannot be decoded: {error}") from error
    return State(plain, arrays)
