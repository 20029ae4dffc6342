"""The writer's role: one thread at a time has it, and lends it to another one while it computes.

    hold ──aside──► computes for models in use ──► hold again, once the other lets go
                      meanwhile another thread: hold, learn for other models, ...

What a model costs is not known before it was computed. So nothing long is computed by the holder:
whoever computes steps aside, and only if that takes long does `writer_thread` send another thread
to go on with the role. A short computation costs no more than letting go of a lock.

Only the holder touches the journal, the keys and what is said of models. What is computed aside
touches the learners of models in use, of which nothing else begins meanwhile.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

from wolfstream.service.model.live import Model

# Entered around matrix products that are computed on so many threads.
Products: TypeAlias = Callable[[int], AbstractContextManager[None]]


class WriterRole:
    """The role, and who has stepped aside from it.

    computing: the models that a turn computes for, aside. of_job: the models that the job under way
    is about. has_job: whether one is.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._holder: int | None = None
        # thread -> since when it has been aside, on the monotonic clock
        self._aside: dict[int, float] = {}
        # thread -> when its present step began
        self._steps: dict[int, float] = {}
        self.computing, self.of_job = set[Model](), set[Model]()
        self.has_job = False

    @property
    def busy_since(self) -> float | None:
        """When the oldest step that is under way began; None if there is none."""
        return min(self._steps.copy().values(), default=None)

    def seconds_aside(self, thread: int | None) -> float:
        """Return for how long a thread has been aside; on any thread."""
        since = self._aside.get(thread or 0)
        return 0.0 if since is None else time.monotonic() - since

    @contextmanager
    def step(self) -> Iterator[None]:
        """Hold the role within the block, except in `aside`; within another step do nothing."""
        thread = threading.get_ident()
        if self._holder == thread:
            yield
            return
        self._changed.acquire()
        self._holder, self._steps[thread] = thread, time.monotonic()
        try:
            yield
        finally:
            del self._steps[thread]
            self._holder = None
            self._changed.release()

    @contextmanager
    def aside(self, *models: Model) -> Iterator[None]:
        """Let another thread have the role within the block; outside of a step do nothing.

        models: that it computes for, unless it does so in a job about them.
        """
        thread = threading.get_ident()
        if self._holder != thread:
            yield
            return
        self.computing.update(models)
        self._aside[thread] = time.monotonic()
        self._holder = None
        self._changed.release()
        try:
            yield
        finally:
            self._changed.acquire()
            self._holder = thread
            del self._aside[thread]
            self.computing.difference_update(models)
            self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the role within the block while no other thread is aside."""
        self._wait_while(lambda: bool(self._aside))
        yield

    def wait_until_unused(self, model: Model) -> None:
        """Let other threads have the role until a model is not in use; within a step only."""
        self._wait_while(lambda: self.uses(model))

    def _wait_while(self, condition: Callable[[], bool]) -> None:
        thread = threading.get_ident()
        if self._holder == thread:
            while condition():
                self._holder = None
                self._changed.wait()
                self._holder = thread

    def uses(self, model: Model) -> bool:
        """Return whether a model is in use, so that nothing of it may begin."""
        return model in self.computing or model in self.of_job

    @property
    def in_use(self) -> set[Model]:
        """The models that are in use."""
        return self.computing | self.of_job

    def may_begin_job(self, models: Iterable[Model]) -> bool:
        """Return whether a job about models may begin: no other one is under way."""
        return not self.has_job and self.computing.isdisjoint(models)

    @contextmanager
    def job(self, models: Iterable[Model]) -> Iterator[None]:
        """Do something other than learning within the block, which may be long.

        One at a time: a job may copy the whole of a model, and there is room for one copy.
        """
        self.has_job, self.of_job = True, set(models)
        try:
            yield
        finally:
            self.has_job, self.of_job = False, set()
