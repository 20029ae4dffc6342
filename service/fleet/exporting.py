"""Copies a fleet's models into a data directory, as a backup or for a single server.

    copy the snapshots -> read the log to its end -> write the rows

The models may learn meanwhile: each is copied as it was when its log was read. Challengers are
copied after their champion, up to the end of its copy. Rows keep their times, so a backup can be
restored to any time.
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
from wolfstream.service.errors import StartupError
from wolfstream.service.fleet.commit_messages import LogRow, read_rollback
from wolfstream.service.fleet.importing import MovedModel, MoveError
from wolfstream.service.fleet.jetstream_log import JetStreamLog
from wolfstream.service.fleet.log_index import ENTRIES, WITH_SAMPLES, IndexedKey
from wolfstream.service.fleet.opening import Fleet
from wolfstream.service.storage.backup import Reach, check_empty, finish, model_reaches
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
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.snapshot_format import DamagedSnapshot
from wolfstream.service.storage.sqlite_catalogue import SqliteCatalogue
from wolfstream.service.storage.sqlite_file import SqliteFile
from wolfstream.service.storage.sqlite_rows import LATER, SAMPLES, Row, answer_row, key_row, sealed
from wolfstream.service.storage.term import Term

# Attempts to copy a model whose leader purges its log meanwhile.
_ATTEMPTS = 3
# Number of rows that one statement writes.
_ROWS = 256


def export_models(fleet: Fleet, data: Path) -> Iterator[MovedModel]:
    """Copy all models of a fleet into a data directory; yield each as soon as it exists there.

    Args:
        fleet: the fleet to copy from.
        data: a directory that is missing or empty.

    Raises MoveError, StartupError, StorageFailed, OSError.
    """
    if data.exists() and any(data.iterdir()):
        raise MoveError(f"{data} is not empty; name a directory that does not exist yet")
    with (
        owned(data),
        closing(SqliteFile(journal_path(data))) as file,
        closing(HighWater(high_water_path(data))) as high_water,
    ):
        catalogue = SqliteCatalogue(file, high_water)
        exported = SnapshotFiles(snapshots_path(data), kept=1 << 20)
        export = _Export(fleet, file, catalogue, exported)
        models = [(model, _milliseconds(time)) for model, time in fleet.catalogue.created()]
        numbers = {model.number for model, _ in models}
        for model, created in models:
            if model.follows not in numbers:
                challengers = [pair for pair in models if pair[0].follows == model.number]
                yield from _export_together(export, (model, created), challengers)


def back_up(fleet: Fleet, keys: ApiKeys, to: Path) -> list[Reach]:
    """Make a backup of all models of a fleet for `storage.restore`; return their reaches.

    Args:
        fleet: the fleet to back up.
        keys: its API keys.
        to: a directory that is missing or empty.

    Raises BackupError, MoveError, StartupError, StorageFailed, KeysError, OSError.
    """
    check_empty(to)
    for _ in export_models(fleet, to):
        pass
    fleet_keys = keys.read()
    if fleet_keys is not None:
        with KeyFile(to).changing() as copied_keys:
            copied_keys[:] = fleet_keys
    with closing(open_storage(to, read_only=True)) as storage:
        reaches = [reach for reach in model_reaches(storage) if isinstance(reach, Reach)]
    finish(to, reaches)
    return reaches


class _Export(NamedTuple):
    """The source and the targets of copies."""

    fleet: Fleet
    file: SqliteFile
    catalogue: SqliteCatalogue
    exported: SnapshotFiles


class _ModelCopy(NamedTuple):
    """The copy of a model in the data directory."""

    term: Term
    begin: int | None  # sequence just before its first sample; None without samples
    end: int  # sequence of its last sample
    rollbacks: list[Rollback]  # newest first

    @property
    def number(self) -> int:
        """The number of the copy."""
        return self.term.model


# A model and when it was created, in milliseconds since 1970.
_CreatedModel = tuple[CatalogueEntry, int]


def _export_together(
    export: _Export, champion: _CreatedModel, challengers: list[_CreatedModel]
) -> list[MovedModel]:
    """Copy a model and its challengers. Raises MoveError, StartupError, StorageFailed."""
    for _ in range(_ATTEMPTS):
        champion_copy = _export(export, *champion)
        if champion_copy is None:
            continue
        copies = {champion[0].name: champion_copy}
        for model, created in challengers:
            if (copy := _export(export, model, created, champion_copy)) is not None:
                copies[model.name] = copy
        if len(copies) > len(challengers):
            return [MovedModel(name, copy.end) for name, copy in copies.items()]
        for copy in copies.values():
            export.catalogue.delete(copy.term)
            export.exported.delete(copy.number)
    raise MoveError(f"model {champion[0].name!r} learns faster than it can be copied; try again")


def _export(
    export: _Export, model: CatalogueEntry, created: int, champion: _ModelCopy | None = None
) -> _ModelCopy | None:
    """Copy a model; return None if it has to be copied again.

    Args:
        export: the source and the targets.
        model: the model to copy.
        created: when it was created, in milliseconds since 1970.
        champion: the copy of its champion, if it has one.
    """
    follows = None if champion is None else champion.number
    creating = export.catalogue.creating(
        model.name, model.spec, model.epoch, follows, created=created
    )
    with creating as term, suppress(LogGap):  # the log was purged while it was read
        copy = _copy_model(export, model.number, term, champion)
        if copy is not None:
            return copy
    export.catalogue.delete(term)
    export.exported.delete(term.model)
    return None


def _copy_model(
    export: _Export, model: int, term: Term, champion: _ModelCopy | None
) -> _ModelCopy | None:
    """Copy a model's states and log; return None if they do not fit together.

    Args:
        export: the source and the targets.
        model: the model's number in the fleet.
        term: the term of the copy, which does not exist yet.
        champion: the copy of its champion, if it has one.

    Raises LogGap, StartupError.
    """
    until = None if champion is None else champion.end
    bases = list(_copy_snapshots(model, export.fleet, export.exported, term.model, until))
    log = export.fleet.journal.whole_log(model)
    if log.incomplete:
        raise StartupError(
            f"{'; '.join(log.faults)}. Roll the model back to a snapshot or delete it, and export "
            "again"
        )
    rollbacks = log.index.rollbacks()
    needed = [
        rollback for rollback in rollbacks if until is None or rollback.description["at"] <= until
    ]
    pinned = _copy_pinned(needed, export.fleet, model, export.exported, term.model)
    if needed and needed[0].digest not in pinned:
        return None
    if champion is not None and _exchanged_since(champion, rollbacks):
        return None
    bases += [rollback.description["at"] for rollback in needed if rollback.digest in pinned]
    begin = log.index.begin() if champion is None else champion.begin
    if not _is_complete(bases, begin, log if champion is None else None):
        return None
    _write(export.file, term.model, log, until, pinned)
    end = max([log.index.end if champion is None else 0, *bases])
    return _ModelCopy(term, begin, end, rollbacks)


def _is_complete(bases: list[int], begin: int | None, log: JetStreamLog | None) -> bool:
    """Return whether one of the states, with the samples after it, gives the whole model.

    Args:
        bases: sequences of the states.
        begin: sequence just before the first sample; None without samples.
        log: the model's log; None for a challenger, which always needs a state. Other models start
            empty unless they were uploaded.
    """
    if log is None:
        return any(begin is None or begin <= base for base in bases)
    return max([0, *bases]) >= (log.last_event() if begin is None else begin)


def _exchanged_since(champion: _ModelCopy, rollbacks: list[Rollback]) -> bool:
    """Return whether a challenger was exchanged with its champion after the champion was copied."""
    copied = {rollback.description["at"] for rollback in champion.rollbacks}
    exchanges = [
        rollback.description["at"] for rollback in rollbacks if "of" in rollback.description
    ]
    return any(at >= champion.end and at not in copied for at in exchanges)


def _copy_snapshots(
    model: int, fleet: Fleet, exported: SnapshotFiles, number: int, until: int | None
) -> Iterator[int]:
    """Copy the undamaged snapshots up to a sequence; yield their sequences."""
    snapshots = fleet.storage.snapshots
    for sequence in snapshots.sequences(model):
        if until is not None and sequence > until:
            continue
        try:
            exported.save(number, snapshots.load(model, sequence))
        except DamagedSnapshot:  # or deleted meanwhile
            continue
        if (written := snapshots.written(model, sequence)) is not None:
            seconds = written.timestamp()
            os.utime(exported.name(number, sequence), (seconds, seconds))
        yield sequence


def _copy_pinned(
    rollbacks: list[Rollback], fleet: Fleet, model: int, exported: SnapshotFiles, number: int
) -> set[str]:
    """Copy the states that rollbacks pinned, if they still exist; return the digests of these."""
    copied = set[str]()
    for rollback in rollbacks:
        with suppress(DamagedSnapshot):
            content = fleet.snapshots.pinned_content(model, rollback.digest)
            exported.pin(number, content, rollback.digest)
            copied.add(rollback.digest)
    return copied


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _write(
    file: SqliteFile, number: int, log: JetStreamLog, until: int | None, pinned: set[str]
) -> None:
    """Write the rows of a log.

    Args:
        file: the database to write to.
        number: the number of the copy.
        log: the log to copy.
        until: last sequence to copy; None for all.
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
        del fields["learned"]  # only determines which keys are void, and those are not copied
        record = json.dumps(fields).encode()
    return Row(number, sequence, place, kind, time, samples, block, head, threads, record)


def _key_rows(number: int, log: JetStreamLog, key: IndexedKey) -> Iterator[Row]:
    request, time = key.request._replace(model=number), now()
    yield key_row(request, time)
    answer = log.read_answer(key)
    if answer is not None:
        yield answer_row(request._replace(answer=answer), time)
