"""The writer's thread: it recovers, compiles, then works off the queue until that is closed."""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from wolfstream.service.engine.group_queue import GroupQueue
from wolfstream.service.engine.phase import Phase
from wolfstream.service.engine.queue_items import Item
from wolfstream.service.engine.warm_up import WarmUp
from wolfstream.service.engine.writer import Writer

logger = logging.getLogger(__name__)


class WriterThread:
    """The thread, started on the event loop and reporting to it through callbacks.

    loads: model files, by the names of the models that they become after recovery.
    warm_up: compiles the numerics, what the first requests need before these.
    failed: called on the event loop with the group whose fate is unknown.
    ready: done once requests are taken; raises what recovery raised.
    """

    def __init__(
        self,
        writer: Writer,
        queue: GroupQueue[Item],
        phase: Phase,
        loads: Mapping[str, Path],
        warm_up: WarmUp,
        failed: Callable[[list[Item]], None],
    ) -> None:
        self._writer, self._queue, self._phase = writer, queue, phase
        self._loads = loads
        self._warm_up = warm_up
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    async def join(self) -> None:
        """Wait until the queue is worked off and the last snapshots are saved."""
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            self._prepare()
        except Exception as error:
            self._loop.call_soon_threadsafe(self.ready.set_exception, error)
            return
        self._loop.call_soon_threadsafe(self._open)
        while (group := self._queue.take(self._writer.busy)) or self._writer.busy:
            try:
                self._writer.begin(group)
                if self._writer.busy:
                    self._writer.go_on()
            except Exception:
                logger.exception(
                    "the writer failed; restart the server to recover from the journal"
                )
                waiting = [*group, *self._writer.waiting()]
                self._loop.call_soon_threadsafe(self._failed, waiting)
                return
        self._writer.close()

    def _prepare(self) -> None:
        self._writer.recover(self._phase.report)
        for i, (name, path) in enumerate(self._loads.items(), 1):
            self._phase.report(f"loading model {i} of {len(self._loads)}")
            self._writer.new_models.load(name, path)
        models = self._writer.models.all()
        logger.info("%d models; compiling", len(models))
        self._phase.report("compiling")
        self._loop.call_soon_threadsafe(self._phase.accept)
        kinds = [(model.spec, model.published.rows.names is not None) for model in models]
        self._warm_up.before_ready(kinds, self._phase.report)

    def _open(self) -> None:
        self._phase.open()
        self.ready.set_result(None)
