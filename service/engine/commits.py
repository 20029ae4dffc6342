"""Commits to the journal, and what becomes of those in doubt."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence

from service.diagnostics.metrics import Metrics
from service.engine.live_models import LiveModels
from service.engine.remembered_keys import RememberedKeys
from service.engine.replay import Computing, replay
from service.errors import InDoubt, NotLeader, StartupError, StorageFailed
from service.model.live import Model
from service.storage.entries import Entry, KeyedRequest
from service.storage.interfaces import Storage
from service.storage.journal import Unfinished

logger = logging.getLogger(__name__)

# How long a group waits for the slowest part of its commit; other models' requests wait, too.
_PATIENCE_SECONDS = 0.25


class Commits:
    """Appends to the journal for all models. Used by the writer's thread.

    After an append that is in doubt, the journal takes nothing of that model until the doubt is
    settled, so `settle` comes before each group.
    """

    def __init__(
        self, storage: Storage, models: LiveModels, keys: RememberedKeys, metrics: Metrics
    ) -> None:
        self._storage = storage
        self._models, self._keys = models, keys
        self._metrics = metrics
        self._in_doubt: set[int] = set()
        # The new keys of commits that are unfinished, by their models.
        self._unfinished: dict[int, list[KeyedRequest]] = {}

    def append(
        self, entries: Sequence[Entry], new_keys: list[KeyedRequest]
    ) -> dict[int, StorageFailed]:
        """Write what was admitted in one commit; the models of which nothing was written."""
        if not entries:
            return {}
        began = time.monotonic()
        failures = self._append(entries, self._keys.with_answers(new_keys), _PATIENCE_SECONDS)
        for model, error in failures.items():
            if isinstance(error, Unfinished):
                self._unfinished[model] = [key for key in new_keys if key.model == model]
        if not failures:
            self._metrics.commit.observe(time.monotonic() - began)
        self._keys.committed(new_keys, failures)
        return failures

    def finished(self, seconds: float) -> dict[int, StorageFailed | None]:
        """What became of models' parts of commits that were Unfinished; see `Journal.finished`."""
        ended = self._storage.journal.finished(seconds)
        self._note({model: error for model, error in ended.items() if error is not None})
        for model, error in ended.items():
            new_keys = self._unfinished.pop(model, [])
            if error is None:
                self._keys.committed_late(new_keys)
        return ended

    @property
    def unfinished(self) -> set[Model]:
        """The models of which a part of a commit is unfinished."""
        learners = [self._models.with_id(model_id) for model_id in self._unfinished]
        return {learner.model for learner in learners if learner is not None}

    def append_alone(self, entry: Entry) -> None:
        """Write a fit or a checkpoint in a commit of its own. Raises StorageFailed."""
        failures = self._append([entry])
        if error := failures.get(entry.model):
            raise error

    @property
    def in_doubt(self) -> bool:
        """Whether it is not known of some model what its last commit wrote."""
        return bool(self._in_doubt)

    def settle(self, computing: Computing) -> Iterator[Model]:
        """Learn what commits in doubt have written after all; the models that are settled."""
        for model_id in list(self._in_doubt):
            learner = self._models.with_id(model_id)
            if learner is not None:
                try:
                    self._storage.journal.settle(model_id)
                    for found in replay(learner, self._storage, computing):
                        self._keys.add_answered(found)
                except NotLeader:  # it was not written, and no request waits for it
                    self._models.release(learner.model)
                    self._in_doubt.discard(model_id)
                    continue
                except (StorageFailed, StartupError) as error:
                    logger.error("model %s: a commit is in doubt: %s", learner.model.name, error)
                    continue
                learner.publish()
                yield learner.model
            self._in_doubt.discard(model_id)

    def _append(
        self,
        entries: Sequence[Entry],
        keys: Sequence[KeyedRequest] = (),
        patience: float | None = None,
    ) -> dict[int, StorageFailed]:
        failures = self._storage.journal.append(entries, keys, patience)
        self._note(failures)
        return failures

    def _note(self, failures: Mapping[int, StorageFailed]) -> None:
        """Log failures, remember doubts, and let the models go that other replicas write by now."""
        self._in_doubt |= {model for model, e in failures.items() if isinstance(e, InDoubt)}
        for model_id, error in failures.items():
            learner = self._models.with_id(model_id)
            if isinstance(error, NotLeader) and learner is not None:
                self._models.release(learner.model)
        failed = (error for error in failures.values() if not isinstance(error, Unfinished))
        for detail in {error.detail for error in failed}:
            logger.error("%s", detail)
