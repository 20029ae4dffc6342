"""Commits: what each writes to the logs, and those without an outcome yet.

An append has one of three outcomes for each model: durable, failed with nothing written, or in
doubt, where the storage did not say. A term in doubt writes nothing more until it is resolved. The
model of a commit without an outcome waits for it, while other models go on.
"""

import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.admission import Admission
from wolfstream.service.engine.idempotency import Duplicates, IdempotencyKeys
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.queue_items import Waiter
from wolfstream.service.errors import NotLeader, StartupError, StorageFailed
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.replay import Computing, replay
from wolfstream.service.storage.entries import Entry, KeyedRequest
from wolfstream.service.storage.interfaces import Journal, Unfinished
from wolfstream.service.storage.term import Part, Term

logger = logging.getLogger(__name__)

# How long a group waits for the slowest log; the requests of all other models wait meanwhile.
_PATIENCE_SECONDS = 0.25
# For how long a failed commit counts as an obstacle to the next one, if there is none meanwhile: a
# balancer that sends nothing to a server with an obstacle then tries it again.
_OBSTACLE_SECONDS = 30.0


class Commits:
    """Appends to the logs of all models. Used by the writer's thread.

    `resolve` is to be called before each group, so that it finds as few commits in doubt as can be.
    """

    def __init__(
        self, journal: Journal, models: LiveModels, keys: IdempotencyKeys, metrics: Metrics
    ) -> None:
        self._journal, self._models, self._keys = journal, models, keys
        self._metrics = metrics
        # term whose part of a commit is unfinished -> its model and the commit's new keys. The
        # model may have been handed over or deleted since.
        self._unfinished: dict[Term, tuple[Model, list[KeyedRequest]]] = {}
        # Until when the last commit, which failed, counts as an obstacle, by the monotonic clock.
        self._failed_until = 0.0

    def obstacle(self) -> str:
        """Return why the next commit will probably fail; see `Journal.obstacle`."""
        if seen := self._journal.obstacle():
            return seen
        has_failed = time.monotonic() < self._failed_until
        return "the last commit to the journal failed, and the log says why" if has_failed else ""

    def _note(self, outcomes: Collection[StorageFailed | None]) -> None:
        """Log each reason of failures once, and note whether nothing was written.

        Many models fail for the same reason. That another replica leads a model is no obstacle.

        outcomes: of each term's part; None where it is durable.
        """
        failed = [
            error for error in outcomes if error is not None and not isinstance(error, Unfinished)
        ]
        for detail in {error.detail for error in failed}:
            logger.error("commit failed: error=%s", detail)
        n_obstacles = sum(not isinstance(error, NotLeader) for error in failed)
        all_failed = 0 < n_obstacles == len(outcomes)
        self._failed_until = time.monotonic() + _OBSTACLE_SECONDS if all_failed else 0.0

    def append(
        self,
        entries: Sequence[Entry],
        new_keys: Sequence[KeyedRequest],
        confirmed: Collection[Model] = (),
    ) -> dict[Term, StorageFailed]:
        """Write one commit; return the terms of which nothing was written, and why.

        Args:
            entries: of any number of models, each model's in order.
            new_keys: idempotency keys that come with the entries.
            confirmed: models about which clients are told something that needs no entry. Their logs
                have to show that no other replica writes them.
        """
        parts = self._parts(entries, new_keys, confirmed)
        if not parts:
            return {}
        began = time.monotonic()
        failures = self._journal.append(parts, _PATIENCE_SECONDS)
        if not failures:
            self._metrics.commit.observe(time.monotonic() - began)
        for term in parts:
            keys = [key for key in new_keys if key.model == term.model]
            error = failures.get(term)
            if isinstance(error, Unfinished):
                self._unfinished[term] = self._models.model_of(term), keys
            else:
                self._keys.committed(term.model, keys, error)
        self._note([failures.get(term) for term in parts])
        return failures

    def _parts(
        self,
        entries: Sequence[Entry],
        new_keys: Sequence[KeyedRequest],
        confirmed: Collection[Model],
    ) -> dict[Term, Part]:
        """Return what each term writes. With new keys it also writes answers that are due."""
        entries_of: dict[int, list[Entry]] = {model.id: [] for model in confirmed}
        keys: dict[int, list[KeyedRequest]] = {}
        for entry in entries:
            entries_of.setdefault(entry.model, []).append(entry)
        for key in new_keys:
            keys.setdefault(key.model, self._keys.unwritten(key.model)).append(key)
        return {
            self._models.term_with_id(model): Part(own_entries, keys.get(model, ()))
            for model, own_entries in entries_of.items()
        }

    def finished(self, seconds: float) -> dict[Term, StorageFailed | None]:
        """Return the outcome of parts that were Unfinished; see `Journal.finished`."""
        ended = self._journal.finished(seconds)
        for term, error in ended.items():
            _, keys = self._unfinished.pop(term)
            if not term.over:
                self._keys.committed(term.model, keys, error)
        if ended:
            self._note(ended.values())
        return ended

    @property
    def unfinished(self) -> set[Model]:
        """The models with an unfinished part of a commit."""
        return {model for model, _ in self._unfinished.values()}

    def is_busy(self, model: Model) -> bool:
        """Return whether a part of a commit of this model is unfinished."""
        return model in self.unfinished

    def append_alone(self, entry: Entry) -> None:
        """Write a fit or a checkpoint in a commit of its own. Raises StorageFailed."""
        term = self._models.term_with_id(entry.model)
        failures = self._journal.append({term: Part([entry])})
        self._note([failures.get(term)])
        if error := failures.get(term):
            raise error

    def in_doubt(self, *models: Model) -> bool:
        """Return whether the last commit of one of these models is in doubt."""
        return not set(models).isdisjoint(self.doubtful)

    @property
    def doubtful(self) -> list[Model]:
        """The models whose last commits are in doubt."""
        return [learner.model for learner, _ in self._models.doubtful()]

    def resolve(self, computing: Computing) -> Iterator[Model]:
        """Resolve commits in doubt, learn what they have written, and yield the resolved models."""
        for learner, term in self._models.doubtful():
            try:
                if term.resolve():
                    self._learn_written(learner, term, computing)
            except NotLeader:  # the model has ended, and no request waits for it
                continue
            except (StorageFailed, StartupError) as error:
                logger.error("commit still in doubt: model=%s error=%s", learner.model.name, error)
                continue
            self._keys.resolved(term.model)
            yield learner.model

    def _learn_written(self, learner: Learner, term: Term, computing: Computing) -> None:
        """Learn a commit that was in doubt and turned out to be in the log. Raises StorageFailed.

        A broken model learns nothing more: it serves a state that its log has.
        """
        if not learner.model.broken:
            try:
                blocks = term.doubtful_blocks(learner.sequence)
                for answered in replay(learner, term.log, computing, blocks):
                    self._keys.add_answered(answered)
            except StartupError as error:  # a state between two entries is never served
                learner.model.broken = str(error)
        if learner.model.broken:
            term.abandon_replay()
        else:
            term.replayed(learner.sequence)
        learner.publish()


class CommitOutcome(NamedTuple):
    """A commit whose outcome is known for all of its models.

    Attributes:
        admission: the requests in it.
        duplicates: of these requests.
        failures: model id -> why nothing was written for it.
    """

    admission: Admission
    duplicates: Duplicates
    failures: Mapping[int, StorageFailed]


class UnfinishedCommits:
    """The unfinished parts of commits. Used by the writer's thread.

    A part belongs to a term, not to a model: by the time that it ends, its model may have another
    term.
    """

    def __init__(self, commits: Commits) -> None:
        self._commits = commits
        # term -> the requests of its model in the commit, and the commit's duplicates
        self._parts: dict[Term, tuple[Admission, Duplicates]] = {}

    @property
    def models(self) -> set[Model]:
        """The models that wait; no other request of theirs may begin."""
        return self._commits.unfinished

    def waiting(self) -> Iterator[Waiter]:
        """Yield the waiters of the requests in unfinished parts."""
        for admission, duplicates in self._parts.values():
            yield from admission.waiting()
            yield from duplicates.waiting()

    def leave(
        self, admission: Admission, duplicates: Duplicates, failures: Mapping[Term, StorageFailed]
    ) -> CommitOutcome:
        """Set unfinished parts aside; return the rest of the commit."""
        if not failures:
            return CommitOutcome(admission, duplicates, {})
        others = {model.id for model in admission.models}
        for term, error in failures.items():
            if isinstance(error, Unfinished):
                self._parts[term] = admission.part_for({term.model}), duplicates
                others.discard(term.model)
        reasons = {term.model: error for term, error in failures.items()}
        if len(others) == len(admission.models):
            return CommitOutcome(admission, duplicates, reasons)
        rest = admission.part_for(others)._replace(refused=admission.refused)
        return CommitOutcome(rest, duplicates, reasons)

    def take(self, seconds: float) -> Iterator[CommitOutcome]:
        """Yield the parts that have ended by now, or end within these seconds."""
        for term, error in self._commits.finished(seconds).items():
            if term in self._parts:
                admission, duplicates = self._parts.pop(term)
                failures = {} if error is None else {term.model: error}
                yield CommitOutcome(admission, duplicates, failures)
