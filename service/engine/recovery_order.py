"""Which models are recovered at the same time, and how they share the journal and the processors.

Each model is replayed by itself, in its blocks and with the number of threads that its journal
names; so what comes out does not depend on what is recovered beside it. One model at a time uses
the storage while the others compute.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import NamedTuple

from wolfstream.service.engine.recovery import note_beginning, recover_model
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.spec.stored import read_stored_spec
from wolfstream.service.storage.entries import CatalogueEntry
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.term import Term

# While it is recovered, a model takes this multiple of its snapshot's bytes, what its heads took
# when it was saved, and these besides.
_SNAPSHOT_FACTOR, _MODEL_BYTES = 4, 32 << 20


class Room(NamedTuple):
    """What recovery may use.

    models: at a time. n_bytes: that these may take together while they are recovered. is_scarce:
    see `recover_model`.
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
    """Yield the learners and terms of all models, as they were acknowledged, each once recovered.

    use_threads: sets the threads of a matrix product. begun: called with each model before it is
    recovered, on any thread.

    The journal knows in the replay of which models a process has ended. One of them may take more
    memory than there is: they come last, each alone, so that no other is held responsible. A model
    that cannot be recovered is broken: it keeps the state that its replay reached, and its files do
    not change. Raises StartupError if the journal has lost what it acknowledged.
    """
    there = storage.catalogue.models()
    waiting = sorted(
        (_wanted(found, there, storage) for found in there),
        key=lambda one: one.alone,
    )
    sharing = Sharing(use_threads)
    running: dict[Future[tuple[Learner, Term]], _Wanted] = {}
    pool = ThreadPoolExecutor(room.models, "recovery")
    try:
        while waiting or running:
            while waiting and _fits(waiting[0], list(running.values()), room):
                one = waiting.pop(0)
                running[pool.submit(_recover, one, storage, sharing, room.is_scarce, begun)] = one
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                del running[done]
                yield done.result()
    finally:
        sharing.end()
        pool.shutdown(wait=False, cancel_futures=True)


class _Wanted(NamedTuple):
    """A model to be recovered.

    n_bytes: the approximate memory. alone: whether no other may be recovered at the same time.
    champion: the number of the model that it follows, or None. is_followed: whether another one
    follows it.
    """

    found: CatalogueEntry
    n_bytes: int
    alone: bool
    champion: int | None
    is_followed: bool


def _wanted(found: CatalogueEntry, there: list[CatalogueEntry], storage: Storage) -> _Wanted:
    n_bytes, snapshots = _MODEL_BYTES, storage.snapshots
    with suppress(OSError):  # one that cannot be read is noticed later
        for sequence in snapshots.sequences(found.number)[:1]:
            snapshot = snapshots.describe(found.number, sequence)
            if snapshot is not None:
                known = (snapshot.plain or {}).get("memory_bytes", 0)  # older versions had none
                n_bytes += _SNAPSHOT_FACTOR * snapshot.n_bytes + known
    champion = found.follows if found.follows in [other.number for other in there] else None
    is_followed = found.number in [other.follows for other in there]
    alone = storage.journal.replays.crashes(found.number) > 0
    return _Wanted(found, n_bytes, alone, champion, is_followed)


def _fits(one: _Wanted, others: list[_Wanted], room: Room) -> bool:
    if not others:
        return True
    if one.alone or others[0].alone or len(others) >= room.models:
        return False
    return one.n_bytes + sum(other.n_bytes for other in others) <= room.n_bytes


def _recover(
    one: _Wanted,
    storage: Storage,
    sharing: "Sharing",
    is_scarce: Callable[[], bool],
    begun: Callable[[Model], None],
) -> tuple[Learner, Term]:
    number, name, spec, epoch, _ = one.found
    with sharing.using_storage():
        learner = Learner(Model(number, name, read_stored_spec(spec)), epoch)
        begun(learner.model)
        if one.is_followed:
            learner.record_losses()
        recovered = recover_model(learner, storage, sharing.computing, one.champion, is_scarce)
        note_beginning(learner, spec)
        return recovered


class _Ended(BaseException):
    """Recovery is over, because of an error of another model; no handler may go on."""


class Sharing:
    """What models share that are recovered at the same time."""

    def __init__(self, use_threads: Callable[[int], None]) -> None:
        # Held by the one that uses the storage.
        self._storage = threading.Lock()
        self._ended = False
        self._use_threads = use_threads
        self._changed = threading.Condition()
        self._computing = self._count = 0

    @contextmanager
    def using_storage(self) -> Iterator[None]:
        """Use the storage, except during `computing` within the block."""
        with self._storage:
            self._check()
            yield

    @contextmanager
    def computing(self, count: int) -> Iterator[None]:
        """Compute with this many threads, while others may use the storage."""
        self._storage.release()
        try:
            with self._products_on(count):
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
            raise _Ended

    @contextmanager
    def _products_on(self, count: int) -> Iterator[None]:
        """Wait for those who compute with another number of threads, which the process has one of.

        Who uses several has them alone.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._computing or count == self._count == 1)
            if count != self._count:
                self._use_threads(count)
                self._count = count
            self._computing += 1
        try:
            yield
        finally:
            with self._changed:
                self._computing -= 1
                self._changed.notify_all()
