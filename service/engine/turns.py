"""Scheduling: which model learns next, so that no model waits for what the others have to learn.

A turn is one block, or one part of a large request. It goes to the model that has had the least
time so far. A model without work counts as if it had had as much time as the others, so that it
cannot save up time (start-time fair queueing, Goyal et al. 1996). Long turns are taken one at a
time, and short ones beside them.

A large request is published and answered once all of its parts are learned. Until then the writer
takes nothing else for its model.
"""

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any
from weakref import WeakKeyDictionary

from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.admission import count_rejected
from wolfstream.service.engine.blocks import AdmittedRequest, seconds_per_sample
from wolfstream.service.engine.idempotency import Duplicates
from wolfstream.service.engine.late_labels import count_unlearned
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.queue_items import (
    LabelOutcomes,
    LabelRequest,
    LearnRequest,
    Reply,
    Waiter,
)
from wolfstream.service.engine.writer_role import WriterRole
from wolfstream.service.errors import ModelBroken, NotYetLearned
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.absorb import (
    Results,
    absorb_block,
    absorb_part,
    concatenate,
    joined_answer,
)
from wolfstream.service.recovery.broken import learned_elsewhere, mark_broken, not_yet_learned

# A turn that is expected to take longer is long.
SHORT_SECONDS = 0.05


class Work:
    """What a model has to learn of one commit, block by block in order.

    Attributes:
        model: that learns.
        blocks: what is left: each block is a list of requests.
        duplicates: among the requests of the commit.
        had: the time that the model has had, on the clock of `Turns`, in seconds.
        seconds: how long its next turn is expected to take.
        next_part: the index of the next part of a large request; 0 between requests.
        results: those of the parts before it.
    """

    def __init__(
        self, model: Model, blocks: list[list[AdmittedRequest]], duplicates: Duplicates
    ) -> None:
        self.model, self.duplicates = model, duplicates
        self.blocks = deque(blocks)
        self.had = 0.0
        self.next_part = 0
        self.results: list[Results] = []
        self.seconds = self._expected()

    def _expected(self) -> float:
        block = self.blocks[0]
        if self.in_parts:
            parts = [block[0].parts[self.next_part]]
        else:
            parts = [item.parts[0] for item in block]
        first = parts[0]
        per_sample = seconds_per_sample(self.model, first.entry.head, first.content.samples)
        return per_sample * sum([part.entry.samples for part in parts])

    def took(self, seconds: float) -> None:
        """Count the time of a turn that was taken."""
        self.had += seconds
        if self.blocks:
            self.seconds = self._expected()

    @property
    def in_parts(self) -> bool:
        """Whether the next turn learns a part of a large request."""
        return len(self.blocks[0][0].parts) > 1

    def __lt__(self, other: "Work") -> bool:
        """Return whether this work's turn comes before the other's."""
        return (self.had, self.seconds) < (other.had, other.seconds)

    def requests(self) -> Iterator[LearnRequest | LabelRequest]:
        """Yield the requests that have no answer yet."""
        return (item.request for block in self.blocks for item in block)


class Turns:
    """Learns what was committed. Used by the writer's thread.

    Args:
        models: the models that are learned here.
        metrics: counts and durations.
        role: of the writer; a turn steps aside from it while it computes.
        store_answer: called with a request and its answer, to keep it under the request's key.
        short: the expected seconds of a turn, up to which it is short.
    """

    def __init__(
        self,
        models: LiveModels,
        metrics: Metrics,
        role: WriterRole,
        store_answer: Callable[[AdmittedRequest, dict[str, object]], None],
        short: float = SHORT_SECONDS,
    ) -> None:
        self._models, self._metrics, self._role = models, metrics, role
        self._store_answer, self._short_seconds = store_answer, short
        self._waiting: dict[Model, Work] = {}
        # Heaps of works by `had`. A work that is not in `_waiting` any more was given up.
        self._short, self._long = list[Work](), list[Work]()
        self._long_turns = 0  # that are under way: 0 or 1
        # The virtual clock: what the model of the last turn had had before it.
        self._had = 0.0
        # model -> what it had had after its last turn
        self._had_by = WeakKeyDictionary[Model, float]()

    @property
    def busy(self) -> set[Model]:
        """The models that have something left to learn."""
        return set(self._waiting)

    def waiting(self) -> Iterator[Waiter]:
        """Yield the waiters of all requests that have no answer yet."""
        for work in self._waiting.values():
            yield from (request.waiter for request in work.requests())
            yield from work.duplicates.waiting()

    def leave(self, work: Work) -> None:
        """Queue a model's work for its turns."""
        self._waiting[work.model] = work
        work.had = max(self._had, self._had_by.get(work.model, 0.0))
        self._push(work)

    def is_long(self, work: Work) -> bool:
        """Return whether a work's next turn is expected to take long."""
        return work.in_parts or work.seconds > self._short_seconds

    def _push(self, work: Work) -> None:
        heapq.heappush(self._long if self.is_long(work) else self._short, work)

    @property
    def may_begin(self) -> bool:
        """Whether any turn may begin now."""
        works = self._short if self._long_turns else [*self._short, *self._long]
        return any(
            self._waiting.get(work.model) is work and not self._role.uses(work.model)
            for work in works
        )

    def next_short(self) -> Work | None:
        """Return the work that has the next short turn; None if none may begin."""
        return self._next([self._short])

    def next(self) -> Work | None:
        """Return the work that has the next turn; None if none may begin."""
        return self._next([self._short] if self._long_turns else [self._short, self._long])

    def _next(self, heaps: list[list[Work]]) -> Work | None:
        """Pop the first work whose model is not in use; works that are passed over stay queued."""
        in_use, work = list[Work](), None
        while work is None and (heap := min(filter(None, heaps), key=itemgetter(0), default=None)):
            work = heapq.heappop(heap)
            if self._waiting.get(work.model) is not work:
                work = None  # it was given up
            elif self._role.uses(work.model):
                in_use.append(work)
                work = None
        for passed_over in in_use:
            self._push(passed_over)
        return work

    def turn(self, work: Work) -> list[Reply]:
        """Learn a model's next block, or the next part of its large request; return the replies."""
        is_long = self.is_long(work)
        self._had = max(self._had, work.had)
        self._long_turns += is_long
        try:
            replies = self._learn_next(work)
        finally:
            self._long_turns -= is_long
        self._had_by[work.model] = work.had
        if self._waiting.get(work.model) is work:
            if work.blocks:
                self._push(work)
            else:
                del self._waiting[work.model]
        return replies

    def _learn_next(self, work: Work) -> list[Reply]:
        began, block = time.monotonic(), work.blocks[0]
        try:
            self._models.usable(work.model)  # an earlier block of the commit may have broken it
            in_parts = work.in_parts
            replies = self._learn_part(work, block[0]) if in_parts else self._learn(work, block)
        except Exception as error:  # the samples are durable: only this model stops
            failed = self._failed(work.model, error)
            for item in work.blocks.popleft():
                count_rejected(item.request)
            work.took(time.monotonic() - began)
            return [(item.request.waiter, failed) for item in block]
        ended = time.monotonic()
        work.took(ended - began)
        answered = [item.request for item in block] if replies else []
        waited = [ended - request.submitted for request in answered]
        self._metrics.count_block(ended - began, waited)
        counts = work.model.counts[block[0].request.head]
        counts.learn_requests += len(waited)
        counts.learn_seconds += sum(waited)
        return replies

    def _failed(self, model: Model, error: Exception) -> NotYetLearned:
        """Return the reply to requests that are durable, but were not learned for this reason."""
        if not model.led:
            return learned_elsewhere(model)
        if isinstance(error, ModelBroken):
            return not_yet_learned(model)
        return mark_broken(self._models.learner(model), error)

    def give_up(self, model: Model, reason: NotYetLearned) -> list[Reply]:
        """Leave a model's work to whoever reads its log next; return the replies."""
        work = self._waiting.pop(model, None)
        if work is None:
            return []
        replies: list[Reply] = [(request.waiter, reason) for request in work.requests()]
        return [*replies, *work.duplicates.replies(replies)]

    def _learn(self, work: Work, block: list[AdmittedRequest]) -> list[Reply]:
        """Absorb and publish one block; return the replies to its requests."""
        parts = [item.parts[0] for item in block]
        learner = self._models.learner(work.model)
        with self._role.aside(work.model):
            content = concatenate([part.content for part in parts])
            answers = absorb_block(learner, [part.entry for part in parts], content)
        work.blocks.popleft()
        return [self._answered(work, *pair) for pair in zip(block, answers, strict=True)]

    def _learn_part(self, work: Work, item: AdmittedRequest) -> list[Reply]:
        """Absorb the next part of a large request; return the reply to it with the last part."""
        entry, content = item.parts[work.next_part]
        learner = self._models.learner(work.model)
        work.next_part += 1
        with self._role.aside(work.model):
            if work.next_part < len(item.parts):
                work.results.append(absorb_part(learner, entry, content))
                return []
            (last,) = absorb_block(learner, [entry], content)
            answer = joined_answer(work.results, last)
        work.blocks.popleft()
        work.next_part, work.results = 0, []
        return [self._answered(work, item, answer)]

    def _answered(self, work: Work, item: AdmittedRequest, answer: dict[str, object]) -> Reply:
        """Count a learned request and return the reply to it."""
        request = item.request
        work.model.counts[request.head].learned += item.samples
        if item.outcomes is not None:
            assert isinstance(request, LabelRequest)
            count_unlearned(request, item.outcomes)
            return request.waiter, self._labels_answer(work, item.outcomes, answer)
        self._store_answer(item, answer)
        return request.waiter, answer

    def _labels_answer(
        self, work: Work, outcomes: LabelOutcomes, learned: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the answer to a request of labels, some of which were learned."""
        for seconds in outcomes.seconds:
            self._metrics.label_delay.observe(seconds)
        return outcomes.response(work.model, learned["sequence"], learned["epoch"])
