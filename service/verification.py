"""Whether model files and data directories are whole, and what to do where they are not."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from service.data_directory import log_path, snapshots_path
from service.errors import StartupError
from service.fits import fit_from_record
from service.loading import ModelFileError, load_model
from service.log import Log
from service.log_rows import Entry
from service.recovery import samples_of
from service.snapshots import DamagedSnapshot, Snapshots, decode_state

# Told how many bytes have been looked at since the last time.
Watch = Callable[[int], None]


def bytes_of(path: Path) -> int:
    """What there is to look at."""
    if not path.is_dir():
        return path.stat().st_size
    files = [*snapshots_path(path).glob("*/*.snapshot"), log_path(path)]
    return sum(file.stat().st_size for file in files if file.exists())


def verify(path: Path, watch: Watch) -> Iterator[str]:
    """What is wrong with a model file or a data directory, also one that a server holds.

    A line for each problem: where, what, and what to do.
    """
    if path.is_dir():
        yield from _verify_directory(path, watch)
    else:
        yield from _verify_file(path, "restore it from a backup", watch)


def _verify_file(path: Path, remedy: str, watch: Watch) -> Iterator[str]:
    try:
        load_model(path)
        watch(path.stat().st_size)
    except (ModelFileError, OSError) as error:
        if path.exists():  # else a server that runs has forgotten it meanwhile
            yield f"{error}; {remedy}"


def _verify_directory(data: Path, watch: Watch) -> Iterator[str]:
    path = log_path(data)
    if not path.exists():
        yield f"{data}: there is no {path.name}; name a data directory or a model file"
        return
    try:
        # What the log has now it keeps for us; so it reaches back to the snapshots listed later.
        with closing(Log(path, read_only=True)) as log:
            models = log.models()
            for what in log.damage():
                yield f"{path}: {what}; restore the data directory from a backup"
            for model, name, _ in models:
                yield from _verify_model(data, model, name, log, watch)
    except StartupError as error:
        yield str(error)


def _verify_model(data: Path, model: int, name: str, log: Log, watch: Watch) -> Iterator[str]:
    snapshots = Snapshots(snapshots_path(data))
    kept, damaged = snapshots.sequences(model), set[int]()
    remedy = f"a start of model {name!r} falls back to the one before; restore it from a backup"
    for sequence in kept:
        for problem in _verify_file(snapshots.path(model, sequence), remedy, watch):
            damaged.add(sequence)
            yield problem
    path, at = log_path(data), log.rolled_back_at(model)
    if at is not None:
        kept = [sequence for sequence in kept if sequence > at] + [at]
        try:
            decode_state(log.rollback(model).content, "the record of its rollback")
        except DamagedSnapshot as error:
            yield f"{path}: model {name!r}: {error}; restore the log from a backup"
    # The log is kept for the newest and for the one before, to fall back to.
    bases = [sequence for sequence in kept[:2] if sequence not in damaged]
    bases = bases or [sequence for sequence in kept if sequence not in damaged][:1] or [0]
    begins = log.begin(model)
    if begins is not None and bases[-1] < begins <= bases[0]:
        yield (
            f"{path}: model {name!r}: the log begins at {begins}, so there is no falling back to "
            f"the snapshot of {bases[-1]}; make another with POST /v1/models/{name}/snapshot"
        )
        bases = bases[:1]
    for what in _verify_log(log, model, bases[-1], watch):
        yield (
            f"{path}: model {name!r}: {what}; restore the data directory from a backup, or export "
            "a snapshot with --sequence"
        )


def _verify_log(log: Log, model: int, first: int, watch: Watch) -> Iterator[str]:
    """What is missing or unreadable behind a snapshot."""
    reached = first
    for block in log.blocks(model, first):
        for entry in block:
            begins = entry.sequence - entry.samples
            if begins != reached:
                yield f"samples {reached + 1} to {begins} are missing in the log"
            reached = entry.sequence
            watch(len(entry.record))
        if block[-1].sequence != block[-1].block:
            yield f"the block that ends at {block[-1].block} is not whole"
        try:
            _read(block)
        except Exception as error:  # whatever msgpack and numpy make of damaged bytes
            yield f"the record at sequence {reached} cannot be read: {error!r}"


def _read(block: list[Entry]) -> None:
    if block[0].samples:
        samples_of(block)
    else:
        fit_from_record(block[0].record)
