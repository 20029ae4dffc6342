"""The writer's threads: the first recovers, compiles, then works off the queue until it is closed.

Whenever the working thread computes for long, another one is started to go on with the queue (see
`engine.writer_role`). The former ends once it has finished what it computes.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from wolfstream.service.compilation.warm_up import WarmUp
from wolfstream.service.engine.group_queue import GroupQueue
from wolfstream.service.engine.queue_items import Item, Waiter
from wolfstream.service.engine.readiness import Phase
from wolfstream.service.engine.writer import Writer

logger = logging.getLogger(__name__)

# A thread that has been aside for this long is relieved; it is also how often that is checked.
_ASIDE_SECONDS = 0.02
# One may be in a long turn, one in a job, and one in a turn that was expected to be short.
_MOST_THREADS = 4
# For how long short turns are taken before the queue is looked at again.
_STEP_SECONDS = 0.05


class WriterThread:
    """The threads, started on the event loop and reporting to it through callbacks.

    Args:
        writer: what the threads run.
        queue: the requests and orders to work off.
        phase: told how far recovery and compilation are.
        loads: name -> model file, of the models to load after recovery.
        warm_up: compiles the numerics, what the first requests need before the rest.
        failed: called on the event loop with every waiter whose outcome is unknown, after the
            writer has failed.

    Attributes:
        ready: done once requests are taken; raises what recovery raised.
    """

    def __init__(
        self,
        writer: Writer,
        queue: GroupQueue[Item],
        phase: Phase,
        loads: Mapping[str, Path],
        warm_up: WarmUp,
        failed: Callable[[list[Waiter]], None],
    ) -> None:
        self._writer, self._queue, self._phase = writer, queue, phase
        self._loads = loads
        self._warm_up = warm_up
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = self._loop.create_future()
        # Set once the queue is worked off and closed, or the writer has failed.
        self._ended = threading.Event()
        # Set whenever the working thread wakes up; the relief thread sleeps while it is not set.
        self._working = threading.Event()
        # All living threads, in the order of their start; the last one works off the queue.
        self._threads: list[threading.Thread] = []
        # Those among them that wait for the queue.
        self._idle = set[threading.Thread]()
        self._start(self._run)

    def _start(self, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, name="writer", daemon=True)
        self._threads.append(thread)
        try:
            thread.start()
        except RuntimeError as error:  # no memory for a thread: the present ones go on
            self._threads.remove(thread)
            logger.warning("writer thread not started, the present one goes on: error=%s", error)

    async def join(self) -> None:
        """Wait until the queue is worked off and the last snapshots are saved."""
        await asyncio.to_thread(self._ended.wait)

    def _run(self) -> None:
        try:
            self._prepare()
        except Exception as error:
            self._loop.call_soon_threadsafe(self.ready.set_exception, error)
            self._end()
            return
        self._loop.call_soon_threadsafe(self._open)
        self._working.set()  # requests may wait already, and this thread was never idle
        threading.Thread(target=self._relieve, name="writer relief", daemon=True).start()
        self._work()

    def _relieve(self) -> None:
        """Start another thread whenever the working one computes for long."""
        while not self._ended.wait(_ASIDE_SECONDS):
            self._working.wait()
            self._working.clear()
            if self._threads[-1] not in self._idle:
                self._working.set()
                if self._is_relief_due():
                    self._start(self._work)

    def _is_relief_due(self) -> bool:
        aside = self._writer.role.seconds_aside(self._threads[-1].ident)
        return aside >= _ASIDE_SECONDS and len(self._threads) < _MOST_THREADS

    def _work(self) -> None:
        """Work off the queue until another thread takes over, or until it is closed and empty."""
        try:
            while self._has_queue and not self._ended.is_set():
                changes = self._queue.changes
                if not self._step() and self._has_queue:
                    self._rest(changes)
        finally:
            if not self._has_queue:
                self._threads.remove(threading.current_thread())
            self._queue.wake()  # the models that this thread used may be free now

    @property
    def _has_queue(self) -> bool:
        """Whether this thread is the one that works off the queue."""
        return self._threads[-1] is threading.current_thread()

    def _step(self) -> bool:
        """Take what waits and work some of it off; return whether there was anything to do."""
        with self._writer.role.step():
            if self._ended.is_set():
                return True
            writer = self._writer
            group = self._queue.take(writer.busy, writer.may_begin_order, writer.max_request_bytes)
            try:
                if group:
                    self._writer.begin(group, _STEP_SECONDS)
                goes_on = self._writer.can_go_on and self._has_queue
                if goes_on:
                    self._writer.go_on()
            except Exception:
                self._fail(group)
                return True
            return bool(group) or goes_on

    def _rest(self, changes: int) -> None:
        """Wait for the next change of the queue; save and end if there will be none."""
        if not self._queue.is_done or self._writer.busy:
            self._wait(changes)
        else:
            try:
                self._writer.close()
            finally:
                self._end()

    def _wait(self, changes: int) -> None:
        """Wait until the queue has changed since `changes` was read."""
        thread = threading.current_thread()
        self._idle.add(thread)
        self._queue.wait(changes)
        self._idle.discard(thread)
        if not self._working.is_set():
            self._working.set()

    def _end(self) -> None:
        self._ended.set()
        self._working.set()

    def _fail(self, group: list[Item]) -> None:
        logger.exception("writer failed, restart the server to recover from the journal")
        waiting = [*(item.waiter for item in group), *self._writer.waiting()]
        self._loop.call_soon_threadsafe(self._failed, waiting)
        self._end()

    def _prepare(self) -> None:
        self._writer.recover(self._phase.report)
        for i, (name, path) in enumerate(self._loads.items(), 1):
            self._phase.report(f"loading model {i} of {len(self._loads)}")
            self._writer.new_models.load(name, path)
        models = self._writer.models.all()
        logger.info("recovery finished: models=%d", len(models))
        self._phase.report("compiling")
        self._loop.call_soon_threadsafe(self._phase.accept)
        kinds = [(model.spec, model.published.rows.names is not None) for model in models]
        self._warm_up.before_ready(kinds, self._phase.report)

    def _open(self) -> None:
        self._phase.open()
        self.ready.set_result(None)
