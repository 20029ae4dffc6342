"""Journals for tests: entries, a data directory that is opened, and a disk that is full."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.service.storage.writing import log_of
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.service.storage.entries import Entry, EntryKind
from wolfstream.service.storage.interfaces import Storage


def entry(
    model: int,
    sequence: int,
    samples: int = 1,
    block: int | None = None,
    head: HeadName = "working_set",
    record: bytes = b"record",
) -> Entry:
    kind: EntryKind = "samples" if samples else "fit"
    return Entry(model, sequence, samples, block or sequence, head, 1, record, kind)


def sequences(storage: Storage, model: int, after: int = 0) -> list[list[int]]:
    """Sequences of a model's entries, block by block."""
    return [[item.sequence for item in block] for block in log_of(storage, model).blocks(after)]


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Storage]:
    storage = open_storage(path.parent)
    try:
        yield storage
    finally:
        storage.close()


def pragma(storage: Storage, text: str) -> int:
    row = storage.journal._file.db.execute(f"PRAGMA {text}").fetchone()
    return int(row[0]) if row else 0


def fill_disk(storage: Storage) -> None:
    """From now on the database may grow by two pages only."""
    pragma(storage, f"max_page_count = {pragma(storage, 'page_count') + 2}")
