"""Decides which models are recovered at the same time, and shares storage and processors.

Each model is replayed by itself, in the blocks and with the number of threads that its log names,
so its bits do not depend on what is recovered beside it. One model at a time uses the storage
while the others compute. Where the process has little memory left, as the system counts it, the
models that are still to come are not recovered.
"""

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import NamedTuple

from wolfstream.service.engine.recovery import recover_model, warn_of_other_numerics
from wolfstream.service.errors import Invalid, StartupError
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.settings import Settings
from wolfstream.service.spec.stored import read_stored_spec
from wolfstream.service.storage.entries import CatalogueEntry
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.term import Term

# The memory that a model takes during recovery: this multiple of its snapshot's bytes, what its
# heads took when it was saved, and these bytes.
_SNAPSHOT_FACTOR, _MODEL_BYTES = 4, 32 << 20
# Recovery leaves an eighth of all memory for the requests that the server will get.
_LEFT = 8
# The system is asked at most once in so long how much memory is left.
_LOOK_SECONDS = 0.05


class Room(NamedTuple):
    """What recovery may use.

    Attributes:
        models: how many are recovered at a time.
        n_bytes: how much memory they may take together meanwhile.
        is_scarce: see `recover_model`.
    """

    models: int
    n_bytes: int
    is_scarce: Callable[[], bool] = lambda: False


def recover(
    storage: Storage,
    use_threads: Callable[[int], None],
    room: Room,
    begun: Callable[[Model], None] = lambda _: None,
) -> Iterator[tuple[Learner, Term]]:
    """Yield the learner and term of each model, as it was acknowledged, as soon as it is recovered.

    The replays of some models may have ended a process before, perhaps for want of memory. These
    models come last, each alone, so that no other is blamed for it. A model that cannot be
    recovered is broken: it keeps the state that its replay reached, and its files do not change.

    Args:
        storage: of logs, snapshots and the catalogue.
        use_threads: sets the number of threads of matrix products.
        room: what recovery may use.
        begun: called with each model before it is recovered; on any thread.

    Raises StartupError if a log has lost what it acknowledged.
    """
    entries = storage.catalogue.models()
    waiting = [_job(entry, entries, storage) for entry in entries]
    waiting.sort(key=lambda job: job.alone)
    shared = SharedResources(use_threads)
    running: dict[Future[tuple[Learner, Term]], _Job] = {}
    pool = ThreadPoolExecutor(room.models, "recovery")
    try:
        while waiting or running:
            while waiting and _fits(waiting[0], list(running.values()), room):
                job = waiting.pop(0)
                running[pool.submit(_recover, job, storage, shared, room.is_scarce, begun)] = job
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                del running[done]
                yield done.result()
    finally:
        shared.end()
        # Wait until each replay has ended its block: the process cannot exit before, and whoever
        # stops the server must know that it has not.
        pool.shutdown(cancel_futures=True)


class _Job(NamedTuple):
    """The recovery of one model."""

    entry: CatalogueEntry
    n_bytes: int  # the approximate memory that it takes
    alone: bool  # whether nothing else may be recovered at the same time
    champion: int | None  # the id of the model that it follows
    is_followed: bool  # whether another model follows it


def _job(entry: CatalogueEntry, entries: list[CatalogueEntry], storage: Storage) -> _Job:
    n_bytes, snapshots = _MODEL_BYTES, storage.snapshots
    with suppress(OSError):  # recovery itself will report what cannot be read
        for sequence in snapshots.sequences(entry.number)[:1]:
            snapshot = snapshots.describe(entry.number, sequence)
            if snapshot is not None:
                heads = (snapshot.plain or {}).get("memory_bytes", 0)
                n_bytes += _SNAPSHOT_FACTOR * snapshot.n_bytes + heads
    champion = entry.follows if entry.follows in [other.number for other in entries] else None
    is_followed = entry.number in [other.follows for other in entries]
    alone = storage.journal.replays.crashes(entry.number) > 0
    return _Job(entry, n_bytes, alone, champion, is_followed)


def _fits(job: _Job, running: list[_Job], room: Room) -> bool:
    if not running:
        return True
    if job.alone or running[0].alone or len(running) >= room.models:
        return False
    return job.n_bytes + sum(other.n_bytes for other in running) <= room.n_bytes


def _recover(
    job: _Job,
    storage: Storage,
    shared: "SharedResources",
    is_scarce: Callable[[], bool],
    begun: Callable[[Model], None],
) -> tuple[Learner, Term]:
    model_id, name, spec, epoch, _ = job.entry
    with shared.using_storage():
        try:
            learner = Learner(Model(model_id, name, read_stored_spec(spec)), epoch)
        except Invalid as error:  # such as a learner of others that is not permitted any more
            raise StartupError(f"model {name!r} cannot be brought back: {error}") from None
        begun(learner.model)
        if job.is_followed:
            learner.record_losses()
        recovered = recover_model(learner, storage, shared.computing, job.champion, is_scarce)
        warn_of_other_numerics(learner, spec)
        return recovered


class _RecoveryEnded(BaseException):
    """Another model's error has ended recovery. Not an Exception, so that no handler goes on."""


class SharedResources:
    """What models in recovery share: the storage, and the process's number of threads."""

    def __init__(self, use_threads: Callable[[int], None]) -> None:
        self._storage = threading.Lock()  # held by the thread that uses the storage
        self._ended = False  # the storage must not be used any more
        self._use_threads = use_threads
        self._changed = threading.Condition()  # guards the two below
        self._computing = 0  # how many models compute now
        self._threads = 0  # the number of threads that was set last; 0: none was

    @contextmanager
    def using_storage(self) -> Iterator[None]:
        """Hold the storage within the block, except in `computing`."""
        with self._storage:
            self._check()
            yield

    @contextmanager
    def computing(self, threads: int) -> Iterator[None]:
        """Compute with this many threads within the block, while others may use the storage."""
        self._storage.release()
        try:
            with self._products_on(threads):
                yield
        finally:
            self._storage.acquire()
            self._check()

    def end(self) -> None:
        """Let no model use the storage any more, so that it can be closed."""
        with self._storage:
            self._ended = True

    def _check(self) -> None:
        if self._ended:
            raise _RecoveryEnded

    @contextmanager
    def _products_on(self, threads: int) -> Iterator[None]:
        """Compute matrix products on this many threads within the block.

        The number belongs to the process, so wait for models that use another one. With more than
        one thread, compute alone: there is no processor left for others.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._computing or threads == self._threads == 1)
            if threads != self._threads:
                self._use_threads(threads)
                self._threads = threads
            self._computing += 1
        try:
            yield
        finally:
            with self._changed:
                self._computing -= 1
                self._changed.notify_all()


class MemoryLeft:
    """Tells when memory is so scarce that no more of a model is to be recovered."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # When the system was asked last, by the monotonic clock, and what came of it.
        self._looked, self._scarce = float("-inf"), False

    def is_scarce(self) -> bool:
        """Return whether memory was scarce at the last look, which is recent; on any thread."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_SECONDS:
            self._scarce = self._look()
            if self._scarce:
                with suppress(OSError, AttributeError):  # another libc has no such function
                    ctypes.CDLL(None).malloc_trim(0)  # gives free memory back to the system
                self._scarce = self._look()
            self._looked = now
        return self._scarce

    def _look(self) -> bool:
        return self._settings.left_bytes() < self._settings.most_bytes // _LEFT
