"""Decides which models are recovered at the same time, and shares storage and processors.

Each model is replayed by itself, in the blocks and with the number of threads that its log names,
so its bits do not depend on what is recovered beside it. One model at a time uses the storage
while the others compute. A replay that takes long may go on beside a writer that serves the other
models: it then uses the storage in the writer's role, and computes aside. Where the process has
little memory left, as the system counts it, the models that are still to come are not recovered.
"""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import NamedTuple

from wolfstream.service.engine.writer_role import Products, WriterRole
from wolfstream.service.errors import StartupError, StorageFailed
from wolfstream.service.model.learner import Learner
from wolfstream.service.process_settings import give_back_memory
from wolfstream.service.recovery.model_recovery import (
    new_learner,
    recover_model,
    warn_of_other_numerics,
)
from wolfstream.service.settings import Settings
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
) -> Iterator[tuple[Learner, Term]]:
    """Yield the learner and term of each model as soon as it is recovered; see `Recovery`."""
    yield from Recovery(storage, use_threads, room).recovered()


class Recovery:
    """Recovers all models, each as it was acknowledged. Used by one thread at a time.

    Those with the fewest samples to replay come first. The replays of some models may have ended a
    process before, perhaps for want of memory. These models come last, each alone, so that no other
    is blamed for it. A model that cannot be recovered is broken: it keeps the state that its replay
    reached, and its files do not change.

    Args:
        storage: of logs, snapshots and the catalogue.
        use_threads: sets the number of threads of matrix products.
        room: what recovery may use.
        begun: called with each learner and the sequence at which its log ends, before the model is
            recovered; on any thread.
        role: held by whoever uses the storage; None for one of its own.

    Raises StartupError.
    """

    def __init__(
        self,
        storage: Storage,
        use_threads: Callable[[int], None],
        room: Room,
        begun: Callable[[Learner, int], None] = lambda *_: None,
        role: WriterRole | None = None,
    ) -> None:
        self._storage, self._room, self._begun = storage, room, begun
        entries = storage.catalogue.models()
        self.n_models = len(entries)
        self._waiting = [_job(entry, entries, storage) for entry in entries]
        self._waiting.sort(key=lambda job: (job.alone, job.samples))
        self._shared = SharedResources(use_threads, role)
        self._running: dict[Future[tuple[Learner, Term]], _Job] = {}
        self._pool = ThreadPoolExecutor(room.models, "recovery")

    @property
    def left(self) -> bool:
        """Whether there are models still to recover."""
        return bool(self._waiting or self._running)

    @property
    def may_go_on_beside(self) -> bool:
        """Whether other models may be served before the rest is recovered.

        Challengers are recovered with their champions. A model whose replay has ended a process
        would take what is acknowledged for the others with it.
        """
        return not self._waiting and not any(
            job.alone or job.is_followed or job.champion is not None
            for job in self._running.values()
        )

    def recovered(self, seconds: float | None = None) -> Iterator[tuple[Learner, Term]]:
        """Yield the learner and term of each model as soon as it is recovered.

        seconds: how long to wait for one; then it ends, and may be called again. None: forever.

        Raises StartupError if a log has lost what it acknowledged, NotReady if the process stops.
        """
        try:
            while self.left:
                while self._waiting and _fits(
                    self._waiting[0], list(self._running.values()), self._room
                ):
                    self._begin(self._waiting.pop(0))
                ended = wait(self._running, seconds, FIRST_COMPLETED).done
                if not ended:
                    return
                for done in ended:
                    del self._running[done]
                    yield done.result()
        except BaseException:
            self._close()
            raise
        self._close()

    def go_on_beside(self, threads: int, products: Products) -> None:
        """Share the storage and the processors with a writer that serves models from now on.

        Args:
            threads: of its products.
            products: the context in which it computes aside.
        """
        self._shared.go_on_beside(threads, products)

    def _begin(self, job: "_Job") -> None:
        is_scarce, begun = self._room.is_scarce, self._begun
        future = self._pool.submit(_recover, job, self._storage, self._shared, is_scarce, begun)
        self._running[future] = job

    def _close(self) -> None:
        self._shared.end()
        # Wait until each replay has ended its block: the process cannot exit before, and whoever
        # stops the server must know that it has not.
        self._pool.shutdown(cancel_futures=True)


class _Job(NamedTuple):
    """The recovery of one model."""

    entry: CatalogueEntry
    n_bytes: int  # the approximate memory that it takes
    samples: int  # to replay
    alone: bool  # whether nothing else may be recovered at the same time
    champion: int | None  # the id of the model that it follows
    is_followed: bool  # whether another model follows it


def _job(entry: CatalogueEntry, entries: list[CatalogueEntry], storage: Storage) -> _Job:
    n_bytes, samples, snapshots = _MODEL_BYTES, 0, storage.snapshots
    with suppress(OSError, StorageFailed, StartupError):  # recovery will report what is unreadable
        samples = storage.journal.reader(entry.number).end()
        for sequence in snapshots.sequences(entry.number)[:1]:
            samples = max(samples - sequence, 0)
            snapshot = snapshots.describe(entry.number, sequence)
            if snapshot is not None:
                heads = (snapshot.plain or {}).get("memory_bytes", 0)
                n_bytes += _SNAPSHOT_FACTOR * snapshot.n_bytes + heads
    champion = entry.follows if entry.follows in [other.number for other in entries] else None
    is_followed = entry.number in [other.follows for other in entries]
    alone = storage.journal.replays.crashes(entry.number) > 0
    return _Job(entry, n_bytes, samples, alone, champion, is_followed)


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
    begun: Callable[[Learner, int], None],
) -> tuple[Learner, Term]:
    model_id, name, spec, *_ = job.entry
    with shared.using_storage():
        try:
            learner = new_learner(job.entry)
        except StartupError as error:
            raise StartupError(f"model {name!r} cannot be brought back: {error}") from None
        with suppress(StorageFailed, StartupError):  # recovery itself will report it
            begun(learner, storage.journal.reader(model_id).end())
        if job.is_followed:
            learner.record_losses()
        recovered = recover_model(learner, storage, shared.computing, job.champion, is_scarce)
        warn_of_other_numerics(learner, spec)
        return recovered


class _RecoveryEnded(BaseException):
    """Another model's error has ended recovery. Not an Exception, so that no handler goes on."""


class SharedResources:
    """What models in recovery share: the storage, and the process's number of threads.

    Args:
        use_threads: sets the number of threads of matrix products.
        role: held by whoever uses the storage; None for one of its own.
    """

    def __init__(self, use_threads: Callable[[int], None], role: WriterRole | None = None) -> None:
        self._role = role or WriterRole()
        self._ended = False  # the storage must not be used any more
        self._use_threads = use_threads
        self._changed = threading.Condition()  # guards the three below
        self._computing = 0  # how many models compute now
        self._threads = 0  # the number of threads that was set last; 0: none was
        self._wanted = list[int]()  # by those that compute, or wait to
        # The context to compute in beside a writer that serves models; None before there is one.
        self._beside: Products | None = None

    @contextmanager
    def using_storage(self) -> Iterator[None]:
        """Hold the storage within the block, except in `computing`."""
        with self._role.step(in_background=True):
            self._check()
            yield

    @contextmanager
    def computing(self, threads: int) -> Iterator[None]:
        """Compute with this many threads within the block, while others may use the storage."""
        try:
            if self._beside is not None:
                with self._beside(threads):
                    yield
            else:
                with self._role.aside(), self._products_on(threads):
                    yield
        finally:
            self._check()

    def go_on_beside(self, threads: int, products: Products) -> None:
        """Wait until all products use this many threads; compute in this context from then on."""
        with self._role.step(), self._changed:
            self._changed.wait_for(lambda: all(wanted == threads for wanted in self._wanted))
            self._beside = products

    def end(self) -> None:
        """Let no model use the storage any more, so that it can be closed."""
        with self._role.step():
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
            self._wanted.append(threads)
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
                self._wanted.remove(threads)
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
                give_back_memory()
                self._scarce = self._look()
            self._looked = now
        return self._scarce

    def _look(self) -> bool:
        return self._settings.left_bytes() < self._settings.most_bytes // _LEFT
