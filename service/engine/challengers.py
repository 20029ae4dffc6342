"""The challengers of a server: they are made, learn from their champions' logs, and are freed.

Two threads use a challenger's learner, one at a time. The worker learns the blocks that it is
handed; the writer does everything else, such as snapshots and rollbacks, and takes the learner back
for that between two blocks. Blocks that the worker was handed before are then void.
"""

import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import takewhile
from typing import NamedTuple

from wolfstream.service.engine.admission import limits_of
from wolfstream.service.engine.broken import mark_broken
from wolfstream.service.engine.challenger_start import check_champion, check_same, starting
from wolfstream.service.engine.commits import Commits
from wolfstream.service.engine.followed_log import FollowedBlock, following_blocks, learn_block
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.new_models import NewModels
from wolfstream.service.engine.snapshot_schedule import SnapshotSchedule
from wolfstream.service.engine.writer_role import Products
from wolfstream.service.errors import SnapshotFailed, StartupError, StorageFailed, UnknownModel
from wolfstream.service.heads.fit import fit_from_record
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.settings import Settings
from wolfstream.service.spec.following import Start
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.storage.entries import Entry

logger = logging.getLogger(__name__)


class Turn(NamedTuple):
    """What a challenger learns next. number: counts turns; a later turn makes this one void."""

    blocks: list[FollowedBlock]
    number: int


class _Challenger:
    """own: entries of its own log that recovery has not reached. turns: how many have begun."""

    def __init__(self, learner: Learner, own: Iterable[Entry]) -> None:
        self.learner = learner
        self.own = deque(own)
        self.turns = 0
        self.lock = threading.RLock()


class Challengers:
    """The models that follow others. Methods run on the writer's thread unless stated otherwise.

    aside: entered around what may take long, for models that are in use, with a number of threads.
    """

    def __init__(
        self,
        models: LiveModels,
        new_models: NewModels,
        commits: Commits,
        snapshots: SnapshotSchedule,
        settings: Settings,
        aside: Products,
    ) -> None:
        self._models, self._new_models = models, new_models
        self._commits, self._snapshots = commits, snapshots
        self._settings, self._aside = settings, aside
        self._of: dict[Model, _Challenger] = {}

    def recover(self) -> None:
        """Register all models that follow another one. Raises StartupError."""
        for learner in self._models.learners():
            if learner.model.champion is not None:
                own = self._models.term(learner.model).log.blocks(learner.sequence)
                self.begin(learner, [entry for block in own for entry in block])

    def begin(self, learner: Learner, own: Iterable[Entry] = ()) -> None:
        """Register a model that follows another one. own: the entries of its own log to apply."""
        self._of[learner.model] = _Challenger(learner, own)

    def make(self, name: str, champion: Model, spec: ModelSpec, start: Start) -> tuple[Model, bool]:
        """Return the model of this name and spec that follows another one, and whether it is new.

        It learns what the champion learns from now on. Raises UnknownModel, ModelBroken, Invalid,
        ModelExists, TooManyModels, StorageFailed.
        """
        above = self._models.usable(champion)
        check_champion(name, champion, spec)
        model = self._models.get(name)
        if model is not None:
            check_same(model, champion, spec)
            return model, False
        log = self._models.term(champion).log
        with self._aside(1):  # as recovery does
            loaded = starting(above, spec, start, log)
        learner = self._new_models.add_follower(name, loaded, champion)
        above.record_losses()
        self.begin(learner)
        logger.info("model %s: follows %s from %d on", name, champion.name, learner.sequence)
        return learner.model, True

    @contextmanager
    def paused(self, models: Iterable[Model | None]) -> Iterator[None]:
        """Stop the worker from learning for these models; the blocks it was handed are void."""
        with ExitStack() as stack:
            for model in models:
                one = None if model is None else self._of.get(model)
                if one is not None:
                    with self._aside(self._settings.threads):  # the worker may be in a long block
                        one.lock.acquire()
                    stack.callback(one.lock.release)
                    one.turns += 1
            yield

    def all_paused(self) -> AbstractContextManager[None]:
        """Stop the worker from learning for any model."""
        return self.paused(list(self._of))

    def next_turn(self, model: Model) -> Turn:
        """Return what a paused challenger learns next; no blocks if it has caught up or is broken.

        Blocks that were learned with another number of threads than the server has now are learned
        here, since the process has only one such number. Raises UnknownModel.
        """
        one = self._challenger(model)
        self._snapshots.note_if_due(one.learner)
        blocks = self._next_blocks(one)
        threads = self._settings.threads
        while blocks and blocks[0].entries[0].threads != threads:
            with self._aside(blocks[0].entries[0].threads):
                self._learn(one.learner, blocks[0])
            blocks = self._next_blocks(one)
        alike = takewhile(lambda block: block.entries[0].threads == threads, blocks)
        return Turn(list(alike), one.turns)

    def learn(self, model: Model, turn: Turn, go_on: Callable[[], bool]) -> None:
        """Learn the blocks that were handed out, unless they are void; on the worker's thread.

        go_on: whether to learn the next block as well.
        """
        one = self._of.get(model)
        for block in turn.blocks if one else ():
            assert one is not None
            with one.lock:
                if one.turns != turn.number or model.broken or not go_on():
                    return
                self._learn(one.learner, block)

    def catch_up(self, model: Model) -> None:
        """Have a paused challenger learn everything that its champion has. Raises ModelBroken."""
        while turn := self.next_turn(model).blocks:
            for block in turn:
                learner = self._models.usable(model)
                with self._aside(self._settings.threads):
                    self._learn(learner, block)
        self._models.usable(model)

    def keep(self, champion: Model) -> None:
        """Save the states of a model's challengers before the model is deleted.

        A broken one keeps its last snapshot. Raises SnapshotFailed, after which some may be saved.
        """
        for model in self.followers(champion):
            if not model.broken:
                save_now(model, self._snapshots)

    def free(self, champion: Model) -> None:
        """Make the challengers of a deleted model independent models."""
        for model in self.followers(champion):
            del self._of[model]
            model.champion = None

    def rolled_back(self, model: Model) -> None:
        """Forget what a challenger's own log had before it was rolled back, which is void."""
        if model in self._of:
            self._of[model].own.clear()

    def forget(self, model: Model) -> None:
        """Forget a deleted challenger, and delete what was kept for it alone."""
        self._of.pop(model, None)

    def followers(self, champion: Model) -> list[Model]:
        """Return the challengers of a model, oldest first; on any thread."""
        return [learner.model for learner in self._models.followers(champion)]

    def _challenger(self, model: Model) -> _Challenger:
        if not model.led:
            self._of.pop(model, None)
        self._models.learner(model)
        found = self._of.get(model)
        if found is None:
            raise UnknownModel(f"model {model.name!r} follows none")
        return found

    def _next_blocks(self, one: _Challenger) -> list[FollowedBlock]:
        """Return the blocks up to the next entry of the challenger's own log, applied first.

        None where the champion's log cannot be read for now.
        """
        learner, above = one.learner, one.learner.model.champion
        # In doubt it may have a checkpoint here, or have none.
        if learner.model.broken or above is None or self._commits.in_doubt(learner.model, above):
            return []
        try:
            self._apply_own(one)
            until = one.own[0].sequence if one.own else math.inf
            champion = self._models.learner(above)
            blocks = following_blocks(self._models.term(above).log, champion, learner)
            return list(takewhile(lambda block: block.entries[-1].sequence <= until, blocks))
        except StorageFailed as error:
            logger.info("model %s: learns on later: %s", learner.model.name, error)
            return []
        except StartupError as error:
            learner.model.broken = str(error)
            logger.error("model %s: %s", learner.model.name, error)
            return []

    def _apply_own(self, one: _Challenger) -> None:
        """Apply the fits and checkpoints of a challenger at the sequence that it has reached."""
        learner = one.learner
        while one.own and one.own[0].sequence <= learner.sequence:
            entry = one.own.popleft()
            with self._aside(entry.threads):
                if entry.kind == "fit":
                    learner.adopt(entry.head, fit_from_record(entry.record))
                elif entry.kind == "checkpoint":
                    learner.go_on_from(learner.checkpoint())
            learner.publish()

    def _learn(self, learner: Learner, block: FollowedBlock) -> None:
        """Learn a block. If that fails, the challenger is broken, and its champion goes on."""
        try:
            learn_block(learner, block, limits_of(self._settings))
        except Exception as error:
            mark_broken(learner, error)


def save_now(model: Model, snapshots: SnapshotSchedule) -> int:
    """Save a snapshot, wait until it is on disk, and return its sequence.

    Raises UnknownModel, ModelBroken, SnapshotFailed.
    """
    snapshots.finish(wait=True)
    sequence, saving = snapshots.start(model)
    try:
        saving.result()
    except Exception as error:  # whatever numpy and zipfile raise under low memory, too
        raise SnapshotFailed(f"{error!r}; nothing has changed") from None
    snapshots.finish(wait=True)
    return sequence
