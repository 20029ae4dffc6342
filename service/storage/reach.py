"""What a backup reaches: the sequences of its models that can be restored."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from service.errors import WolfstreamError
from service.storage.interfaces import Storage

# Written last: a directory that has it is a complete backup.
MANIFEST = "backup.json"


class BackupError(WolfstreamError):
    """A backup cannot be made or restored; the message says what to do."""


class Reach(NamedTuple):
    """The oldest and the newest sequence at which a model can be restored."""

    model: str
    oldest: int
    newest: int


def reaches_of(storage: Storage) -> Iterator[Reach | str]:
    """Yield for each model what can be restored, or a message that says what is missing."""
    journal = storage.journal
    for model in storage.catalogue.models():
        log = journal.reader(model.number)
        begin, end = log.begin(), log.end()
        bases = [0] if begin in (None, 0) else []
        bases += storage.snapshots.sequences(model.number)
        bases += [rollback.description["at"] for rollback in log.rollbacks()]
        whole = [base for base in bases if begin is None or begin <= base]
        if not whole:
            yield (
                f"model {model.name!r}: the backup reaches back to sequence "
                f"{min(bases, default=begin)}, not further"
            )
            continue
        yield Reach(model.name, min(whole), max(end, *whole))


def check_empty(path: Path) -> None:
    """Raise BackupError unless a directory does not exist or is empty."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise BackupError(
            f"{path} exists and is not empty; name a directory that does not exist yet"
        )
