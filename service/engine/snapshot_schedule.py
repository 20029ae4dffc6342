"""Schedules snapshots. The writer copies a model's state, and another thread saves it.

A snapshot bounds the replay after a crash. Once it is saved, the log before the snapshot that
precedes it is dropped.
"""

import logging
import math
import time
from collections.abc import Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from weakref import WeakKeyDictionary

from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.commits import Commits
from wolfstream.service.engine.followed_log import needed_by_challengers
from wolfstream.service.engine.idempotency import IdempotencyKeys
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.writer_role import Products, WriterRole
from wolfstream.service.errors import SnapshotFailed, StorageFailed
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.replay import present_origin
from wolfstream.service.storage.entries import Entry
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.snapshot_format import State

logger = logging.getLogger(__name__)


# Copies of states that wait to be saved take memory.
_AT_A_TIME = 2
# After a snapshot, at least this many times as long is spent learning as it kept the writer.
_LEARNING_PER_SNAPSHOT = 50.0


class SnapshotSchedule:
    """The snapshots that are due or being saved, one of each model. Used by the writer's thread.

    Args:
        storage: of logs, snapshots and the catalogue.
        models: that are learned here.
        keys: their idempotency keys, whose answers a snapshot writes.
        metrics: counts and durations.
        samples: how many a model learns between two snapshots.
        seconds: for how long it learns between two, if that comes first.
        commits: that write the logs.
        aside: see `Writer`.
        role: of the writer.
        last_seconds: how long `close` goes on saving; None for as long as it takes.
    """

    def __init__(
        self,
        storage: Storage,
        models: LiveModels,
        keys: IdempotencyKeys,
        metrics: Metrics,
        samples: int,
        seconds: float,
        commits: Commits,
        aside: Products,
        role: WriterRole,
        last_seconds: float | None,
    ) -> None:
        self._storage = storage
        self._snapshots = storage.snapshots
        self._models, self._keys = models, keys
        self._metrics = metrics
        self._samples, self._seconds = samples, seconds
        self._commits, self._aside, self._role = commits, aside, role
        self._last_seconds = last_seconds
        self._saver = ThreadPoolExecutor(1, "snapshot")
        # model -> snapshot being saved. Its result: how many rows that waited for labels had left
        # by then, whose entries the log need not keep.
        self._saving: dict[Model, Future[int]] = {}
        # The models among them whose logs are full.
        self._full: set[Model] = set()
        # model -> whether its log is full; a snapshot is to be started.
        self._due: dict[Model, bool] = {}
        # model -> how long its last snapshot kept the writer, in seconds
        self._took: WeakKeyDictionary[Model, float] = WeakKeyDictionary()
        # model -> sequence of the last snapshot that was read back because its log was full
        self._read_back: WeakKeyDictionary[Model, int] = WeakKeyDictionary()

    def schedule_if_due(self, learner: Learner) -> None:
        """Schedule a snapshot if the model has learned enough since the last one."""
        self.finish()
        model = learner.model
        # From the last attempt on, so that a full disk is not tried again with every group. A fit
        # counts as the samples of its window, and rows that wait for labels count, too.
        learned = learner.sequence - max(model.snapshot_sequence, learner.snapshot_attempt)
        learned += learner.fitted
        # A model whose snapshots keep the writer long has them rarely.
        longest = max(self._seconds, _LEARNING_PER_SNAPSHOT * self._took.get(model, 0.0))
        due = learned >= self._samples or (learned > 0 and learner.unsaved_seconds >= longest)
        if due and model not in self._saving:
            self._due.setdefault(model, False)

    def make_room(self, learner: Learner) -> None:
        """Schedule a snapshot because a model's log is full, once for each end of the log.

        When the snapshot has been saved and read back, all of the log before it is dropped, except
        what challengers have still to learn. So snapshots of these are made, too.
        """
        self.finish()
        for follower in (learner, *self._models.followers(learner.model)):
            begun = max(follower.model.snapshot_sequence, follower.snapshot_attempt)
            if follower.sequence > begun and follower.model not in self._saving:
                self._due[follower.model] = True

    def due(self) -> list[Learner]:
        """Return the learners whose snapshots are due and may be started."""
        if not self._due:
            return []
        self._due = {model: full for model, full in self._due.items() if self._is_here(model)}
        return [
            self._models.learner(model)
            for model, full in self._due.items()
            if full or not self._is_full()
        ]

    def _is_here(self, model: Model) -> bool:
        return model.led and self._models.is_live(model)

    def start_due(self, learner: Learner) -> None:
        """Start a snapshot that is due."""
        self._start(learner, full=self._due[learner.model])

    def start(self, model: Model) -> tuple[int, "Future[int]"]:
        """Start a snapshot now; return its sequence, and a future that is done once it is saved.

        Raises UnknownModel, ModelBroken, SnapshotFailed.
        """
        learner = self._models.usable(model)
        self.finish()
        if model in self._saving:
            raise SnapshotFailed(f"a snapshot of model {model.name!r} is being written; try again")
        self._start(learner)
        if model not in self._saving:
            raise SnapshotFailed("the journal could not be written; nothing is lost")
        return learner.sequence, self._saving[model]

    def wait_until_saved(self, saving: Sequence["Future[int]"]) -> None:
        """Wait until snapshots that were started are on disk. Raises SnapshotFailed."""
        try:
            for future in saving:
                future.result()
        except Exception as error:  # whatever numpy and zipfile raise under low memory, too
            raise SnapshotFailed(f"{error!r}; nothing has changed") from None
        self.finish(wait=True)

    def finish(self, wait: bool = False) -> None:
        """Record the snapshots that are saved, and drop each log before the newest two.

        Older snapshots are kept to roll back to; keeping the log for them as well would take many
        times the room. Recovery needs one snapshot to fall back on, except for a full log, which
        cannot even be kept for that one.

        wait: whether to wait until all that are being saved are.
        """
        if wait:
            with self._role.aside():
                wait_for(list(self._saving.values()))
        for model, saving in list(self._saving.items()):
            # Finishing drops entries of the log, which must not have an unfinished commit then.
            if wait or (saving.done() and not self._is_busy(model)):
                del self._saving[model]
                self._finish(model, saving)

    def _is_busy(self, model: Model) -> bool:
        return self._commits.is_busy(model) or model in self._role.computing

    def close(self) -> None:
        """Save what models have learned since their last snapshots, while there is time.

        The logs have all of it, too. Snapshots that are still being saved when the time is up are
        given up.
        """
        seconds = math.inf if self._last_seconds is None else self._last_seconds
        until = time.monotonic() + seconds
        self._finish_until(until)
        left = [learner for learner in self._models.learners() if _learned_since_snapshot(learner)]
        while left and time.monotonic() < until:
            while self._is_full() and time.monotonic() < until:
                self._finish_until(until, FIRST_COMPLETED)
            learner = left.pop(0)
            try:
                self._start(learner)
            except Exception:  # the other models are to be saved all the same
                logger.exception("snapshot failed, journal kept: model=%s", learner.model.name)
        self._finish_until(until)
        for model in [*(learner.model for learner in left), *self._saving]:
            logger.warning(
                "snapshot given up, journal kept: model=%s seconds=%.0f", model.name, seconds
            )
        self._saver.shutdown(wait=not self._saving, cancel_futures=True)
        self._saving.clear()

    def _is_full(self) -> bool:
        """Return whether too many copies wait to be saved for another one to be made."""
        return sum(not saving.done() for saving in self._saving.values()) >= _AT_A_TIME

    def _finish_until(self, until: float, when: str = ALL_COMPLETED) -> None:
        """Record the snapshots that are saved before a time, all of them or the first."""
        seconds = None if until == math.inf else max(until - time.monotonic(), 0.0)
        left = [saving for saving in self._saving.values() if not saving.done()]
        wait_for(left, seconds, when)
        self.finish()

    def _start(self, learner: Learner, full: bool = False) -> None:
        model = learner.model
        self._due.pop(model, None)
        if model.broken:
            return
        began = time.monotonic()
        learner.snapshot_attempt, learner.fitted = learner.sequence, 0
        learner.unsaved_seconds = 0.0
        with self._aside(1):
            checkpoint = learner.checkpoint()
        try:
            # A replay begins after the snapshot, so answers of earlier entries must be written now.
            self._keys.write(self._models.term(model))
            self._commits.append_alone(_checkpoint(learner))
        except StorageFailed as error:
            logger.error("snapshot failed, journal kept: model=%s error=%s", model.name, error)
            return
        learner.go_on_from(checkpoint)
        plain, arrays = checkpoint.plain, checkpoint.arrays
        # The name is read only if the journal is lost; see `recovery.salvage`.
        state = State({**plain, "model": model.name, "made": dict(present_origin())}, arrays)
        left = 0 if learner.pending is None else learner.pending.left
        self._took[model] = time.monotonic() - began
        self._saving[model] = self._saver.submit(self._save, model.id, state, left, full)
        if full:
            self._full.add(model)

    def _save(self, model: int, state: State, left: int, read_back: bool) -> int:
        self._snapshots.save(model, state)
        if read_back:
            self._snapshots.load(model, state.plain["sequence"])
        return left

    def _superfluous(self, model: Model, up_to: int, snapshots: int = 2) -> int:
        """Return the sequence up to which neither a model nor its challengers need its log.

        Args:
            model: whose log it is.
            up_to: up to which the model itself does not need it.
            snapshots: how many of the newest ones of a challenger must be able to go on.
        """
        needed = needed_by_challengers(self._storage, model, snapshots)
        losses = self._models.learner(model).losses
        if needed is None:
            return up_to
        if losses is not None:
            losses.forget(needed)
        return min(up_to, needed)

    def _finish(self, model: Model, saving: "Future[int]") -> None:
        full = model in self._full
        self._full.discard(model)
        if not self._models.is_live(model):
            self._delete_if_gone(model)
            return
        if not model.led:  # another replica leads it now, and the snapshot belongs to that one
            return
        try:
            left = saving.result()
            sequences = self._snapshots.sequences(model.id)
            if not sequences:
                raise FileNotFoundError("the snapshot that was saved is gone")
            newest, *older = sequences
            # Recovery could not read those after `snapshot_sequence`: no falling back on them.
            usable = [sequence for sequence in older if sequence <= model.snapshot_sequence]
            model.note_snapshot(newest, self._snapshots.written(model.id, newest))
            if full:
                self._drop_all(model, newest)
            elif usable:
                self._models.term(model).drop(self._superfluous(model, usable[0]))
            if left:
                self._models.term(model).drop_predictions(left)
            self._metrics.snapshots_saved += 1
        except Exception as error:  # whatever numpy and zipfile raise under low memory, too
            self._metrics.snapshots_failed += 1
            logger.error("snapshot failed, journal kept: model=%s error=%r", model.name, error)

    def _delete_if_gone(self, model: Model) -> None:
        """Delete what was saved of a model that was deleted meanwhile; no other has its id."""
        try:
            entry = self._storage.catalogue.find(model.name)
            if entry is None or entry.number != model.id:
                self._snapshots.delete(model.id)
        except (StorageFailed, OSError) as error:
            logger.warning("snapshots of a deleted model not deleted: error=%s", error)

    def _drop_all(self, model: Model, saved: int) -> None:
        """Drop all of a full log that a snapshot, which was read back, makes superfluous."""
        self._read_back[model] = saved
        self._models.term(model).drop(self._superfluous(model, saved, snapshots=1))
        champion = model.champion
        if champion is not None and champion in self._read_back:
            up_to = self._superfluous(champion, self._read_back[champion], snapshots=1)
            self._models.term(champion).drop(up_to)


def _learned_since_snapshot(learner: Learner) -> bool:
    """Return whether a model has learned what no snapshot has."""
    return learner.sequence > learner.model.snapshot_sequence


def _checkpoint(learner: Learner) -> Entry:
    """Return a checkpoint: learning goes on as from a snapshot, which is loaded on one thread."""
    model, sequence = learner.model, learner.sequence
    return Entry(model.id, sequence, 0, sequence, model.spec.serve, 1, b"", "checkpoint")
