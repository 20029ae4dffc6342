"""The reach of a backup: the range of sequences at which each of its models can be restored."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from wolfstream.service.errors import WolfstreamError
from wolfstream.service.storage.entries import CatalogueEntry, Rollback
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.snapshot_format import DamagedSnapshot

# Written last, so a directory that has it is a complete backup.
MANIFEST = "backup.json"


class BackupError(WolfstreamError):
    """A backup cannot be made or restored; the message says why, and what to do."""


class Reach(NamedTuple):
    """The oldest and newest sequence at which a model can be restored."""

    model: str
    oldest: int
    newest: int


def model_reaches(
    storage: Storage, acknowledged: Mapping[int, int] | None = None
) -> Iterator[Reach | str]:
    """Yield the reach of each model, or a message that says what it lacks.

    Args:
        storage: the backup's storage.
        acknowledged: model -> sequence up to which it was durable before the copy was made.
    """
    for model in storage.catalogue.models():
        yield _model_reach(model, storage, (acknowledged or {}).get(model.number, 0))


def _model_reach(model: CatalogueEntry, storage: Storage, acknowledged: int) -> Reach | str:
    number = model.number
    log = storage.journal.reader(number)
    begin, end = log.begin(), log.end()
    saved, rollbacks = storage.snapshots.sequences(number), log.rollbacks()
    pinned = [
        rollback.description["at"]
        for rollback in rollbacks
        if _is_intact(rollback, number, storage)
    ]
    last = max((rollback.description["at"] for rollback in rollbacks), default=None)
    if last is not None and last not in pinned and last >= max(saved, default=0):
        return f"model {model.name!r}: the state that it was rolled back to at {last} is missing"
    # Recovery starts from a base: an empty model, a snapshot or a pinned state.
    bases = [0] if begin in (None, 0) and model.follows is None else []
    bases += [*saved, *pinned]
    usable = [base for base in bases if begin is None or begin <= base]  # the log continues it
    if not usable:
        back_to = min(bases, default=begin)
        return f"model {model.name!r}: the backup reaches back to sequence {back_to}, not further"
    newest = max(end, *usable)
    samples_log = log if model.follows is None else storage.journal.reader(model.follows)
    if max(newest, samples_log.end()) < acknowledged:
        return f"model {model.name!r}: the backup reaches {newest} of {acknowledged} samples"
    return Reach(model.name, min(usable), newest)


def _is_intact(rollback: Rollback, model: int, storage: Storage) -> bool:
    """Return whether the state that a rollback restored is pinned and undamaged."""
    try:
        storage.snapshots.pinned(model, rollback.digest)
    except DamagedSnapshot:
        return False
    return True


def check_empty(path: Path) -> None:
    """Raise BackupError unless a directory is missing or empty."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise BackupError(
            f"{path} exists and is not empty; name a directory that does not exist yet"
        )
