"""The log as it is on disk, read without the code that wrote it."""

import hashlib
import json
import sqlite3
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import numpy as np

# A sample's number is the first value of its row, in these units.
UNIT = 2.0**-20
_MARK = 0xC1


class LogRow(NamedTuple):
    """A row of the table, its record without the seal."""

    model: int
    sequence: int
    place: int
    kind: str
    time: int
    samples: int
    block: int
    head: str
    threads: int
    record: bytes

    @property
    def plain(self) -> Any:
        """The record of a creation or a rollback."""
        return json.loads(self.record)


def read_log(database: sqlite3.Connection) -> list[LogRow]:
    """Return all rows in order. Raises AssertionError for a broken seal."""
    rows = database.execute("SELECT * FROM log ORDER BY model, sequence, place").fetchall()
    return [_unsealed(row) for row in rows]


def _unsealed(row: tuple[Any, ...]) -> LogRow:
    *columns, sealed = row
    digest = hashlib.blake2b(repr(tuple(columns)).encode(), digest_size=8)
    digest.update(sealed[9:])
    assert sealed[0] == _MARK, f"a row has no seal: {row}"
    assert sealed[1:9] == digest.digest(), f"a row does not match its checksum: {row}"
    return LogRow._make([*columns, sealed[9:]])


def numbers_of(row: LogRow) -> list[int]:
    """Return the numbers of the samples in a row."""
    record = msgpack.unpackb(row.record)[0] if row.kind == "labels" else row.record
    shape, numbers, _ = msgpack.unpackb(record)
    X = np.frombuffer(numbers, "<f8").reshape(shape)
    return [round(value / UNIT) for value in X[:, 0].tolist()]


def predicted_in(row: LogRow) -> list[str]:
    """Return the ids of the rows in a prediction."""
    ids: list[str] = msgpack.unpackb(row.record)[2]
    return ids


def waiting_in(folder: Path, model: int) -> set[str]:
    """Return the ids of the rows that wait in any kept state of a model."""
    there = [*folder.glob(f"{model}/*.snapshot"), *folder.glob(f"{model}/*.pinned")]
    return {row_id for path in there for row_id in _waiting(path, _identity(path))}


@lru_cache(maxsize=256)
def _waiting(path: Path, _identity: tuple[int, int]) -> frozenset[str]:
    with zipfile.ZipFile(path) as archive:
        if "pending.npy" not in archive.namelist():
            return frozenset()
        with archive.open("pending.npy") as file:
            _, requests, _ = msgpack.unpackb(np.load(file).tobytes())
    return frozenset(row_id for record, _ in requests for row_id in msgpack.unpackb(record)[2])


def labelled_in(row: LogRow) -> list[str]:
    """Return the ids of the predicted rows whose labels a row brought."""
    ids: list[str] = msgpack.unpackb(row.record)[2]
    return ids


def key_in(row: LogRow) -> bytes:
    """Return the key of a request."""
    return row.record[1 : 1 + row.record[0]]


class SnapshotFile(NamedTuple):
    """What a snapshot's file says of itself. sequence: that of its name."""

    model: int
    sequence: int
    plain: dict[str, Any]


def read_snapshots(folder: Path) -> list[SnapshotFile]:
    """Return all snapshots under the numbers of models."""
    return [
        SnapshotFile(int(path.parent.name), int(path.stem), _plain(path, _identity(path)))
        for path in sorted(folder.glob("[0-9]*/*.snapshot"))
        if path.parent.name.isdecimal()
    ]


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns


@lru_cache(maxsize=256)
def _plain(path: Path, _identity: tuple[int, int]) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive, archive.open("plain.npy") as file:
        content: dict[str, Any] = json.loads(np.load(file).tobytes())
    return content


def is_pinned(folder: Path, model: int, name: str) -> bool:
    """Return whether the state of a name is kept, and has the digest with which that begins."""
    path, digest = folder / str(model) / f"{name}.pinned", name.partition("-")[0]
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest().startswith(digest)
