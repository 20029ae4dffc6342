"""Copies a fleet's models into a data directory, as a backup or for a single server.

    snapshots are copied -> the log is read to its end -> rows are written

The models may learn meanwhile; each is copied as it was when its log was read. Those that follow
another one are copied after it, without what they have learned or become since. Times are those of
the fleet, so that a backup can be restored to one of them.
"""

import json
import os
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.keys import ApiKeys
from wolfstream.service.fleet.commit_messages import LogRow, read_rollback
from wolfstream.service.fleet.importing import Moved, MovingError
from wolfstream.service.fleet.jetstream_log import JetStreamLog
from wolfstream.service.fleet.log_index import ENTRIES, WITH_SAMPLES, KnownKey
from wolfstream.service.fleet.opening import Fleet
from wolfstream.service.storage.backup import finish
from wolfstream.service.storage.data_directory import (
    high_water_path,
    journal_path,
    open_storage,
    owned,
    snapshots_path,
)
from wolfstream.service.storage.entries import CatalogueEntry, Rollback, now
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.log import LogGap
from wolfstream.service.storage.reach import Reach, check_empty, reaches_of
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.snapshot_format import DamagedSnapshot
from wolfstream.service.storage.sqlite_catalogue import SqliteCatalogue
from wolfstream.service.storage.sqlite_file import SqliteFile
from wolfstream.service.storage.sqlite_rows import LATER, SAMPLES, Row, answer_row, key_row, sealed
from wolfstream.service.storage.term import Term

# How often a model is read again because its leader purged its log meanwhile.
_ATTEMPTS = 3
# The number of rows that one statement writes.
_ROWS = 256


def export_models(fleet: Fleet, data: Path) -> Iterator[Moved]:
    """Copy all models of a fleet into a data directory; yield each one that exists there.

    data: must not exist, or be empty. Raises MovingError, StartupError, StorageFailed, OSError.
    """
    if data.exists() and any(data.iterdir()):
        raise MovingError(f"{data} is not empty; name a directory that does not exist yet")
    with (
        owned(data),
        closing(SqliteFile(journal_path(data))) as file,
        closing(HighWater(high_water_path(data))) as high_water,
    ):
        catalogue = SqliteCatalogue(file, high_water)
        files = SnapshotFiles(snapshots_path(data), kept=1 << 20)
        copy = _Copy(fleet, file, catalogue, files)
        there = [(model, _milliseconds(made)) for model, made in fleet.catalogue.made()]
        numbers = {model.number for model, _ in there}
        for model, made in there:
            if model.follows not in numbers:
                following = [one for one in there if one[0].follows == model.number]
                yield from _export_together(copy, (model, made), following)


def back_up(fleet: Fleet, keys: ApiKeys, to: Path) -> list[Reach]:
    """Make a backup of all models of a fleet, which `storage.restore` reads; what it reaches.

    keys: those of the fleet. to: does not exist or is empty. Raises BackupError, MovingError,
    StartupError, StorageFailed, KeysError, OSError.
    """
    check_empty(to)
    for _ in export_models(fleet, to):
        pass
    known = keys.read()
    if known is not None:
        with KeyFile(to).changing() as kept:
            kept[:] = known
    with closing(open_storage(to, read_only=True)) as storage:
        reaches = [reach for reach in reaches_of(storage) if isinstance(reach, Reach)]
    finish(to, reaches)
    return reaches


class _Copy(NamedTuple):
    """What is copied from, and into."""

    fleet: Fleet
    file: SqliteFile
    catalogue: SqliteCatalogue
    files: SnapshotFiles


class _Copied(NamedTuple):
    """A copied model: its term there, from where to where its log goes, and its rollbacks."""

    term: Term
    begin: int | None
    end: int
    rollbacks: list[Rollback]

    @property
    def number(self) -> int:
        """The model's number there."""
        return self.term.model


_Made = tuple[CatalogueEntry, int]


def _export_together(copy: _Copy, champion: _Made, following: list[_Made]) -> list[Moved]:
    """Copy a model and those that follow it. Raises MovingError, StartupError, StorageFailed."""
    for _ in range(_ATTEMPTS):
        above = _export(copy, *champion)
        if above is None:
            continue
        copied = {champion[0].name: above}
        for model, made in following:
            if (below := _export(copy, model, made, above)) is not None:
                copied[model.name] = below
        if len(copied) > len(following):
            return [Moved(name, one.end) for name, one in copied.items()]
        for one in copied.values():
            copy.catalogue.delete(one.term)
            copy.files.delete(one.number)
    raise MovingError(f"model {champion[0].name!r} learns faster than it can be copied; try again")


def _export(
    copy: _Copy, model: CatalogueEntry, made: int, above: _Copied | None = None
) -> _Copied | None:
    """Copy a model; None if it has to be copied again, because its log was purged meanwhile.

    above: what was copied of the model that it follows.
    """
    fleet, files = copy.fleet, copy.files
    until = None if above is None else above.end
    follows = None if above is None else above.number
    with copy.catalogue.creating(model.name, model.spec, model.epoch, follows, made=made) as term:
        number = term.model
        bases = [*_copy_snapshots(model, fleet, files, number, until)]
        bases += [0] if above is None else []
        try:
            log = fleet.journal.whole_log(model.number)
            rollbacks = log.index.rollbacks()
            needed = [one for one in rollbacks if until is None or one.description["at"] <= until]
            copied = _copy_pinned(needed, fleet, model.number, files, number)
            bases += [one.description["at"] for one in needed if one.digest in copied]
            begin = log.index.begin() if above is None else above.begin
            exchanged = above is not None and _exchanged_since(above, rollbacks)
            whole = not needed or needed[0].digest in copied
            if whole and not exchanged and any(begin is None or begin <= base for base in bases):
                _write(copy.file, number, log, until, copied)
                end = max(log.index.end if above is None else 0, *bases)
                return _Copied(term, begin, end, rollbacks)
        except LogGap:
            pass  # it was purged while it was read
    copy.catalogue.delete(term)
    files.delete(number)
    return None


def _exchanged_since(above: _Copied, rollbacks: list[Rollback]) -> bool:
    """Whether a model has changed places with the one that it follows after that was copied."""
    known = {one.description["at"] for one in above.rollbacks}
    exchanges = [one.description["at"] for one in rollbacks if "of" in one.description]
    return any(at >= above.end and at not in known for at in exchanges)


def _copy_snapshots(
    model: CatalogueEntry, fleet: Fleet, files: SnapshotFiles, number: int, until: int | None
) -> Iterator[int]:
    """Copy the snapshots up to a sequence that are not damaged; return their sequences."""
    snapshots = fleet.storage.snapshots
    for sequence in snapshots.sequences(model.number):
        if until is not None and sequence > until:
            continue
        try:
            files.save(number, snapshots.load(model.number, sequence))
        except DamagedSnapshot:  # or one that was deleted meanwhile
            continue
        if (written := snapshots.written(model.number, sequence)) is not None:
            seconds = written.timestamp()
            os.utime(files.name(number, sequence), (seconds, seconds))
        yield sequence


def _copy_pinned(
    rollbacks: list[Rollback], fleet: Fleet, model: int, files: SnapshotFiles, number: int
) -> set[str]:
    """Copy the states that a model's rollbacks restored; return their digests.

    Those of older rollbacks may be gone: only the last one is needed.
    """
    copied = set[str]()
    for rollback in rollbacks:
        with suppress(DamagedSnapshot):
            content = fleet.snapshots.pinned_content(model, rollback.digest)
            files.pin(number, content, rollback.digest)
            copied.add(rollback.digest)
    return copied


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _write(
    file: SqliteFile, number: int, log: JetStreamLog, until: int | None, pinned: set[str]
) -> None:
    """Write a log's rows up to a sequence, before the model is there.

    pinned: digests of the states that were copied; rollbacks to others are left out.
    """
    rows = [
        *(
            row
            for row in _event_and_entry_rows(number, log, pinned)
            if until is None or row.sequence <= until
        ),
        *(row for key in log.index.keys.values() for row in _key_rows(number, log, key)),
    ]
    with file.transaction():
        for start in range(0, len(rows), _ROWS):
            file.insert("INSERT INTO log", rows[start : start + _ROWS])


def _event_and_entry_rows(number: int, log: JetStreamLog, pinned: set[str]) -> Iterator[Row]:
    places, at = count(LATER), -1
    for commit in log.chain.read(0):
        for row in commit.rows:
            if row.kind not in ENTRIES | {"rollback", "epoch"}:
                continue
            if row.kind == "rollback" and read_rollback(row)[0].digest not in pinned:
                continue
            if row.sequence != at:
                places, at = count(LATER), row.sequence
            place = SAMPLES if row.kind in WITH_SAMPLES else next(places)
            yield sealed(_row(number, place, row))


def _row(number: int, place: int, row: LogRow) -> Row:
    kind, sequence, time, samples, block, head, threads, record = row
    if kind == "rollback":
        fields: dict[str, Any] = json.loads(record)
        del fields["learned"]  # keys that it made void are known no more
        record = json.dumps(fields).encode()
    return Row(number, sequence, place, kind, time, samples, block, head, threads, record)


def _key_rows(number: int, log: JetStreamLog, key: KnownKey) -> Iterator[Row]:
    request, time = key.request._replace(model=number), now()
    yield key_row(request, time)
    answer = log.read_answer(key)
    if answer is not None:
        yield answer_row(request._replace(answer=answer), time)
