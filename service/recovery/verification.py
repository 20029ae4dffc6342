"""Verification of model files and data directories: what is damaged, and how to repair it."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from wolfstream.service.errors import StartupError
from wolfstream.service.heads.fit import fit_from_record
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.absorb import decode_block
from wolfstream.service.recovery.model_files import ModelFileError, fill_model, load_model, spec_in
from wolfstream.service.samples.record import decode_rows, from_prediction_record
from wolfstream.service.storage.data_directory import journal_path, n_bytes, open_storage
from wolfstream.service.storage.entries import Entry
from wolfstream.service.storage.interfaces import Snapshots, Storage
from wolfstream.service.storage.log import LogReader, rolled_back_at
from wolfstream.service.storage.snapshot_format import DamagedSnapshot, decode_state

# Called with the number of bytes that were verified since the last call.
Watch = Callable[[int], None]


def verified_bytes(path: Path) -> int:
    """Return the number of bytes that `verify` reads of a model file or a data directory."""
    return n_bytes(path) if path.is_dir() else path.stat().st_size


def verify(path: Path, watch: Watch) -> Iterator[str]:
    """Yield the problems of a model file or a data directory, which a server may be using.

    Each is one line: where, what, and what to do.
    """
    if path.is_dir():
        yield from _verify_directory(path, watch)
        return
    try:
        load_model(path)
        watch(path.stat().st_size)
    except (ModelFileError, OSError) as error:
        yield f"{error}; restore it from a backup"


def _verify_directory(data: Path, watch: Watch) -> Iterator[str]:
    path = journal_path(data)
    if not path.exists():
        yield f"{data}: there is no {path.name}; name a data directory or a model file"
        return
    try:
        # The journal is read now, so it goes back to the snapshots that are listed later.
        with closing(open_storage(data, read_only=True)) as storage:
            models = storage.catalogue.models()
            for fault in storage.journal.damage():
                yield f"{path}: {fault}; restore the data directory from a backup"
            ids = {model.number for model in models}
            for model_id, name, _, _, follows in models:
                champion = follows if follows in ids else None
                yield from _verify_model(model_id, name, champion, storage, watch)
    except StartupError as error:
        yield str(error)


def _verify_model(
    model: int, name: str, champion: int | None, storage: Storage, watch: Watch
) -> Iterator[str]:
    """Yield the problems of a model. champion: the id of the model whose log it learns from."""
    journal, snapshots = storage.journal, storage.snapshots
    log = journal.reader(model)
    sequences, damaged = snapshots.sequences(model), set[int]()
    remedy = f"a start of model {name!r} falls back to the one before; restore it from a backup"
    for sequence in sequences:
        for problem in _verify_snapshot(model, sequence, snapshots, watch):
            damaged.add(sequence)
            yield f"{problem}; {remedy}"
    at = rolled_back_at(log)
    if at is not None:
        sequences = [sequence for sequence in sequences if sequence > at] + [at]
        try:
            snapshots.pinned(model, log.rollbacks()[0].digest)
        except DamagedSnapshot as error:
            yield (
                f"{snapshots.name(model, at)}: model {name!r}: the state that it was rolled back "
                f"to: {error}; restore it from a backup"
            )
    # The log is kept for the newest snapshot, and for the one before to fall back on.
    bases = [sequence for sequence in sequences[:2] if sequence not in damaged]
    bases = bases or [sequence for sequence in sequences if sequence not in damaged][:1] or [0]
    begins = log.begin() if champion is None else journal.reader(champion).begin()
    if begins is not None and bases[-1] < begins <= bases[0]:
        yield (
            f"{journal.name}: model {name!r}: the journal begins at {begins}, so there is no "
            f"falling back to the snapshot of {bases[-1]}; make another with "
            f"POST /v1/models/{name}/snapshot"
        )
        bases = bases[:1]
    for problem in _verify_entries(log, bases[-1], champion is not None, watch):
        yield (
            f"{journal.name}: model {name!r}: {problem}; restore the data directory from a backup, "
            "or export a snapshot with --sequence"
        )


def _verify_snapshot(
    model: int, sequence: int, snapshots: Snapshots, watch: Watch
) -> Iterator[str]:
    name = snapshots.name(model, sequence)
    try:
        content = snapshots.content(model, sequence)
        state = decode_state(content, name)
        fill_model(Model(model, "", spec_in(state, name)), state, name)
    except (DamagedSnapshot, ModelFileError) as error:
        if sequence in snapshots.sequences(model):  # otherwise a running server has deleted it
            yield f"{name} {error.reason}" if isinstance(error, DamagedSnapshot) else str(error)
    else:
        watch(len(content))


def _verify_entries(log: LogReader, first: int, follows: bool, watch: Watch) -> Iterator[str]:
    """Yield what is missing or unreadable after a snapshot.

    Args:
        log: of the model.
        first: the snapshot's sequence.
        follows: whether the samples themselves are in the log of another model.
        watch: see `verify`.
    """
    reached = first
    for block in log.blocks(first):
        for entry in block:
            begins = entry.sequence - entry.samples
            if begins != reached and not follows:
                yield f"samples {reached + 1} to {begins} are missing in the journal"
            reached = entry.sequence
            watch(len(entry.record))
        if block[-1].kind != "prediction" and block[-1].sequence != block[-1].block:
            yield f"the block that ends at {block[-1].block} is not complete"
        try:
            _decode(block)
        except Exception as error:  # whatever msgpack and numpy make of damaged bytes
            yield f"the record at sequence {reached} cannot be read: {error!r}"


def _decode(block: list[Entry]) -> None:
    if block[0].kind == "prediction":
        decode_rows(from_prediction_record(block[0].record).rows)
    elif block[0].kind == "fit":
        fit_from_record(block[0].record)
    elif block[0].kind != "checkpoint":  # which has no record
        decode_block(block)
