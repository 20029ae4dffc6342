"""When snapshots are made: the writer copies a model's state, another thread saves it."""

import logging
import math
import time
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from weakref import WeakKeyDictionary

from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.commits import Commits
from wolfstream.service.engine.followed_log import needed_by_challengers
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.origin import present_origin
from wolfstream.service.engine.remembered_keys import RememberedKeys
from wolfstream.service.engine.writer_role import Products, WriterRole
from wolfstream.service.errors import SnapshotFailed, StorageFailed
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.storage.entries import Entry
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.snapshot_format import State

logger = logging.getLogger(__name__)


# The copies that wait to be saved take memory.
_AT_A_TIME = 2
# So many times as long as a snapshot keeps the writer is learned before the next one.
_LEARNING_PER_SNAPSHOT = 50.0


class SnapshotSchedule:
    """The snapshots that are being saved, at most one of each model. Used by the writer's thread.

    samples: how many are learned between two snapshots of a model. seconds: of learning between two
    of them, whatever comes first. aside: see `Writer`. role: of the writer. last_seconds: how long
    `close` goes on to save; None for as long as it takes.
    """

    def __init__(
        self,
        storage: Storage,
        models: LiveModels,
        keys: RememberedKeys,
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
        # The result is how many remembered rows had left by then.
        self._saving: dict[Model, Future[int]] = {}
        # The models among them whose logs are full.
        self._full: set[Model] = set()
        # The models of which a snapshot is to be started, and whether their logs are full.
        self._due: dict[Model, bool] = {}
        # How long the last one kept the writer, in seconds.
        self._took: WeakKeyDictionary[Model, float] = WeakKeyDictionary()
        # The sequences of the last snapshots that were read back for want of room.
        self._read_back: WeakKeyDictionary[Model, int] = WeakKeyDictionary()

    def note_if_due(self, learner: Learner) -> None:
        """Note that a snapshot is due if enough has been learned since the last one."""
        self.finish()
        model = learner.model
        # Counted from the last attempt: a full disk is not tried again with every group.
        # A fit counts as much as the samples of its window; so do rows that were remembered.
        learned = learner.sequence - max(model.snapshot_sequence, learner.snapshot_attempt)
        learned += learner.fitted
        # Where a snapshot takes long, it comes seldom enough to take little of the learning's time.
        longest = max(self._seconds, _LEARNING_PER_SNAPSHOT * self._took.get(model, 0.0))
        due = learned >= self._samples or (learned > 0 and learner.unsaved_seconds >= longest)
        if due and model not in self._saving:
            self._due.setdefault(model, False)

    def make_room(self, learner: Learner) -> None:
        """Note that a snapshot is due of a model whose log takes no samples, once for each end.

        All of its log is dropped then, once the snapshot has been read back, but for what those
        that follow it have not learned yet; of these snapshots are made, too.
        """
        self.finish()
        for one in (learner, *self._models.followers(learner.model)):
            begun = max(one.model.snapshot_sequence, one.snapshot_attempt)
            if one.sequence > begun and one.model not in self._saving:
                self._due[one.model] = True

    def due(self) -> list[Learner]:
        """Return the learners of which a snapshot is due, and may be started."""
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
        """Start a snapshot now; return its sequence, and a future that is done when it is saved.

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

    def finish(self, wait: bool = False) -> None:
        """Note the snapshots that are saved, and drop the journal before the newest two.

        Older snapshots are kept to go back to. Keeping the journal for them as well would take
        many times the room, and recovery needs one snapshot to fall back on; a full log cannot be
        kept for that one either.
        """
        if wait:
            with self._role.aside():
                wait_for(list(self._saving.values()))
        for model, saving in list(self._saving.items()):
            # What a snapshot makes superfluous is dropped in the log, which may be busy now.
            if wait or (saving.done() and not self._is_busy(model)):
                del self._saving[model]
                self._finish(model, saving)

    def _is_busy(self, model: Model) -> bool:
        return self._commits.is_busy(model) or model in self._role.computing

    def close(self) -> None:
        """Save what the models have learned since their last snapshots, while there is time.

        The journal has all that a snapshot would. What is still being saved then is given up when
        the storage is closed.
        """
        most = math.inf if self._last_seconds is None else self._last_seconds
        until = time.monotonic() + most
        self._finish_until(until)
        left = [one for one in self._models.learners() if _learned_since_snapshot(one)]
        while left and time.monotonic() < until:
            while self._is_full() and time.monotonic() < until:
                self._finish_until(until, FIRST_COMPLETED)
            learner = left.pop(0)
            try:
                self._start(learner)
            except Exception:  # the other models are saved all the same
                logger.exception("model %s: no snapshot", learner.model.name)
        self._finish_until(until)
        for model in [*(learner.model for learner in left), *self._saving]:
            logger.warning(
                "model %s: no snapshot after %.0f s; the journal is kept", model.name, most
            )
        self._saver.shutdown(wait=not self._saving, cancel_futures=True)
        self._saving.clear()

    def _is_full(self) -> bool:
        """Return whether so much waits to be saved that no more is copied."""
        return sum(not saving.done() for saving in self._saving.values()) >= _AT_A_TIME

    def _finish_until(self, until: float, when: str = ALL_COMPLETED) -> None:
        """Note the snapshots that are saved by a moment, or one of them."""
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
            # What comes before a snapshot is not replayed, so its answers must be written.
            self._keys.write(self._models.term(model))
            self._commits.append_alone(_checkpoint(learner))
        except StorageFailed as error:
            logger.error("model %s: no snapshot: %s; the journal is kept", model.name, error)
            return
        learner.go_on_from(checkpoint)
        plain, arrays = checkpoint.plain, checkpoint.arrays
        # The name is for the day on which the journal is lost.
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

        snapshots: how many of the newest ones of a challenger are to have what follows them.
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
        if not model.led:  # another replica has it, which needs what is saved
            return
        try:
            left = saving.result()
            kept = self._snapshots.sequences(model.id)
            if not kept:
                raise FileNotFoundError("the snapshot that was saved is gone")
            newest, *older = kept
            # A later one that recovery could not read is nothing to fall back on.
            known = [sequence for sequence in older if sequence <= model.snapshot_sequence]
            model.note_snapshot(newest, self._snapshots.written(model.id, newest))
            if full:
                self._drop_all(model, newest)
            elif known:
                self._models.term(model).drop(self._superfluous(model, known[0]))
            if left:
                self._models.term(model).drop_predictions(left)
            self._metrics.snapshots_saved += 1
        except Exception as error:  # whatever numpy and zipfile raise under low memory, too
            self._metrics.snapshots_failed += 1
            logger.error("model %s: no snapshot: %r; the journal is kept", model.name, error)

    def _delete_if_gone(self, model: Model) -> None:
        """Delete what was saved of a model that was deleted meanwhile; no other has its number."""
        try:
            found = self._storage.catalogue.find(model.name)
            if found is None or found.number != model.id:
                self._snapshots.delete(model.id)
        except (StorageFailed, OSError) as error:
            logger.warning("snapshots of a deleted model are left: error=%s", error)

    def _drop_all(self, model: Model, saved: int) -> None:
        """Drop what a snapshot that was read back makes superfluous, of a log that is full."""
        self._read_back[model] = saved
        self._models.term(model).drop(self._superfluous(model, saved, snapshots=1))
        champion = model.champion
        if champion is not None and champion in self._read_back:
            up_to = self._superfluous(champion, self._read_back[champion], snapshots=1)
            self._models.term(champion).drop(up_to)


def _learned_since_snapshot(learner: Learner) -> bool:
    model = learner.model
    if model.spec.learners > 1:
        return False  # each merge stores its state
    return learner.sequence > model.snapshot_sequence


def _checkpoint(learner: Learner) -> Entry:
    """Of products on one thread, as a snapshot is loaded."""
    model, sequence = learner.model, learner.sequence
    return Entry(model.id, sequence, 0, sequence, model.spec.serve, 1, b"", "checkpoint")
