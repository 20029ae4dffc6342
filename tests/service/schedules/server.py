"""A server without threads, whose process or power may end between any two system calls."""

import math
import os
import shutil
import sqlite3
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from tests.service.schedules.log_file import LogRow, read_log
from tests.service.syscalls.disk import LOSSES, Disk, Record, read_records
from tests.service.syscalls.library import SystemCalls
from wolfstream.service.engine.writer import Writer
from wolfstream.service.settings import Settings
from wolfstream.service.storage.data_directory import journal_path, open_storage, snapshots_path

SNAPSHOT_SAMPLES = 60
# Pages that SQLite keeps in memory: few, so that it reads its file while the server runs.
_CACHED_PAGES = 4


class _Saving(Future[Any]):
    """A snapshot to be saved: whoever waits for its result saves it."""

    def __init__(self, save: Callable[[], Any]) -> None:
        super().__init__()
        self._save = save

    def run(self) -> None:
        if self.set_running_or_notify_cancel():
            try:
                self.set_result(self._save())
            except Exception as error:
                self.set_exception(error)

    def result(self, timeout: float | None = None) -> Any:
        if not self.done():
            self.run()
        return super().result(timeout)


class Saver:
    """Takes the place of the thread that saves snapshots: each waits until it is run.

    at_once: whether each is saved when it is submitted.
    """

    def __init__(self) -> None:
        self.at_once = False
        self._waiting = deque[_Saving]()

    def submit(self, save: Callable[..., Any], *arguments: Any) -> Future[Any]:
        saving = _Saving(lambda: save(*arguments))
        self._waiting.append(saving)
        if self.at_once:
            self.run_all()
        return saving

    def run_one(self) -> None:
        """Save the snapshot that has waited longest."""
        if self._waiting:
            self._waiting.popleft().result()

    def run_all(self) -> None:
        """Save all that wait; what fails is told to whoever asks for the result."""
        while self._waiting:
            with suppress(Exception):
                self.run_one()

    def shutdown(self, wait: bool = True, cancel_futures: bool = False) -> None:
        del wait, cancel_futures
        self.run_all()


class Server:
    """The writer over a data directory. It is moved to another directory where it ends early.

    replies: what the writer has answered, by the future that waits for it. random: decides what a
    disk has after a loss of power.
    """

    def __init__(self, folder: Path, calls: SystemCalls, random: Random) -> None:
        self._folder, self._calls, self._random = folder, calls, random
        self._times = 0
        self.data = folder / "data"
        self.data.mkdir(parents=True)
        self.replies: dict[Any, Any] = {}
        self._database: sqlite3.Connection | None = None
        self._record()

    def start(self) -> None:
        """Recover all models. Raises StartupError, after which nothing is open."""
        settings = Settings(
            data=self.data, snapshot_samples=SNAPSHOT_SAMPLES, snapshots=3, idempotency_keys=100_000
        )
        self.storage = open_storage(self.data, settings.snapshots)
        self.saver = Saver()
        self.writer = Writer(
            self.storage, settings, lambda given, _: self.replies.update(given), math.inf
        )
        self.writer.snapshots._saver.shutdown()
        self.writer.snapshots._saver = self.saver  # type: ignore[assignment]
        try:
            self.writer.recover(lambda _: None)
        except BaseException:
            self.storage.close()
            raise
        self._database = sqlite3.connect(journal_path(self.data), isolation_level=None)

    def rows(self) -> list[LogRow]:
        """Return what the log has."""
        assert self._database is not None
        with self._calls.paused():
            return read_log(self._database)

    @property
    def snapshots(self) -> Path:
        return snapshots_path(self.data)

    def stop(self) -> None:
        """End as SIGTERM ends it."""
        self.saver.run_all()
        self.saver.at_once = True
        self._close_database()
        self.writer.close()

    def note_calls(self) -> list[Record]:
        """Return the calls since the last time, which have not reached the model of the disk."""
        found = list(read_records(self._log))
        os.truncate(self._log, 0)
        return found

    def follow(self, records: list[Record]) -> None:
        """Have the model of the disk do what was done."""
        self._disk.follow(records)

    def move(self, loss: str) -> None:
        """End at once, and be in another directory with what is left of this one.

        loss: "keep" where the process is killed; see `Disk.lose_power` where power is lost.
        """
        before, self._times = self.data, self._times + 1
        self.data = self._folder / f"data{self._times}"
        self._calls.end_record()
        self._calls.heal()
        self._disk.lose_power(self._random, loss, self.data)
        self._close_database()
        self.storage.close()
        shutil.rmtree(before)
        if loss != "keep":
            (self._folder / "boot").write_text(str(self._times))
        self._record()

    def _record(self) -> None:
        self._log = self._folder / "calls"
        self._log.unlink(missing_ok=True)
        os.environ["POWER_BOOT"] = str(self._folder / "boot")
        (self._folder / "boot").touch()
        self._disk = Disk(self.data)
        self._calls.record(self.data, self._log)

    def keep_few_pages(self) -> None:
        """Have SQLite keep few pages of the file in memory from the next start on."""
        with self._calls.paused():
            database = sqlite3.connect(journal_path(self.data))
            database.execute(f"PRAGMA default_cache_size = {_CACHED_PAGES}")
            database.close()

    def _close_database(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def close(self) -> None:
        """Leave nothing open."""
        self._calls.heal()
        self._calls.end_record()
        self._close_database()
        self.storage.close()
        os.environ.pop("POWER_BOOT", None)


__all__ = ["LOSSES", "Saver", "Server"]
