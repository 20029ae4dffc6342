"""One group of requests is admitted, committed, learned, published and answered, in that order.

A group is everything that waited when the writer looked. All of it goes into the journal in one
commit; after that each model absorbs its own part as one block. A large request is absorbed in
parts (`engine.turns`), and requests to other models are learned between two of them.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from typing import Any, TypeAlias

from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.absorb import remember
from wolfstream.service.engine.admission import Admission, admit, count_rejected
from wolfstream.service.engine.broken import learned_elsewhere, mark_broken
from wolfstream.service.engine.challengers import Challengers
from wolfstream.service.engine.commits import Commits
from wolfstream.service.engine.duplicates import Duplicates
from wolfstream.service.engine.journal_parts import Admitted
from wolfstream.service.engine.late_labels import Found, LabelRequest, count_unlearned
from wolfstream.service.engine.learn_request import LearnRequest, Reply
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.predictions import Remembered, RememberRequest
from wolfstream.service.engine.remembered_keys import RememberedKeys
from wolfstream.service.engine.snapshot_schedule import SnapshotSchedule
from wolfstream.service.engine.turns import Turns, Work
from wolfstream.service.engine.unfinished import Committed, UnfinishedCommits
from wolfstream.service.errors import NotYetLearned, Refusal, ServerFailed, StorageFailed
from wolfstream.service.model.live import Model
from wolfstream.service.native.threads import Threads
from wolfstream.service.settings import Settings
from wolfstream.service.storage.entries import now
from wolfstream.service.storage.journal import LogFull

logger = logging.getLogger(__name__)

# What goes through the journal as part of a group.
GroupRequest: TypeAlias = LearnRequest | LabelRequest | RememberRequest
Acknowledge: TypeAlias = Callable[[list[Reply], Iterable[Model]], None]

# While nothing else comes, unfinished commits are looked at this often.
_UNFINISHED_SECONDS = 0.01
# Learning this many samples may take a second.
_LONG_BLOCK = 1024


class GroupLearning:
    """Learns groups of requests. Used by the writer's thread.

    acknowledge: delivers replies (a future and its result or error) and names the models
        whose view is new.
    """

    def __init__(
        self,
        models: LiveModels,
        keys: RememberedKeys,
        commits: Commits,
        snapshots: SnapshotSchedule,
        challengers: Challengers,
        settings: Settings,
        threads: Threads,
        metrics: Metrics,
        acknowledge: Acknowledge,
    ) -> None:
        self._models, self._keys, self._commits = models, keys, commits
        self._snapshots, self._challengers = snapshots, challengers
        self._settings, self._threads = settings, threads
        self._acknowledge = acknowledge
        self._turns = Turns(models, metrics, self._keep_answer)
        self._unfinished = UnfinishedCommits(commits)

    @property
    def busy(self) -> set[Model]:
        """The models of which nothing else may begin.

        They are in the middle of a large request, or have a commit that is unfinished.
        """
        return self._turns.busy | self._unfinished.models

    def waiting(self) -> list[LearnRequest | LabelRequest]:
        """Return the requests that have begun and are not answered yet."""
        return [*self._turns.waiting(), *self._unfinished.waiting()]

    def learn(self, requests: list[GroupRequest]) -> None:
        """Take a group from admission to its answers. Large requests are only begun."""
        self.settle()
        duplicates = Duplicates(self._keys)
        admission = self._admitted(requests, duplicates)
        if admission is None:
            return
        failures = self._commits.append(admission.entries, duplicates.new, admission.confirmed)
        self._learn_committed(self._unfinished.leave(admission, duplicates, failures))

    def _learn_committed(self, durable: Committed) -> None:
        """Learn what is durable, publish it and answer."""
        admission, duplicates, failures = durable
        replies, committed = admission.refused, list[Admitted]()
        for item in admission.admitted:
            model = item.request.model
            if error := failures.get(model.id):
                count_rejected(item.request)
                replies.append((item.request.answer, error))
            elif not model.led:  # its term has ended since
                replies.append((item.request.answer, learned_elsewhere(model)))
            else:
                committed.append(item)
        replies += [
            (answer, failures.get(model.id, refusal))
            for model, (answer, refusal) in admission.unsure
        ]
        full = {
            item.request.model
            for item in admission.admitted
            if isinstance(failures.get(item.request.model.id), LogFull)
        }
        self._acknowledge_durable(committed)
        changed: dict[Model, None] = {}
        replies += self._remember(admission.remembered, failures, changed)
        replies += self._without_learning(admission.settled, failures)
        delivered: list[Reply] = []
        for work in _shortest_first(committed, duplicates):
            if work.large:
                self._turns.leave(work)
                continue
            if replies and work.samples > _LONG_BLOCK:
                # The others need not wait for it.
                self._acknowledge(replies, list(changed))
                delivered += replies
                replies = []
            while work.blocks:
                replies += self._turns.turn(work)
            changed[work.model] = None
        self._acknowledge(replies + duplicates.replies(delivered + replies), changed)
        for model in changed:
            self._after_learning(model)
        for model in full:
            with _logged(f"model {model.name}: no snapshot; its log stays full"):
                self._snapshots.make_room(self._models.learner(model))

    def give_up(self, models: Iterable[Model]) -> None:
        """Answer what was left to learn for models whose terms have ended."""
        for model in models:
            if replies := self._turns.give_up(model):
                self._acknowledge(replies, ())

    def go_on(self) -> None:
        """Learn what has become durable, and the next part of a large request."""
        for committed in self._unfinished.take(0.0 if self._turns.busy else _UNFINISHED_SECONDS):
            self._learn_committed(committed)
        if self._turns.busy:
            self._take_turn()

    def _take_turn(self) -> None:
        work, replies = self._turns.take()
        if replies:
            self._acknowledge(replies + work.duplicates.replies(replies), [work.model])
        if not work.blocks:
            self._after_learning(work.model)

    def snapshot_if_due(self, model: Model) -> None:
        """Start a snapshot of a model that has learned enough since its last one."""
        with _logged(f"model {model.name}: no snapshot; the journal is kept"):
            self._snapshots.start_if_due(self._models.learner(model))

    def _admitted(self, requests: list[GroupRequest], duplicates: Duplicates) -> Admission | None:
        """Admit requests, or answer all of them with the error that admission failed with."""
        try:
            return admit(requests, duplicates, self._settings, self._models.usable, now)
        except Exception as failure:  # every waiting request gets an answer
            logger.exception("requests could not be admitted")
            failed = ServerFailed(f"{failure!r}; nothing was learned")
            for request in requests:
                if not isinstance(request, RememberRequest):
                    count_rejected(request)
            self._acknowledge([(request.answer, failed) for request in requests], ())
            return None

    def _remember(
        self,
        remembered: list[Remembered],
        failures: Mapping[int, StorageFailed],
        changed: dict[Model, None],
    ) -> Iterator[Reply]:
        """Keep predicted rows, now durable, until their labels come; yield the predictions."""
        for request, new, prediction in remembered:
            model = request.model
            try:
                if error := failures.get(model.id):
                    raise error
                if new is not None:
                    remember(self._models.usable(model), *new)
            except Refusal as refusal:
                yield request.answer, refusal
            except Exception as error:  # the journal has them: no state between is served
                yield request.answer, self._broken(model, error)
            else:
                changed[model] = None
                yield request.answer, prediction

    def _without_learning(
        self, settled: list[tuple[LabelRequest, Found]], failures: Mapping[int, StorageFailed]
    ) -> Iterator[Reply]:
        """Answer requests whose labels are all known already, now that those are durable."""
        for request, found in settled:
            model = request.model
            if error := failures.get(model.id):
                count_rejected(request)
                yield request.answer, error
            else:
                count_unlearned(request, found)
                published = model.published
                yield request.answer, found.answer(model, published.sequence, published.epoch)

    def _broken(self, model: Model, error: Exception) -> NotYetLearned:
        """Let a model learn no more, unless its term has ended meanwhile."""
        if not model.led:
            return learned_elsewhere(model)
        return mark_broken(self._models.learner(model), error)

    def _after_learning(self, model: Model) -> None:
        if not model.led:
            return
        with _logged(f"model {model.name}: keys were not forgotten"):
            self._keys.forget_oldest(self._models.term(model))
        self.snapshot_if_due(model)

    def settle(self) -> None:
        """Learn the samples of commits in doubt that were written after all."""
        doubtful = self._commits.doubtful
        if not doubtful:
            return
        with self._challengers.paused(doubtful):
            settled = list(self._commits.settle(self._threads.using))
        if settled:
            self._threads.use(self._settings.threads)
            self._acknowledge([], settled)

    def _acknowledge_durable(self, committed: list[Admitted]) -> None:
        """Answer those who do not want to wait until their samples are learned."""
        replies: list[Reply] = []
        for item in committed:
            request = item.request
            if isinstance(request, LearnRequest) and request.durable is not None:
                answer = {
                    "model": request.model.name,
                    "sequence": item.sequence,
                    "epoch": request.model.published.epoch,
                    "samples": len(request.samples.y),
                }
                replies.append((request.durable, answer))
        if replies:
            self._acknowledge(replies, ())

    def _keep_answer(self, item: Admitted, answer: dict[str, Any]) -> None:
        if isinstance(item.request, LearnRequest) and item.request.key is not None:
            with _logged("the answers of keys could not be kept"):
                self._keys.answer(item.request.model.id, item.sequence, answer)


def _shortest_first(committed: list[Admitted], duplicates: Duplicates) -> list[Work]:
    """Return what each model has to learn of a commit, the fewest samples first."""
    blocks = dict[Model, list[list[Admitted]]]()
    for (model, _), block in groupby(
        committed, lambda item: (item.request.model, item.parts[0].entry.block)
    ):
        blocks.setdefault(model, []).append(list(block))
    works = [Work(model, of_model, duplicates) for model, of_model in blocks.items()]
    return sorted(works, key=lambda work: work.samples)


@contextmanager
def _logged(message: str) -> Iterator[None]:
    """Log an error and go on: the samples are durable and learned, so the writer need not end."""
    try:
        yield
    except Exception:
        logger.exception(message)
