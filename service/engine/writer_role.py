"""The writer's role: a lock that its holder lends to another thread while it computes.

    hold ──aside──► compute for some models ──► hold again, once the other thread lets go
                      meanwhile another thread: hold, learn for other models, ...

Nobody knows what a model's turn costs before it was computed. So the holder computes nothing long:
it steps aside first. `writer_thread` sends another thread to take the role only if that lasts; a
short computation costs no more than releasing a lock.

Only the holder touches the log, the idempotency keys and the attributes of models. A thread that is
aside touches only the learners of models that are in use, for which nothing else begins meanwhile.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

from wolfstream.service.model.live import Model

# A context in which matrix products are computed by this many threads.
Products: TypeAlias = Callable[[int], AbstractContextManager[None]]


class WriterRole:
    """The role, and who has stepped aside from it.

    Attributes:
        computing: the models that some thread computes for, aside.
        job_models: the models that the present job is about.
        has_job: whether a job is under way.
    """

    def __init__(self) -> None:
        # Its lock is the role; notified when a thread comes back from aside.
        self._changed = threading.Condition(threading.Lock())
        self._holder: int | None = None  # the thread that holds the lock, by its ident
        # thread -> since when it has been aside, by the monotonic clock
        self._aside: dict[int, float] = {}
        # thread -> when its present step began
        self._steps: dict[int, float] = {}
        self.computing, self.job_models = set[Model](), set[Model]()
        self.has_job = False

    @property
    def busy_since(self) -> float | None:
        """When the oldest step under way began, by the monotonic clock; None if there is none."""
        return min(self._steps.copy().values(), default=None)

    def seconds_aside(self, thread: int | None) -> float:
        """Return how long a thread has been aside; 0 if it is not. On any thread."""
        since = self._aside.get(thread or 0)
        return 0.0 if since is None else time.monotonic() - since

    @contextmanager
    def step(self, in_background: bool = False) -> Iterator[None]:
        """Hold the role within the block, except in `aside`; within another step, do nothing.

        in_background: whether the step is none of the writer's work, which `busy_since` tells.
        """
        thread = threading.get_ident()
        if self._holder == thread:
            yield
            return
        self._changed.acquire()
        self._holder = thread
        if not in_background:
            self._steps[thread] = time.monotonic()
        try:
            yield
        finally:
            self._steps.pop(thread, None)
            self._holder = None
            self._changed.release()

    @contextmanager
    def aside(self, *models: Model) -> Iterator[None]:
        """Let another thread hold the role within the block; outside a step, do nothing.

        models: those that the block computes for, unless it belongs to a job about them.
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

    def wait_until_alone(self) -> None:
        """Lend the role out until no other thread is aside; only within a step."""
        self._wait_while(lambda: bool(self._aside))

    def wait_until_unused(self, model: Model) -> None:
        """Lend the role out until a model is not in use; only within a step."""
        self._wait_while(lambda: self.uses(model))

    def _wait_while(self, condition: Callable[[], bool]) -> None:
        thread = threading.get_ident()
        if self._holder == thread:
            while condition():
                self._holder = None
                self._changed.wait()
                self._holder = thread

    def uses(self, model: Model) -> bool:
        """Return whether a model is in use, so that nothing else may begin for it."""
        return model in self.computing or model in self.job_models

    @property
    def in_use(self) -> set[Model]:
        """The models that are in use."""
        return self.computing | self.job_models

    def may_begin_job(self, models: Iterable[Model]) -> bool:
        """Return whether a job about these models may begin: there is no other, nor a turn."""
        return not self.has_job and self.computing.isdisjoint(models)

    @contextmanager
    def job(self, models: Iterable[Model]) -> Iterator[None]:
        """Do something other than learning within the block, which may take long.

        There is one job at a time: it may copy a whole model, and there is memory for one copy.
        """
        self.has_job, self.job_models = True, set(models)
        try:
            yield
        finally:
            self.has_job, self.job_models = False, set()
