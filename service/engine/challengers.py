"""The challengers of a server: made, taught from their champions' logs, and set free.

Two threads use a challenger's learner, one at a time. The worker learns the blocks that it was
handed. The writer does everything else, such as snapshots and rollbacks; for that it takes the
learner back between two blocks, after which the blocks that the worker was handed are void.
"""

import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import takewhile
from typing import NamedTuple

from wolfstream.service.engine.admission import model_limits
from wolfstream.service.engine.commits import Commits
from wolfstream.service.engine.followed_log import FollowedBlock, following_blocks, learn_block
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.new_models import (
    NewModels,
    check_champion,
    check_same,
    new_challenger,
)
from wolfstream.service.engine.snapshot_schedule import SnapshotSchedule
from wolfstream.service.engine.writer_role import Products
from wolfstream.service.errors import StartupError, StorageFailed, UnknownModel
from wolfstream.service.heads.fit import fit_from_record
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.broken import mark_broken
from wolfstream.service.settings import Settings
from wolfstream.service.spec.following import Start
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.storage.entries import Entry

logger = logging.getLogger(__name__)


class Turn(NamedTuple):
    """What a challenger learns next.

    Attributes:
        blocks: of its champion's log.
        number: of the turn. Once a later one has begun, this one is void.
    """

    blocks: list[FollowedBlock]
    number: int


class _Challenger:
    """State of one challenger."""

    def __init__(self, learner: Learner, entries: Iterable[Entry]) -> None:
        self.learner = learner
        # Of its own log (fits and checkpoints), not applied yet.
        self.entries = deque(entries)
        self.turns = 0  # how many have begun
        self.lock = threading.RLock()  # held by the thread that uses the learner


class Challengers:
    """The models that follow others. Methods run on the writer's thread unless stated otherwise.

    Args:
        models: that are learned here.
        new_models: makes challengers.
        commits: knows which models have a commit in doubt.
        snapshots: told when a challenger has learned enough for one.
        settings: of the server.
        aside: see `Writer`.
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
        self._challengers: dict[Model, _Challenger] = {}

    def recover(self) -> None:
        """Register all recovered challengers. Raises StartupError."""
        for learner in self._models.learners():
            if learner.model.champion is not None:
                blocks = self._models.term(learner.model).log.blocks(learner.sequence)
                self.begin(learner, [entry for block in blocks for entry in block])

    def begin(self, learner: Learner, entries: Iterable[Entry] = ()) -> None:
        """Register a challenger. entries: of its own log, not applied yet."""
        self._challengers[learner.model] = _Challenger(learner, entries)

    def make(self, name: str, champion: Model, spec: ModelSpec, start: Start) -> tuple[Model, bool]:
        """Return a challenger of this name and spec, and whether it is new.

        It learns what its champion learns from now on.

        Raises UnknownModel, ModelBroken, Invalid, ModelExists, TooManyModels, StorageFailed.
        """
        champion_learner = self._models.usable(champion)
        check_champion(name, champion, spec)
        model = self._models.get(name)
        if model is not None:
            check_same(model, champion, spec)
            return model, False
        log = self._models.term(champion).log
        with self._aside(1):  # as recovery does
            loaded = new_challenger(champion_learner, spec, start, log)
        learner = self._new_models.add_follower(name, loaded, champion)
        champion_learner.record_losses()
        self.begin(learner)
        logger.info(
            "challenger made: model=%s champion=%s sequence=%d",
            name,
            champion.name,
            learner.sequence,
        )
        return learner.model, True

    @contextmanager
    def paused(self, models: Iterable[Model | None]) -> Iterator[None]:
        """Keep the worker from learning for these models; blocks that it was handed are void."""
        with ExitStack() as stack:
            for model in models:
                challenger = None if model is None else self._challengers.get(model)
                if challenger is not None:
                    with self._aside(self._settings.threads):  # the worker may be in a long block
                        challenger.lock.acquire()
                    stack.callback(challenger.lock.release)
                    challenger.turns += 1
            yield

    def all_paused(self) -> AbstractContextManager[None]:
        """Keep the worker from learning for any model."""
        return self.paused(list(self._challengers))

    def next_turn(self, model: Model) -> Turn:
        """Return what a paused challenger learns next: nothing if it has caught up or is broken.

        Blocks that were learned with another number of threads than the server's are learned here,
        because the process has only one such number. Raises UnknownModel.
        """
        challenger = self._challenger(model)
        self._snapshots.schedule_if_due(challenger.learner)
        blocks = self._next_blocks(challenger)
        threads = self._settings.threads
        while blocks and blocks[0].entries[0].threads != threads:
            with self._aside(blocks[0].entries[0].threads):
                self._learn(challenger.learner, blocks[0])
            blocks = self._next_blocks(challenger)
        alike = takewhile(lambda block: block.entries[0].threads == threads, blocks)
        return Turn(list(alike), challenger.turns)

    def learn(self, model: Model, turn: Turn, go_on: Callable[[], bool]) -> None:
        """Learn the blocks of a turn, unless they are void; on the worker's thread.

        go_on: asked before each block whether to learn it.
        """
        challenger = self._challengers.get(model)
        if challenger is None:
            return
        for block in turn.blocks:
            with challenger.lock:
                if challenger.turns != turn.number or model.broken or not go_on():
                    return
                self._learn(challenger.learner, block)

    def catch_up(self, model: Model) -> None:
        """Let a paused challenger learn everything that its champion has. Raises ModelBroken."""
        while turn := self.next_turn(model).blocks:
            for block in turn:
                learner = self._models.usable(model)
                with self._aside(self._settings.threads):
                    self._learn(learner, block)
        self._models.usable(model)

    def save_followers(self, champion: Model) -> None:
        """Save the states of a model's challengers before the model is deleted.

        A broken one keeps its last snapshot. Raises SnapshotFailed, after which some may be saved.
        """
        for model in self.followers(champion):
            if not model.broken:
                self._snapshots.finish(wait=True)
                self._snapshots.wait_until_saved([self._snapshots.start(model)[1]])

    def free(self, champion: Model) -> None:
        """Make the challengers of a deleted model independent models."""
        for model in self.followers(champion):
            del self._challengers[model]
            model.champion = None

    def rolled_back(self, model: Model) -> None:
        """Forget the own entries of a challenger that was rolled back: they are void."""
        if model in self._challengers:
            self._challengers[model].entries.clear()

    def forget(self, model: Model) -> None:
        """Forget a deleted challenger."""
        self._challengers.pop(model, None)

    def followers(self, champion: Model) -> list[Model]:
        """Return the challengers of a model, oldest first; on any thread."""
        return [learner.model for learner in self._models.followers(champion)]

    def _challenger(self, model: Model) -> _Challenger:
        if not model.led:
            self._challengers.pop(model, None)
        self._models.learner(model)
        challenger = self._challengers.get(model)
        if challenger is None:
            raise UnknownModel(f"model {model.name!r} follows no other model")
        return challenger

    def _next_blocks(self, challenger: _Challenger) -> list[FollowedBlock]:
        """Apply the challenger's own entries that are due; return the blocks up to the next one.

        Returns none if the champion's log cannot be read for now.
        """
        learner, champion = challenger.learner, challenger.learner.model.champion
        # A commit in doubt may turn out to have a checkpoint here.
        if (
            learner.model.broken
            or champion is None
            or self._commits.in_doubt(learner.model, champion)
        ):
            return []
        try:
            self._apply_own(challenger)
            until = challenger.entries[0].sequence if challenger.entries else math.inf
            log = self._models.term(champion).log
            blocks = following_blocks(log, self._models.learner(champion), learner)
            return list(takewhile(lambda block: block.entries[-1].sequence <= until, blocks))
        except StorageFailed as error:
            logger.info("turn postponed: model=%s error=%s", learner.model.name, error)
            return []
        except StartupError as error:
            learner.model.broken = str(error)
            logger.error("challenger broken: model=%s error=%s", learner.model.name, error)
            return []

    def _apply_own(self, challenger: _Challenger) -> None:
        """Apply the challenger's own fits and checkpoints at the sequence that it has reached."""
        learner = challenger.learner
        while challenger.entries and challenger.entries[0].sequence <= learner.sequence:
            entry = challenger.entries.popleft()
            with self._aside(entry.threads):
                if entry.kind == "fit":
                    learner.adopt(entry.head, fit_from_record(entry.record))
                elif entry.kind == "checkpoint":
                    learner.go_on_from(learner.checkpoint())
            learner.publish()

    def _learn(self, learner: Learner, block: FollowedBlock) -> None:
        """Learn a block. If that fails, only the challenger is broken."""
        try:
            learn_block(learner, block, model_limits(self._settings))
        except Exception as error:
            mark_broken(learner, error)
