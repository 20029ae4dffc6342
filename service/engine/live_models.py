"""The models that are learned here: looked up, recovered, handed over, deleted.

Each is learned under a term of its log. When the term is over, the model has ended: nothing begins
for it any more. Whoever notices this may be any thread, in the middle of anything; so the writer
removes the model later, when nobody uses it (`remove_ended`). A model is released in no other way.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from wolfstream.service.engine.idempotency import IdempotencyKeys
from wolfstream.service.engine.recovery_order import Recovery, Room
from wolfstream.service.engine.writer_role import WriterRole
from wolfstream.service.errors import ModelBroken, NotLeader, NotReady, StorageFailed
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.memory import ModelMemory
from wolfstream.service.model.revision import Revision, check_revision
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.term import Term, TermState

logger = logging.getLogger(__name__)


# How often recovery says how far it is. What takes longer may go on beside requests.
PROGRESS_SECONDS = 10.0


class RecoveringModel(NamedTuple):
    """A model that is being recovered.

    Attributes:
        learner: of the model; another thread uses it.
        end: the sequence at which its log ends.
    """

    learner: Learner
    end: int


class LiveModels:
    """The models by name. Only the writer's thread changes them; any thread may read.

    Attributes:
        memory: that all of them take.
        changes: counts additions and removals.
        recovering: name -> model that is being recovered and not yet in `all`.
    """

    def __init__(self, storage: Storage, keys: IdempotencyKeys, memory: ModelMemory) -> None:
        self._storage, self.memory = storage, memory
        self._keys = keys
        self._learners: dict[str, Learner] = {}
        self._terms: dict[Model, Term] = {}
        self._by_id: dict[int, Model] = {}
        # Models whose terms are over and that are still to be removed.
        self._ended = set[Model]()
        # Terms whose last commit was in doubt. Some are resolved since, or their models are gone.
        self._doubtful = set[Term]()
        self.changes = 0
        # Names of models that were learned here until another replica of the fleet led them.
        self._released = set[str]()
        # Names that may be in the catalogue before their models are here.
        self._being_made = set[str]()
        self.recovering: dict[str, RecoveringModel] = {}

    def __len__(self) -> int:
        return len(self._learners)

    def get(self, name: str) -> Model | None:
        """Return the model of this name, if there is one."""
        learner = self._learners.get(name)
        return None if learner is None else learner.model

    def with_id(self, model_id: int) -> Learner | None:
        """Return the learner of the model with this id, if it is here."""
        model = self._by_id.get(model_id)
        return None if model is None else self._learners.get(model.name)

    def all(self) -> list[Model]:
        """Return all models, oldest first."""
        return [learner.model for learner in self.learners()]

    def learners(self) -> list[Learner]:
        """Return the learners of all models, oldest first."""
        return sorted(self._learners.copy().values(), key=lambda learner: learner.model.id)

    def followers(self, champion: Model) -> list[Learner]:
        """Return the learners of a model's challengers, oldest first."""
        return [learner for learner in self.learners() if learner.model.champion is champion]

    def recover(
        self,
        use_threads: Callable[[int], None],
        room: Room,
        report: Callable[[str], None],
        role: WriterRole,
        *,
        beside: bool,
    ) -> Recovery | None:
        """Recover all models, as many at a time as there is room for.

        Args:
            use_threads: sets the number of threads of matrix products.
            room: what recovery may use.
            report: called with a line of progress.
            role: of the writer.
            beside: whether replays that take long may go on beside requests to other models.

        Returns what is left to recover, if anything is. Raises StartupError, NotReady.
        """
        recovery = Recovery(self._storage, use_threads, room, self._register_recovering, role)
        n_models = recovery.n_models
        report(f"recovering: 0 of {n_models} models done" if n_models else "recovering")
        while recovery.left and not (beside and len(self) and recovery.may_go_on_beside):
            for learner, term in recovery.recovered(PROGRESS_SECONDS):
                self.register(learner.model.name, learner, term)
                del self.recovering[learner.model.name]
                report(f"recovering: {len(self)} of {n_models} models done")
            self.log_progress()
        self._recover_followers()
        for model in self.all():
            self._keys.load(self._terms[model].log)
        models = self._storage.catalogue.models()
        self._storage.snapshots.set_others_aside({entry.number for entry in models})
        return recovery if recovery.left else None

    def log_progress(self) -> None:
        """Log how far the models are that are being recovered."""
        for name, (learner, end) in self.recovering.copy().items():
            logger.info(
                "model being recovered: model=%s learned=%d samples=%d", name, learner.sequence, end
            )

    def _register_recovering(self, learner: Learner, end: int) -> None:
        self.recovering[learner.model.name] = RecoveringModel(learner, end)

    def register_recovered(self, learner: Learner, term: Term) -> None:
        """Add a model whose recovery went on beside requests. Raises StartupError."""
        self._keys.load(term.log)
        self.register(learner.model.name, learner, term)
        del self.recovering[learner.model.name]

    def check_recovered(self, name: str) -> None:
        """Raise NotReady if a model of this name is still being recovered; on any thread."""
        replayed = self.recovering.get(name)
        if replayed is not None:
            raise NotReady(
                f"model {name!r} is being brought back: it has learned "
                f"{replayed.learner.sequence} of {replayed.end} samples of its log again"
            )

    def _recover_followers(self) -> None:
        """Let challengers follow their champions again; those of a model that is gone are free."""
        for entry in self._storage.catalogue.models():
            champion = self.with_id(entry.follows or 0)
            if champion is not None:
                _follow_again(self._learners[entry.name], champion)

    def adopt_follower(self, learner: Learner, term: Term, champion: Model) -> None:
        """Learn for a challenger of a fleet from now on, under its term.

        Raises NotLeader, UnknownModel, StartupError.
        """
        champion_learner = self.learner(champion)
        _follow_again(learner, champion_learner)
        champion_learner.record_losses()
        learner.publish()
        self.adopt(learner, term)

    def adopt(self, learner: Learner, term: Term) -> None:
        """Learn for a model from now on, under its term. Raises StartupError, NotLeader."""
        if self.get(learner.model.name) is not None:
            term.end()
            raise NotLeader(f"a model {learner.model.name!r} is learned here already")
        self._keys.load(term.log)
        self._released.discard(learner.model.name)
        self.register(learner.model.name, learner, term)
        if term.over:  # it ended before `register` could ask to be told
            self._end_model(term)
            raise term.not_leader()

    def _end_model(self, term: Term) -> None:
        """Let nothing begin for the model of a term that is over; on any thread.

        The same holds for its challengers: they learn where it does.
        """
        for model, own in list(self._terms.items()):
            if own is term and model.led:
                model.led = False
                self._ended.add(model)
                for follower in self.followers(model):
                    self._terms[follower.model].end()

    def remove_ended(self, is_used: Callable[[Model], bool]) -> list[Model]:
        """Remove the models whose terms are over, except those in use; return the removed ones.

        On the writer's thread, between two steps.
        """
        removed = list[Model]()
        for model in [model for model in self._ended.copy() if not is_used(model)]:
            self._ended.discard(model)
            if self.is_live(model):
                self._released.add(model.name)
                self._remove(model)
                removed.append(model)
        return removed

    def doubtful(self) -> list[tuple[Learner, Term]]:
        """Return the learners and terms of models whose last commits are in doubt."""
        if not self._doubtful:
            return []
        over = {term for term in self._doubtful if term.state is not TermState.IN_DOUBT}
        self._doubtful -= over
        return [pair for pair in self.terms() if pair[1] in self._doubtful]

    def _remove(self, model: Model) -> None:
        self._keys.forget(model.id)
        self.memory.forget(model)
        del self._learners[model.name], self._terms[model], self._by_id[model.id]
        self.changes += 1

    def measure(self, models: Iterable[Model]) -> None:
        """Measure the memory of models that may have changed."""
        for model in models:
            if (learner := self.with_id(model.id)) is not None and learner.model is model:
                ahead = learner.ahead_bytes if learner.sequence < learner.steady_until else 0
                self.memory.note(model, learner.n_bytes + ahead)

    def is_released(self, name: str) -> bool:
        """Return whether a model was learned here and is learned elsewhere now."""
        return name in self._released

    def forget_released(self, name: str) -> None:
        """Forget that a model was learned here, because it exists no more."""
        self._released.discard(name)

    def is_being_made(self, name: str) -> bool:
        """Return whether the catalogue may have a model of this name that is about to be here."""
        return name in self._being_made

    @contextmanager
    def making(self, name: str) -> Iterator[None]:
        """Create a model of this name in the catalogue within the block."""
        self._being_made.add(name)
        try:
            yield
        finally:
            self._being_made.discard(name)

    def register(self, name: str, learner: Learner, term: Term) -> None:
        """Add a model under this name, with its learner and the term of its log."""
        self._learners[name], self._terms[learner.model] = learner, term
        self._by_id[learner.model.id] = learner.model
        self.memory.note(learner.model, learner.n_bytes)
        term.on_end, term.on_doubt = self._end_model, self._doubtful.add
        self._keys.read_from(term.log)
        self.changes += 1

    def term(self, model: Model) -> Term:
        """Return the term of a model. Raises UnknownModel if it was deleted, NotLeader."""
        self.learner(model)
        term = self._terms.get(model)
        if term is None:  # the writer's thread has removed the model just now
            raise model.absence()
        return term

    def term_with_id(self, model_id: int) -> Term:
        """Return the term of the model with this id, which is here."""
        return self._terms[self._by_id[model_id]]

    def term_began(self, model: Model) -> int:
        """Return the offset at which a model's term began; 0 if it is over. On any thread."""
        term = self._terms.get(model)
        return 0 if term is None or term.over else term.began

    def model_of(self, term: Term) -> Model:
        """Return the model of a term, which is here."""
        return self._by_id[term.model]

    def terms(self) -> list[tuple[Learner, Term]]:
        """Return the learners and terms of all models, oldest first."""
        return [(learner, self._terms[learner.model]) for learner in self.learners()]

    def delete(self, model: Model) -> None:
        """Delete a model with its log and snapshots. Raises UnknownModel, StorageFailed."""
        term = self.term(model)
        term.on_end = _stays_led  # deletion ends the term, which is not a loss to another replica
        try:
            self._storage.catalogue.delete(term)
        except StorageFailed:
            term.on_end = self._end_model
            if term.over:
                self._end_model(term)
            raise
        self._remove(model)
        try:
            self._storage.snapshots.delete(model.id)
        except OSError as error:  # no other model gets its id, so nobody will read them
            logger.warning("snapshots of a deleted model not deleted: error=%s", error)

    def check(self, model: Model, expected: Collection[Revision]) -> None:
        """Raise AnotherState unless a model is at one of these revisions.

        A client may be refused only after the log has shown that no other replica has learned
        meanwhile. Raises UnknownModel, NotLeader.
        """
        learner = self.learner(model)
        check_revision(model.name, learner.epoch, learner.sequence, expected)

    def is_live(self, model: Model) -> bool:
        """Return whether a model is here, and not deleted."""
        return self.get(model.name) is model

    def learner(self, model: Model) -> Learner:
        """Return the learner of a model. Raises UnknownModel if it was deleted, NotLeader."""
        if not (model.led and self.is_live(model)):
            raise model.absence()
        return self._learners[model.name]

    def usable(self, model: Model) -> Learner:
        """Return the learner of a model that learns. Raises UnknownModel, ModelBroken."""
        learner = self.learner(model)
        if model.broken:
            raise ModelBroken(f"model {model.name!r}: {model.broken}")
        return learner


def _stays_led(_: Term) -> None:
    """Do nothing when the term of a model ends that is being deleted."""


def _follow_again(learner: Learner, champion: Learner) -> None:
    """Let a recovered challenger follow; mark it broken if it is ahead of its champion."""
    learner.follow(champion.model)
    if learner.sequence > champion.sequence and not champion.model.broken:
        learner.model.broken = (
            f"it has learned up to sequence {learner.sequence}, and the model "
            f"{champion.model.name!r} that it follows only to {champion.sequence}: delete "
            "it and create it again"
        )
