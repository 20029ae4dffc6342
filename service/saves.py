"""When snapshots are made: states are copied by the writer, and written beside it."""

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from service.errors import SnapshotFailed, StorageFailed
from service.idempotency import Keys
from service.log import Log
from service.metrics import Metrics
from service.model import Model
from service.snapshots import Snapshots, State

logger = logging.getLogger(__name__)


class Saves:
    """The snapshots that are being written, at most one of a model. Used by the writer's thread.

    samples: learned between two snapshots of a model.
    lives: whether a model has not been deleted.
    """

    def __init__(
        self,
        log: Log,
        keys: Keys,
        snapshots: Snapshots,
        metrics: Metrics,
        samples: int,
        lives: Callable[[Model], bool],
    ) -> None:
        self._log, self._keys, self._snapshots = log, keys, snapshots
        self._metrics = metrics
        self._samples = samples
        self._lives = lives
        self._saver = ThreadPoolExecutor(1, "snapshot")
        self._saving: dict[Model, Future[None]] = {}

    def start_due(self, model: Model) -> None:
        """Begin a snapshot if enough has been learned since the last one."""
        self.finish()
        # Counted from the last attempt: a full disk is not tried again with every group.
        # A fit weighs as much as the samples that it was made of.
        learned = model.sequence - max(model.snapshot_sequence, model.snapshot_attempt)
        learned += model.fitted
        if learned >= self._samples and model not in self._saving:
            self._start(model)

    def start(self, model: Model) -> "Future[None]":
        """Begin a snapshot now; what is done once it is on disk. Raises SnapshotFailed."""
        self.finish()
        if model in self._saving:
            raise SnapshotFailed(f"a snapshot of model {model.name!r} is being written; try again")
        self._start(model)
        if model not in self._saving:
            raise SnapshotFailed("the log could not be written; nothing is lost")
        return self._saving[model]

    def finish(self, wait: bool = False) -> None:
        """Note the snapshots that are written and drop the log behind the newest two.

        Those before them are for going back to; to keep the log for them as well would take
        many times the room, and a fall-back needs one.
        """
        for model, saving in list(self._saving.items()):
            if wait or saving.done():
                del self._saving[model]
                self._finish(model, saving)

    def close(self, models: list[Model]) -> None:
        """Save what the models have learned since their last snapshots."""
        self.finish(wait=True)
        for model in models:
            if model.sequence > model.snapshot_sequence:
                self._start(model)
        self.finish(wait=True)
        self._saver.shutdown()

    def _start(self, model: Model) -> None:
        if model.broken:
            return
        model.snapshot_attempt, model.fitted = model.sequence, 0
        try:
            # What is behind a snapshot is not replayed, so its answers must be known.
            self._keys.write()
        except StorageFailed as error:
            logger.error("model %s: no snapshot: %s; the log is kept", model.name, error)
            return
        state = State(*model.state())
        self._saving[model] = self._saver.submit(self._snapshots.save, model.id, state)

    def _finish(self, model: Model, saving: "Future[None]") -> None:
        if not self._lives(model):
            self._snapshots.delete(model.id)
            return
        try:
            saving.result()
            model.snapshot_time = time.monotonic()
            model.snapshot_sequence, *older = self._snapshots.sequences(model.id)
            if older:
                self._log.drop(model.id, older[0])
            self._metrics.snapshots_saved += 1
        except (OSError, MemoryError, StorageFailed) as error:
            self._metrics.snapshots_failed += 1
            logger.error("model %s: no snapshot: %s; the log is kept", model.name, error)
