"""The mark that a server has had API keys.

A server whose keys are lost, for example because only some files were restored, would let everybody
in. So the fact that there were keys is stored apart from them: in the header of the journal's
database, without which there are no models either. A file of its own says so where there is no
journal: before the first start, and for a replica, whose keys are in NATS.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Protocol

from wolfstream.service.errors import StartupError
from wolfstream.service.storage.data_directory import journal_path
from wolfstream.service.storage.directories import make_private, sync_directory

# "wfsk". SQLite reserves four bytes in the header of its files for the application.
_KEYED = 0x7766736B


class KeyMark(Protocol):
    """Whether there were keys. Raises StartupError if it cannot be read or written."""

    def is_set(self) -> bool:
        """Return whether there were keys."""

    def set(self, keyed: bool) -> None:
        """Record that there are keys, or that there shall be none; durable on return."""


class JournalKeyMark:
    """`KeyMark` in the journal of a data directory, which a server may have open.

    The first time that it is set, it takes the place of the file with which keys were added before
    there was a journal.
    """

    def __init__(self, data: Path) -> None:
        self._path = journal_path(data)
        self._first = FileKeyMark(data)

    def is_set(self) -> bool:
        """Return whether there were keys."""
        return self._run("PRAGMA application_id") == _KEYED or self._first.is_set()

    def set(self, keyed: bool) -> None:
        """Record that there are keys, or that there shall be none."""
        self._run(f"PRAGMA application_id = {_KEYED if keyed else 0}")
        self._first.set(False)

    def _run(self, statement: str) -> int:
        try:
            with closing(sqlite3.connect(self._path, isolation_level=None)) as db:
                db.execute("PRAGMA synchronous = FULL")
                return int((db.execute(statement).fetchone() or (0,))[0])
        except sqlite3.Error as error:
            raise _unusable(self._path, str(error)) from None


class FileKeyMark:
    """`KeyMark` in a directory: the file `DIR/keyed`, which exists if there were keys."""

    def __init__(self, data: Path) -> None:
        self._path = data / "keyed"

    def is_set(self) -> bool:
        """Return whether there were keys."""
        return self._path.exists()

    def set(self, keyed: bool) -> None:
        """Record that there are keys, or that there shall be none."""
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
    """Record whether there are keys. Raise StartupError if there were keys and they are gone.

    Args:
        mark: the server's mark.
        required: whether there are keys now.
        no_keys: whether the operator has chosen to have none.
        place: where keys are stored, for messages.
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
