"""The mark that a server has had keys.

Keys that are lost, as by a restore of some files, would let everybody in who reaches the server. So
that there were keys is kept apart from them: of a server of its own in the header of the journal's
database, without which there are no models either; of a replica, whose keys are in NATS, in a file
of its directory.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Protocol

from wolfstream.service.errors import StartupError
from wolfstream.service.storage.data_directory import journal_path
from wolfstream.service.storage.directories import make_private, sync_directory

# SQLite keeps a number for each application in the header of its files: "wfsk".
_KEYED = 0x7766736B


class KeyMark(Protocol):
    """Whether there were keys. Raises StartupError where it cannot be read or written."""

    def is_set(self) -> bool:
        """Return whether there were keys."""

    def set(self, keyed: bool) -> None:
        """Note that there are keys, or that there are to be none; durable on return."""


class JournalKeyMark:
    """`KeyMark` in the journal of a data directory, which may be open at the same time."""

    def __init__(self, data: Path) -> None:
        self._path = journal_path(data)

    def is_set(self) -> bool:
        """Return whether there were keys."""
        return self._run("PRAGMA application_id") == _KEYED

    def set(self, keyed: bool) -> None:
        """Note that there are keys, or that there are to be none."""
        self._run(f"PRAGMA application_id = {_KEYED if keyed else 0}")

    def _run(self, statement: str) -> int:
        try:
            with closing(sqlite3.connect(self._path, isolation_level=None)) as db:
                db.execute("PRAGMA synchronous = FULL")
                return int((db.execute(statement).fetchone() or (0,))[0])
        except sqlite3.Error as error:
            raise _unusable(self._path, str(error)) from None


class ReplicaKeyMark:
    """`KeyMark` in the directory of a replica of a fleet: a file that is there if there were."""

    def __init__(self, data: Path) -> None:
        self._path = data / "keyed"

    def is_set(self) -> bool:
        """Return whether there were keys."""
        return self._path.exists()

    def set(self, keyed: bool) -> None:
        """Note that there are keys, or that there are to be none."""
        try:
            if keyed:
                make_private(self._path)
            else:
                self._path.unlink(missing_ok=True)
            sync_directory(self._path.parent)
        except OSError as error:
            raise _unusable(self._path, str(error)) from None


def _unusable(path: Path, error: str) -> StartupError:
    return StartupError(f"{path} cannot say whether there were keys: {error}")


def check_keys(mark: KeyMark, required: bool, no_keys: bool, place: str) -> None:
    """Note whether there are keys. Raise StartupError if those that were there are gone.

    Args:
        mark: of the server.
        required: whether there are keys now.
        no_keys: whether its operator says that there are to be none.
        place: where keys are kept.
    """
    if required and no_keys:
        raise StartupError(f"there are keys in {place}: remove them, or leave --no-keys out")
    if not required and not no_keys and mark.is_set():
        raise StartupError(
            f"this server had keys, and there are none in {place}: everybody would be let in. "
            "Restore them, or add new ones with `wolfstream keys add`; `wolfstream serve "
            "--no-keys` goes on without"
        )
    if required or mark.is_set():
        mark.set(required)
