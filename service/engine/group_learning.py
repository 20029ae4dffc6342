"""Takes a group of requests through admission, commit, learning, publication and answer.

A group is everything that waited when the writer looked. One commit writes all of it to the logs.
Then each model absorbs its own requests, as one block or, if that would take long, as several;
`engine.turns` decides which model goes next. What takes long is done aside, while another thread
may go on as the writer (`engine.writer_role`).
"""

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import Any, TypeAlias

from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.admission import (
    COSTLY_BYTES,
    Admission,
    admit,
    count_rejected,
    is_costly,
    with_precomputed,
)
from wolfstream.service.engine.blocks import AdmittedRequest
from wolfstream.service.engine.challengers import Challengers
from wolfstream.service.engine.commits import CommitOutcome, Commits, UnfinishedCommits
from wolfstream.service.engine.idempotency import Duplicates, IdempotencyKeys
from wolfstream.service.engine.late_labels import AdmittedPrediction, count_unlearned
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.queue_items import (
    GroupRequest,
    LabelOutcomes,
    LabelRequest,
    LearnRequest,
    Reply,
    Waiter,
    WaitingRowsRequest,
)
from wolfstream.service.engine.snapshot_schedule import SnapshotSchedule
from wolfstream.service.engine.turns import Turns, Work
from wolfstream.service.engine.writer_role import Products, WriterRole
from wolfstream.service.errors import NotYetLearned, Refusal, ServerFailed, StorageFailed
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.absorb import store_waiting_rows
from wolfstream.service.recovery.broken import (
    error_text,
    learned_elsewhere,
    mark_broken,
    mark_stopped,
)
from wolfstream.service.settings import Settings
from wolfstream.service.storage.entries import now
from wolfstream.service.storage.interfaces import LogFull

logger = logging.getLogger(__name__)

# Called with replies, and with the models whose views are new.
Acknowledge: TypeAlias = Callable[[list[Reply], Iterable[Model]], None]

# How long to wait for an unfinished commit while there is nothing else to do.
_UNFINISHED_SECONDS = 0.01


class GroupLearning:
    """Learns groups of requests. Used by the writer's thread.

    Args:
        models: the models that are learned here.
        keys: the idempotency keys that were seen before.
        commits: writes the logs.
        snapshots: told when a model has learned enough for a snapshot.
        challengers: paused while their champions' learners are read or replaced.
        settings: of the server.
        products: see `Products`.
        metrics: counts and durations.
        role: of the writer, which the thread holds unless it is aside.
        acknowledge: delivers replies (a waiter and its result or error), and is told the models
            whose views are new.
        short: see `Turns`.
    """

    def __init__(
        self,
        models: LiveModels,
        keys: IdempotencyKeys,
        commits: Commits,
        snapshots: SnapshotSchedule,
        challengers: Challengers,
        settings: Settings,
        products: Products,
        metrics: Metrics,
        role: WriterRole,
        acknowledge: Acknowledge,
        short: float,
    ) -> None:
        self._models, self._keys, self._commits = models, keys, commits
        self._snapshots, self._challengers = snapshots, challengers
        self._settings, self._products = settings, products
        self._acknowledge, self._role = acknowledge, role
        self._turns = Turns(models, metrics, role, self._store_answer, short)
        self._unfinished = UnfinishedCommits(commits)
        self._checks_costly = False  # whether a thread aside checks a request that takes long
        # Due since the last delivery: replies, and the models whose views are new.
        self._replies, self._changed = list[Reply](), dict[Model, None]()

    @property
    def busy(self) -> set[Model]:
        """The models for which no other request may begin.

        They have something left to learn, an unfinished commit, or a thread that uses them.
        """
        return self._turns.busy | self._unfinished.models | self._role.in_use

    def waiting(self) -> list[Waiter]:
        """Return the waiters of all requests that have begun and have no answer."""
        return [*self._turns.waiting(), *self._unfinished.waiting()]

    @property
    def can_go_on(self) -> bool:
        """Whether there is more to do than wait for threads that are aside."""
        return self._turns.may_begin or bool(self._unfinished.models or self._replies)

    def learn(self, requests: list[GroupRequest], seconds: float = math.inf) -> None:
        """Take a group from admission to its answers.

        What takes long is only begun, as is what would be learned after these seconds.
        """
        self.resolve()
        if any(map(is_costly, requests)):
            requests = self._with_precomputed(requests)
        duplicates = Duplicates(self._keys)
        admission = self._admitted(requests, duplicates)
        if admission is not None:
            self._commit(admission, duplicates)
        self._learn_short(seconds)

    def _with_precomputed(self, requests: list[GroupRequest]) -> list[GroupRequest]:
        """Compute aside what takes long to check; what fails is left to admission."""
        learners = dict[Model, Learner]()
        for model in {request.model for request in requests if is_costly(request)}:
            with suppress(Refusal):
                learners[model] = self._models.usable(model)
        self._checks_costly = True
        try:
            with self._role.aside(*{request.model for request in requests}):
                return with_precomputed(requests, learners, now())
        except Exception:
            logger.exception("check in advance failed, admission checks again")
            return requests
        finally:
            self._checks_costly = False

    @property
    def max_request_bytes(self) -> int | None:
        """The bytes of the largest request that may begin; None if any may.

        While one is checked aside, no other that takes long to check is taken from the queue.
        """
        return COSTLY_BYTES if self._checks_costly else None

    def refuse(self, model: Model, reply: Reply) -> None:
        """Send a reply that the model has another revision, once a commit proves that it has it.

        Another replica may have learned meanwhile.
        """
        self._commit(Admission([], [], [], [], [(model, reply)]), Duplicates(self._keys))
        self._deliver()

    def _commit(self, admission: Admission, duplicates: Duplicates) -> None:
        """Write a group to the logs; go on with the models whose outcome is known."""
        failures = self._commits.append(admission.entries, duplicates.new, admission.confirmed)
        self._learn_committed(self._unfinished.leave(admission, duplicates, failures))

    def _learn_committed(self, outcome: CommitOutcome) -> None:
        """Leave what is durable to the turns of its models, and note all replies that are due."""
        admission, duplicates, failures = outcome
        committed, others = self._committed(admission.admitted, failures)
        replies = [*admission.refused, *others]
        replies += [
            (waiter, failures.get(model.id, refusal))
            for model, (waiter, refusal) in admission.unsure
        ]
        # Models whose logs were full: a snapshot lets their oldest records go.
        full = {
            item.request.model
            for item in (admission.admitted if failures else ())
            if isinstance(failures.get(item.request.model.id), LogFull)
        }
        self._acknowledge_durable(committed)
        replies += self._store_waiting_rows(admission.waiting_rows, failures)
        replies += self._answer_without_learning(admission.known, failures)
        self._replies += replies + duplicates.replies(replies)
        for work in _works(committed, duplicates):
            self._turns.leave(work)
        for model in full:
            with _logged("snapshot not started, log stays full", model):
                self._snapshots.make_room(self._models.learner(model))

    def _committed(
        self, admitted: list[AdmittedRequest], failures: Mapping[int, StorageFailed]
    ) -> tuple[list[AdmittedRequest], list[Reply]]:
        """Return the requests that are to be learned here, and the replies to the others."""
        committed, replies = list[AdmittedRequest](), list[Reply]()
        for item in admitted:
            model = item.request.model
            if error := failures.get(model.id):
                self._models.measure([model])  # the memory that was set aside for it is free again
                count_rejected(item.request)
                replies.append((item.request.waiter, error))
            elif not model.led:  # its term has ended since the commit
                replies.append((item.request.waiter, learned_elsewhere(model)))
            else:
                committed.append(item)
        return committed, replies

    def _learn_short(self, seconds: float) -> None:
        """Take short turns until these seconds have passed or none is left, and answer."""
        deadline = time.monotonic() + seconds
        while (work := self._turns.next_short()) is not None:
            self._take_turn(work)
            if time.monotonic() >= deadline:
                break
        self._deliver()

    def _take_turn(self, work: Work) -> None:
        """Let a model learn its next block or part, and note the replies that are due then."""
        if self._turns.is_long(work):  # what is due need not wait for it
            self._deliver()
        replies = self._turns.turn(work)
        if replies:
            self._replies += replies + work.duplicates.replies(replies)
            self._changed[work.model] = None

    def _deliver(self) -> None:
        """Answer what is due, and do what follows for the models that have learned."""
        replies, changed = self._replies, self._changed
        self._replies, self._changed = [], {}
        if replies or changed:
            self._acknowledge(replies, changed)
        for model in changed:
            self._after_learning(model)

    def give_up(self, models: Iterable[Model]) -> None:
        """Answer what was left to learn for models whose terms have ended."""
        for model in models:
            if replies := self._turns.give_up(model, learned_elsewhere(model)):
                self._acknowledge(replies, ())

    def leave_to_next_start(self) -> None:
        """Answer what was left to learn; its models, unless a thread uses them, learn no more."""
        for model in self._turns.busy - self._role.in_use:
            reason = mark_stopped(self._models.learner(model))
            self._acknowledge(self._turns.give_up(model, reason), ())

    def go_on(self) -> None:
        """Learn what has become durable, and take the next turn.

        What is due is answered first: the thread that was about to answer may be aside.
        """
        self._deliver()
        for outcome in self._unfinished.take(0.0 if self._turns.busy else _UNFINISHED_SECONDS):
            self._learn_committed(outcome)
        if (work := self._turns.next()) is not None:
            self._take_turn(work)
        self._deliver()

    def start_snapshots(self) -> None:
        """Start the snapshots that are due, unless another job is under way."""
        for learner in self._snapshots.due():
            model = learner.model
            if model in self.busy or not self._role.may_begin_job([model]):
                continue
            with (
                _logged("snapshot not started, journal kept", model),
                self._role.job([model]),
                self._challengers.paused([model]),
            ):
                self._snapshots.start_due(learner)

    def schedule_snapshot_if_due(self, model: Model) -> None:
        """Note that a snapshot of a model is due if it has learned enough since its last one."""
        with _logged("snapshot not noted, journal kept", model):
            self._snapshots.schedule_if_due(self._models.learner(model))

    def _admitted(self, requests: list[GroupRequest], duplicates: Duplicates) -> Admission | None:
        """Admit requests; if admission itself fails, answer all of them with its error."""
        try:
            memory, usable = self._models.memory, self._models.usable
            return admit(requests, duplicates, self._settings, memory, usable, now)
        except Exception as failure:  # every waiting request gets an answer
            logger.exception("admission failed, group not learned")
            failed = ServerFailed(f"{error_text(failure)}; nothing was learned")
            for request in requests:
                if not isinstance(request, WaitingRowsRequest):
                    count_rejected(request)
            self._acknowledge([(request.waiter, failed) for request in requests], ())
            return None

    def _store_waiting_rows(
        self, predictions: list[AdmittedPrediction], failures: Mapping[int, StorageFailed]
    ) -> Iterator[Reply]:
        """Let predicted rows, now durable, wait for their labels; yield the predictions."""
        learners = dict[Model, Learner]()  # with rows that wait now
        for request, new, prediction in predictions:
            model = request.model
            try:
                if error := failures.get(model.id):
                    raise error
                if new is not None:
                    learners[model] = self._models.usable(model)
                    store_waiting_rows(learners[model], *new)
            except Refusal as refusal:
                yield request.waiter, refusal
            except Exception as error:  # the log has them: no view may show half of them
                yield request.waiter, self._broken(model, error)
            else:
                self._changed[model] = None
                yield request.waiter, prediction
        for learner in learners.values():
            learner.show_pending()

    def _answer_without_learning(
        self,
        requests: list[tuple[LabelRequest, LabelOutcomes]],
        failures: Mapping[int, StorageFailed],
    ) -> Iterator[Reply]:
        """Yield the replies to requests of labels that are all known already, and durable now."""
        for request, outcomes in requests:
            model = request.model
            if error := failures.get(model.id):
                count_rejected(request)
                yield request.waiter, error
            else:
                count_unlearned(request, outcomes)
                published = model.published
                yield request.waiter, outcomes.response(model, published.sequence, published.epoch)

    def _broken(self, model: Model, error: Exception) -> NotYetLearned:
        """Mark a model broken, unless its term has ended meanwhile."""
        if not model.led:
            return learned_elsewhere(model)
        return mark_broken(self._models.learner(model), error)

    def _after_learning(self, model: Model) -> None:
        """Forget idempotency keys beyond their bounds, and note a snapshot that is due."""
        if not (model.led and self._models.is_live(model)):  # deleted while its answer was due
            return
        with _logged("old idempotency keys not forgotten", model):
            self._keys.forget_oldest(self._models.term(model))
        self.schedule_snapshot_if_due(model)

    def resolve(self) -> None:
        """Resolve commits in doubt, and learn the samples of those that were written after all."""
        doubtful = self._commits.doubtful
        if not doubtful:
            return
        with self._challengers.paused(doubtful):
            resolved = list(self._commits.resolve(self._products))
        if resolved:
            self._acknowledge([], resolved)

    def _acknowledge_durable(self, committed: list[AdmittedRequest]) -> None:
        """Answer the clients that asked to hear of durability, not of learning."""
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

    def _store_answer(self, item: AdmittedRequest, answer: dict[str, Any]) -> None:
        """Store an answer under its request's idempotency key, if it has one."""
        if isinstance(item.request, LearnRequest) and item.request.key is not None:
            with _logged("answer of an idempotency key not kept", item.request.model):
                self._keys.answer(item.request.model.id, item.sequence, answer)


def _works(committed: list[AdmittedRequest], duplicates: Duplicates) -> list[Work]:
    """Return what each model has to learn of a commit."""
    blocks = dict[Model, list[list[AdmittedRequest]]]()
    for (model, _), block in groupby(
        committed, lambda item: (item.request.model, item.parts[0].entry.block)
    ):
        blocks.setdefault(model, []).append(list(block))
    return [Work(model, own_blocks, duplicates) for model, own_blocks in blocks.items()]


@contextmanager
def _logged(failure: str, model: Model) -> Iterator[None]:
    """Log an error and go on: the samples are durable and learned, so the writer need not end."""
    try:
        yield
    except Exception:
        logger.exception("%s: model=%s", failure, model.name)
