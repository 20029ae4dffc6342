"""Copies models from a data directory into a fleet, with logs, keys and snapshots.

A model exists in the fleet once all of it has been copied. Challengers come after their champions,
because these are older.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.keys import ApiKeys, KeysError
from wolfstream.service.errors import WolfstreamError
from wolfstream.service.fleet.commit_messages import LogRow
from wolfstream.service.fleet.jetstream_term import JetStreamTerm
from wolfstream.service.fleet.log_index import ENTRIES
from wolfstream.service.fleet.opening import Fleet
from wolfstream.service.storage.data_directory import (
    check_exists,
    check_journal_end,
    journal_path,
    open_storage,
    owned,
    snapshots_path,
)
from wolfstream.service.storage.entries import CatalogueEntry
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.snapshot_format import DamagedSnapshot
from wolfstream.service.storage.sqlite_file import SqliteFile
from wolfstream.service.storage.sqlite_rows import unsealed

# A commit ends once it has this many rows or bytes.
_ROWS, _BYTES = 1000, 4 << 20


class MoveError(WolfstreamError):
    """Models cannot be moved; the message says why, and what to do."""


class MovedModel(NamedTuple):
    """A model that was moved."""

    model: str
    sequence: int  # of its last sample
    before: bool = False  # whether an earlier import that failed had copied it already


def import_models(data: Path, fleet: Fleet, keys: ApiKeys) -> Iterator[MovedModel]:
    """Copy all models of a data directory into a fleet; yield each as soon as it exists there.

    Models that an earlier, failed import has copied stay as they are.

    Args:
        data: the data directory, which no server may be using. It is not changed.
        fleet: the fleet to copy into.
        keys: the fleet's API keys. If there are none, those of the directory are copied.

    Raises MoveError, StartupError, StorageFailed, KeysError.
    """
    check_exists(data)
    with owned(data):
        check_journal_end(data)
        with (
            closing(open_storage(data)) as source,
            closing(SqliteFile(journal_path(data), read_only=True)) as file,
        ):
            models = source.catalogue.models()
            imported = _imported_before(models, source, data, fleet)
            numbers = dict[int, int]()  # number in the directory -> number in the fleet
            for model in models:
                if model.name in imported:
                    numbers[model.number], moved = imported[model.name]
                    yield moved
                    continue
                follows = None if model.follows is None else numbers.get(model.follows)
                try:
                    numbers[model.number], moved = _import(
                        model, follows, data, source, file, fleet
                    )
                    yield moved
                except (DamagedSnapshot, OSError) as error:
                    raise MoveError(
                        f"model {model.name!r} is not moved: {error}; start `wolfstream serve` on "
                        "the directory, which sets damaged snapshots aside, and stop it again"
                    ) from None
        _copy_keys(KeyFile(data), keys)


def _imported_before(
    models: Sequence[CatalogueEntry], source: Storage, data: Path, fleet: Fleet
) -> dict[str, tuple[int, MovedModel]]:
    """Return name -> (number in the fleet, model) of the models that an earlier import has copied.

    Copies are recognised by their first epoch. Raises MoveError if nothing is left to copy, or if
    the fleet has a different model of the same name, or a copy that has learned less.
    """
    in_fleet = {entry.name: entry for entry in fleet.storage.catalogue.models()}
    pairs = [(model, in_fleet[model.name]) for model in models if model.name in in_fleet]
    others = [model.name for model, copy in pairs if copy.epoch != model.epoch]
    if others or (pairs and len(pairs) == len(models)):
        names = others or [model.name for model, _ in pairs]
        raise MoveError(
            f"the fleet has models of these names already: {', '.join(names[:10])}; delete them "
            "there, or here"
        )
    imported = dict[str, tuple[int, MovedModel]]()
    for model, copy in pairs:
        end, copied_end = _end(model, source, data), _end_in_fleet(copy.number, fleet)
        if end > copied_end:
            raise MoveError(
                f"model {model.name!r} has {end:,} samples in the directory, and {copied_end:,} in "
                "the fleet, to which it was copied before; delete it there to have it copied again"
            )
        imported[model.name] = copy.number, MovedModel(model.name, copied_end, before=True)
    return imported


def _end(model: CatalogueEntry, source: Storage, data: Path) -> int:
    """Return the sequence of the last sample of a model in a directory."""
    sequences = SnapshotFiles(snapshots_path(data)).sequences(model.number)
    return max([source.journal.reader(model.number).end(), *sequences])


def _end_in_fleet(number: int, fleet: Fleet) -> int:
    """Return the sequence of the last sample of a model in the fleet."""
    storage = fleet.storage
    return max([storage.journal.reader(number).end(), *storage.snapshots.sequences(number)])


def _import(
    model: CatalogueEntry,
    follows: int | None,
    data: Path,
    source: Storage,
    file: SqliteFile,
    fleet: Fleet,
) -> tuple[int, MovedModel]:
    """Copy one model; return (number in the fleet, model).

    Args:
        model: the model to copy.
        follows: number of its champion in the fleet, if any.
        data: the data directory.
        source: its storage.
        file: its database.
        fleet: the fleet to copy into.
    """
    begin = source.journal.reader(model.number).begin()
    if begin is None:  # the log has no samples yet: the next follows the last snapshot
        begin = _end(model, source, data)
    creating = fleet.catalogue.creating(model.name, model.spec, model.epoch, follows, begin)
    with creating as term:
        assert isinstance(term, JetStreamTerm)
        _copy(model, term, data, source, file, fleet)
    return term.model, MovedModel(model.name, _end(model, source, data))


def _copy(
    model: CatalogueEntry,
    term: JetStreamTerm,
    data: Path,
    source: Storage,
    file: SqliteFile,
    fleet: Fleet,
) -> None:
    """Copy a model's snapshots, pinned states and log; see `_import`."""
    number = term.model
    snapshots = SnapshotFiles(snapshots_path(data))
    for sequence in reversed(snapshots.sequences(model.number)):
        fleet.snapshots.save(number, snapshots.load(model.number, sequence))
    rollbacks = source.journal.reader(model.number).rollbacks()
    for rollback in rollbacks:
        # Only the state of the last rollback is needed; older ones may be missing.
        with nullcontext() if rollback is rollbacks[0] else suppress(DamagedSnapshot):
            content = snapshots.pinned_content(model.number, rollback.digest)
            fleet.snapshots.pin(number, content, rollback.digest)
    for rows in _commits(_rows(model, file)):
        term.write(rows)


def _rows(model: CatalogueEntry, file: SqliteFile) -> Iterator[LogRow]:
    """Yield the rows of a model's log, in order. Raises MoveError."""
    with file.reading():
        for values in file.db.execute(
            "SELECT * FROM log WHERE model = ? ORDER BY sequence, place", (model.number,)
        ):
            row = unsealed(values)
            if row.kind in ENTRIES and row.threads > 1:
                raise MoveError(
                    f"model {model.name!r} was learned with {row.threads} threads, and a fleet "
                    "learns with one: start `wolfstream serve --threads 1` on the directory, and "
                    "save two snapshots of the model"
                )
            record = row.record
            if row.kind == "rollback":  # in SQLite, void keys are deleted at once
                record = json.dumps({**json.loads(record), "learned": row.sequence}).encode()
            yield LogRow(
                row.kind,
                row.sequence,
                row.time,
                row.samples,
                row.block,
                row.head,
                row.threads,
                record,
            )


def _commits(rows: Iterator[LogRow]) -> Iterator[list[LogRow]]:
    """Yield lists of rows, one for each commit; rows of the same sequence stay together."""
    commit, n_bytes = list[LogRow](), 0
    for _, group in groupby(rows, lambda row: row.sequence):
        same_sequence = list(group)
        commit += same_sequence
        n_bytes += sum(len(row.record) for row in same_sequence)
        if len(commit) >= _ROWS or n_bytes > _BYTES:
            yield commit
            commit, n_bytes = [], 0
    if commit:
        yield commit


def _copy_keys(source: KeyFile, keys: ApiKeys) -> None:
    """Copy the API keys of a directory. Raises KeysError if the fleet has others."""
    source_keys = source.read()
    if source_keys is None:
        return
    with keys.changing() as fleet_keys:
        if fleet_keys and fleet_keys != source_keys:
            raise KeysError(
                f"{keys.name} has keys of its own: those of {source.name} were not copied; add "
                "them with `wolfstream keys add --fleet`"
            )
        fleet_keys[:] = source_keys
