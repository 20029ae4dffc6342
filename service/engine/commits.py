"""Commits to the journal, and what becomes of those in doubt."""

import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence

from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.remembered_keys import RememberedKeys
from wolfstream.service.engine.replay import Computing, replay
from wolfstream.service.errors import NotLeader, StartupError, StorageFailed
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.storage.entries import Entry, KeyedRequest
from wolfstream.service.storage.journal import Journal, Unfinished
from wolfstream.service.storage.term import Part, Term

logger = logging.getLogger(__name__)

# How long a group waits for the slowest part of its commit; other models' requests wait, too.
_PATIENCE_SECONDS = 0.25


class Commits:
    """Appends to the journal for all models. Used by the writer's thread.

    After an append that is in doubt, its term writes nothing until the doubt is over, so `settle`
    comes before each group.
    """

    def __init__(
        self, journal: Journal, models: LiveModels, keys: RememberedKeys, metrics: Metrics
    ) -> None:
        self._journal, self._models, self._keys = journal, models, keys
        self._metrics = metrics
        # Of commits that are unfinished, the model, which may not be here any more, and new keys.
        self._unfinished: dict[Term, tuple[Model, list[KeyedRequest]]] = {}

    def append(
        self,
        entries: Sequence[Entry],
        new_keys: Sequence[KeyedRequest],
        confirmed: Collection[Model] = (),
    ) -> dict[Term, StorageFailed]:
        """Write what was admitted in one commit; return the terms of which nothing was written.

        Args:
            entries: of any number of models, each model's in order.
            new_keys: those of the entries.
            confirmed: models about which something is answered that needs no entry. Their logs
                have to show that nobody else writes them.
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
                self._unfinished[term] = self._models.of_term(term), keys
            else:
                self._keys.committed(term.model, keys, error)
        _log(failures)
        return failures

    def _parts(
        self,
        entries: Sequence[Entry],
        new_keys: Sequence[KeyedRequest],
        confirmed: Collection[Model],
    ) -> dict[Term, Part]:
        """Return what each term writes: with new keys also answers that are not written yet."""
        of_models: dict[int, list[Entry]] = {model.id: [] for model in confirmed}
        keys: dict[int, list[KeyedRequest]] = {}
        for entry in entries:
            of_models.setdefault(entry.model, []).append(entry)
        for key in new_keys:
            keys.setdefault(key.model, self._keys.unwritten(key.model)).append(key)
        return {
            self._models.term_with_id(model): Part(of_model, keys.get(model, ()))
            for model, of_model in of_models.items()
        }

    def finished(self, seconds: float) -> dict[Term, StorageFailed | None]:
        """Return what became of parts that were Unfinished; see `Journal.finished`."""
        ended = self._journal.finished(seconds)
        for term, error in ended.items():
            _, keys = self._unfinished.pop(term)
            if not term.over:
                self._keys.committed(term.model, keys, error)
        _log({term: error for term, error in ended.items() if error is not None})
        return ended

    @property
    def unfinished(self) -> set[Model]:
        """The models of which a part of a commit is unfinished."""
        return {model for model, _ in self._unfinished.values()}

    def is_busy(self, model: Model) -> bool:
        """Return whether a part of a commit of a model is unfinished."""
        return model in self.unfinished

    def append_alone(self, entry: Entry) -> None:
        """Write a fit or a checkpoint in a commit of its own. Raises StorageFailed."""
        term = self._models.term_with_id(entry.model)
        failures = self._journal.append({term: Part([entry])})
        _log(failures)
        if error := failures.get(term):
            raise error

    def in_doubt(self, *models: Model) -> bool:
        """Return whether it is not known of one of these models what its last commit wrote."""
        return not set(models).isdisjoint(self.doubtful)

    @property
    def doubtful(self) -> list[Model]:
        """The models of which it is not known what their last commits wrote."""
        return [learner.model for learner, _ in self._models.doubtful()]

    def settle(self, computing: Computing) -> Iterator[Model]:
        """Learn what commits in doubt have written after all; the models that are settled."""
        for learner, term in self._models.doubtful():
            try:
                if term.resolve():
                    self._learn_found(learner, term, computing)
            except NotLeader:  # its model has ended, and no request waits for it
                continue
            except (StorageFailed, StartupError) as error:
                logger.error("a commit is in doubt: model=%s error=%s", learner.model.name, error)
                continue
            self._keys.resolved(term.model)
            yield learner.model

    def _learn_found(self, learner: Learner, term: Term, computing: Computing) -> None:
        """Learn the commit that was in doubt, and is in the log. Raises StorageFailed.

        A broken model learns nothing more: what it serves is a state that its log has.
        """
        if not learner.model.broken:
            try:
                blocks = term.doubtful_blocks(learner.sequence)
                for answered in replay(learner, term.log, computing, blocks):
                    self._keys.add_answered(answered)
            except StartupError as error:  # no state between is served
                learner.model.broken = str(error)
        if learner.model.broken:
            term.abandon_replay()
        else:
            term.replayed(learner.sequence)
        learner.publish()


def _log(failures: Mapping[Term, StorageFailed]) -> None:
    failed = [error for error in failures.values() if not isinstance(error, Unfinished)]
    for detail in {error.detail for error in failed}:
        logger.error("%s", detail)
