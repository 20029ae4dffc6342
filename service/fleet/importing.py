"""Copies models from a data directory into a fleet, with logs, sequences, keys and snapshots.

Both have the same rows. A model exists in the fleet once all of it has been copied. Models that
follow others come after these, which are older.
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

# The approximate rows and bytes of one commit.
_ROWS, _BYTES = 1000, 4 << 20


class MovingError(WolfstreamError):
    """Models cannot be moved; the message says what to do."""


class Moved(NamedTuple):
    """A model that was moved, and the sequence of its last sample.

    before: whether it was there already, from an import that failed later.
    """

    model: str
    sequence: int
    before: bool = False


def import_models(data: Path, fleet: Fleet, keys: ApiKeys) -> Iterator[Moved]:
    """Copy all models of a data directory into a fleet; yield each one that exists there.

    data: no server may run on it; it does not change. If an earlier import has failed after some
    models, these stay as they are. keys: the fleet's keys; if there are none, those of the
    directory are copied. Raises MovingError, StartupError, StorageFailed, KeysError.
    """
    if not journal_path(data).exists():
        raise MovingError(f"{data} is no data directory: it has no {journal_path(data).name}")
    with owned(data):
        check_journal_end(data)
        with (
            closing(open_storage(data)) as source,
            closing(SqliteFile(journal_path(data), read_only=True)) as file,
        ):
            models = source.catalogue.models()
            there = _brought_in_before(models, source, data, fleet)
            numbers = dict[int, int]()  # in the fleet, by those in the directory
            for model in models:
                if model.name in there:
                    numbers[model.number], moved = there[model.name]
                    yield moved
                    continue
                follows = None if model.follows is None else numbers.get(model.follows)
                try:
                    numbers[model.number], moved = _import(
                        model, follows, data, source, file, fleet
                    )
                    yield moved
                except (DamagedSnapshot, OSError) as error:
                    raise MovingError(
                        f"model {model.name!r} is not moved: {error}; start `wolfstream serve` on "
                        "the directory, which sets damaged snapshots aside, and stop it again"
                    ) from None
        _copy_keys(KeyFile(data), keys)


def _brought_in_before(
    models: Sequence[CatalogueEntry], source: Storage, data: Path, fleet: Fleet
) -> dict[str, tuple[int, Moved]]:
    """Return what an import that failed has brought in: the models' numbers there, by name.

    A model is known by its first epoch. Raises MovingError if nothing is left to bring in, or a
    model of the same name is another one or has learned less.
    """
    there = {one.name: one for one in fleet.storage.catalogue.models()}
    both = [(model, there[model.name]) for model in models if model.name in there]
    others = [model.name for model, one in both if one.epoch != model.epoch]
    if others or (both and len(both) == len(models)):
        names = others or [model.name for model, _ in both]
        raise MovingError(
            f"the fleet has models of these names already: {', '.join(names[:10])}; delete them "
            "there, or here"
        )
    found = dict[str, tuple[int, Moved]]()
    for model, one in both:
        here, end = _end(model, source, data), _end_there(one.number, fleet)
        if here > end:
            raise MovingError(
                f"model {model.name!r} has {here:,} samples in the directory, and {end:,} in the "
                "fleet, to which it was copied before; delete it there to have it copied again"
            )
        found[model.name] = one.number, Moved(model.name, end, before=True)
    return found


def _end(model: CatalogueEntry, source: Storage, data: Path) -> int:
    """Return the sequence of the last sample of a model in a directory."""
    sequences = SnapshotFiles(snapshots_path(data)).sequences(model.number)
    return max([source.journal.reader(model.number).end(), *sequences])


def _end_there(number: int, fleet: Fleet) -> int:
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
) -> tuple[int, Moved]:
    """Copy one model. follows: the number in the fleet of the model that it follows, if any."""
    begin = source.journal.reader(model.number).begin() or 0
    creating = fleet.catalogue.creating(model.name, model.spec, model.epoch, follows, begin)
    with creating as term:
        assert isinstance(term, JetStreamTerm)
        _copy(model, term, data, source, file, fleet)
    return term.model, Moved(model.name, _end(model, source, data))


def _copy(
    model: CatalogueEntry,
    term: JetStreamTerm,
    data: Path,
    source: Storage,
    file: SqliteFile,
    fleet: Fleet,
) -> None:
    """Copy a model's snapshots, the states that it was rolled back to, and its log."""
    number = term.model
    snapshots = SnapshotFiles(snapshots_path(data))
    for sequence in reversed(snapshots.sequences(model.number)):
        fleet.snapshots.save(number, snapshots.load(model.number, sequence))
    rollbacks = source.journal.reader(model.number).rollbacks()
    for rollback in rollbacks:
        # Those of older rollbacks may be gone: only the last one is needed.
        with nullcontext() if rollback is rollbacks[0] else suppress(DamagedSnapshot):
            content = snapshots.pinned_content(model.number, rollback.digest)
            fleet.snapshots.pin(number, content, rollback.digest)
    for rows in _commits(_rows(model, file)):
        term.write(rows)


def _rows(model: CatalogueEntry, file: SqliteFile) -> Iterator[LogRow]:
    """Yield a model's rows of the journal in order."""
    with file.reading():
        for values in file.db.execute(
            "SELECT * FROM log WHERE model = ? ORDER BY sequence, place", (model.number,)
        ):
            row = unsealed(values)
            if row.kind in ENTRIES and row.threads > 1:
                raise MovingError(
                    f"model {model.name!r} was learned with {row.threads} threads, and a fleet "
                    "learns with one: start `wolfstream serve --threads 1` on the directory, and "
                    "save two snapshots of the model"
                )
            record = row.record
            if row.kind == "rollback":  # keys that it made void are gone already
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
    """Yield lists of rows to be written together; rows of the same sequence stay together."""
    commit, n_bytes = list[LogRow](), 0
    for _, group in groupby(rows, lambda row: row.sequence):
        together = list(group)
        commit += together
        n_bytes += sum(len(row.record) for row in together)
        if len(commit) >= _ROWS or n_bytes > _BYTES:
            yield commit
            commit, n_bytes = [], 0
    if commit:
        yield commit


def _copy_keys(source: KeyFile, keys: ApiKeys) -> None:
    """Copy the API keys of a directory. Raises KeysError if the fleet has others."""
    found = source.read()
    if found is None:
        return
    with keys.changing() as known:
        if known and known != found:
            raise KeysError(
                f"{keys.name} has keys of its own: those of {source.name} were not copied; add "
                "them with `wolfstream keys add --fleet`"
            )
        known[:] = found
