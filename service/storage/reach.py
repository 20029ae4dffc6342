"""What a backup reaches: the sequences of its models that can be restored."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from wolfstream.service.errors import WolfstreamError
from wolfstream.service.storage.entries import CatalogueEntry, Rollback
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.snapshot_format import DamagedSnapshot

# Written last: a directory that has it is a complete backup.
MANIFEST = "backup.json"


class BackupError(WolfstreamError):
    """A backup cannot be made or restored; the message says what to do."""


class Reach(NamedTuple):
    """The oldest and the newest sequence at which a model can be restored."""

    model: str
    oldest: int
    newest: int


def reaches_of(
    storage: Storage, acknowledged: Mapping[int, int] | None = None
) -> Iterator[Reach | str]:
    """Yield for each model what can be restored, or a message that says what is missing.

    acknowledged: sequences up to which models were durable before, by their numbers.
    """
    for model in storage.catalogue.models():
        yield _reach_of(model, storage, (acknowledged or {}).get(model.number, 0))


def _reach_of(model: CatalogueEntry, storage: Storage, acknowledged: int) -> Reach | str:
    number = model.number
    log = storage.journal.reader(number)
    begin, end = log.begin(), log.end()
    saved, rollbacks = storage.snapshots.sequences(number), log.rollbacks()
    kept = [one.description["at"] for one in rollbacks if _is_kept(one, number, storage)]
    last = max((one.description["at"] for one in rollbacks), default=None)
    if last is not None and last not in kept and last >= max(saved, default=0):
        return f"model {model.name!r}: the state that it was rolled back to at {last} is missing"
    bases = [0] if begin in (None, 0) and model.follows is None else []
    bases += [*saved, *kept]
    whole = [base for base in bases if begin is None or begin <= base]
    if not whole:
        back_to = min(bases, default=begin)
        return f"model {model.name!r}: the backup reaches back to sequence {back_to}, not further"
    newest = max(end, *whole)
    of_samples = log if model.follows is None else storage.journal.reader(model.follows)
    if max(newest, of_samples.end()) < acknowledged:
        return f"model {model.name!r}: the backup reaches {newest} of {acknowledged} samples"
    return Reach(model.name, min(whole), newest)


def _is_kept(rollback: Rollback, model: int, storage: Storage) -> bool:
    """Return whether the state that a rollback restored is there, and whole."""
    try:
        storage.snapshots.pinned(model, rollback.digest)
    except DamagedSnapshot:
        return False
    return True


def check_empty(path: Path) -> None:
    """Raise BackupError unless a directory does not exist or is empty."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise BackupError(
            f"{path} exists and is not empty; name a directory that does not exist yet"
        )
