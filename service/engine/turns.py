"""Turns: models that have a large request to learn take them part by part, and others come between.

A small request is learned as one block. A large request is published and answered once all of
its parts are learned; until then the writer takes nothing else of its model.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.absorb import (
    Results,
    absorb_block,
    absorb_part,
    joined_answer,
    together,
)
from wolfstream.service.engine.admission import count_rejected
from wolfstream.service.engine.broken import learned_elsewhere, mark_broken, not_yet_learned
from wolfstream.service.engine.duplicates import Duplicates
from wolfstream.service.engine.journal_parts import Admitted
from wolfstream.service.engine.late_labels import Found, LabelRequest, count_unlearned
from wolfstream.service.engine.learn_request import LearnRequest, Reply
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.errors import ModelBroken, NotYetLearned
from wolfstream.service.model.live import Model


class Work:
    """What a model has to learn of one commit, block by block in order.

    samples: how many. seconds: that it has taken. duplicates: of the requests in the commit.
    """

    def __init__(self, model: Model, blocks: list[list[Admitted]], duplicates: Duplicates) -> None:
        self.model, self.duplicates = model, duplicates
        self.blocks = deque(blocks)
        self.samples = sum(item.samples for block in blocks for item in block)
        self.seconds = 0.0
        self.next_part = 0
        self.results: list[Results] = []

    @property
    def large(self) -> bool:
        """Whether a request of it is learned in parts."""
        return any(len(block[0].parts) > 1 for block in self.blocks)

    def requests(self) -> Iterator[LearnRequest | LabelRequest]:
        """Yield those that have no answer yet."""
        return (item.request for block in self.blocks for item in block)


class Turns:
    """Learns what was committed. Used by the writer's thread.

    keep_answer: remembers the answer to a request under its key.
    """

    def __init__(
        self,
        models: LiveModels,
        metrics: Metrics,
        keep_answer: Callable[[Admitted, dict[str, object]], None],
    ) -> None:
        self._models, self._metrics = models, metrics
        self._keep_answer = keep_answer
        self._waiting: dict[Model, Work] = {}

    @property
    def busy(self) -> set[Model]:
        """The models that have something left to learn."""
        return set(self._waiting)

    def waiting(self) -> list[LearnRequest | LabelRequest]:
        """Return the requests that have no answer yet."""
        return [request for work in self._waiting.values() for request in work.requests()]

    def leave(self, work: Work) -> None:
        """Leave a model's work for the turns to come."""
        self._waiting[work.model] = work

    def take(self) -> tuple[Work, list[Reply]]:
        """Return a turn of the model that has taken the least time: its work, and the replies."""
        work = min(self._waiting.values(), key=lambda work: work.seconds)
        replies = self.turn(work)
        if not work.blocks:
            del self._waiting[work.model]
        return work, replies

    def turn(self, work: Work) -> list[Reply]:
        """Learn the next block of a model, or the next part of a large request."""
        began, block = time.monotonic(), work.blocks[0]
        try:
            self._models.usable(work.model)  # an earlier block of this commit may have broken it
            large = len(block[0].parts) > 1
            replies = self._learn_part(work, block[0]) if large else self._learn(work, block)
        except Exception as error:  # its samples are durable: only this model stops
            failed = self._failed(work.model, error)
            for item in work.blocks.popleft():
                count_rejected(item.request)
            return [(item.request.answer, failed) for item in block]
        ended = time.monotonic()
        work.seconds += ended - began
        answered = [item.request for item in block] if replies else []
        waited = [ended - request.submitted for request in answered]
        self._metrics.count_block(ended - began, waited)
        counts = work.model.counts[block[0].request.head]
        counts.learn_requests += len(waited)
        counts.learn_seconds += sum(waited)
        return replies

    def _failed(self, model: Model, error: Exception) -> NotYetLearned:
        """Return the answer to requests that are durable, and were not learned for a reason."""
        if not model.led:
            return learned_elsewhere(model)
        if isinstance(error, ModelBroken):
            return not_yet_learned(model)
        return mark_broken(self._models.learner(model), error)

    def give_up(self, model: Model) -> list[Reply]:
        """Leave the rest of a model's work to the replica that leads it now; return the replies."""
        work = self._waiting.pop(model, None)
        if work is None:
            return []
        replies = [(request.answer, learned_elsewhere(model)) for request in work.requests()]
        return [*replies, *work.duplicates.replies(replies)]

    def _learn(self, work: Work, block: list[Admitted]) -> list[Reply]:
        """Absorb and publish one block; the answers to its requests."""
        parts = [item.parts[0] for item in block]
        content = together([part.content for part in parts])
        learner = self._models.learner(work.model)
        answers = absorb_block(learner, [part.entry for part in parts], content)
        work.blocks.popleft()
        return [self._answered(work, *pair) for pair in zip(block, answers, strict=True)]

    def _learn_part(self, work: Work, item: Admitted) -> list[Reply]:
        """Absorb the next part of a large request; the answer to it with the last one."""
        entry, content = item.parts[work.next_part]
        learner = self._models.learner(work.model)
        work.next_part += 1
        if work.next_part < len(item.parts):
            work.results.append(absorb_part(learner, entry, content))
            return []
        (last,) = absorb_block(learner, [entry], content)
        answer = joined_answer(work.results, last)
        work.blocks.popleft()
        work.next_part, work.results = 0, []
        return [self._answered(work, item, answer)]

    def _answered(self, work: Work, item: Admitted, answer: dict[str, object]) -> Reply:
        request = item.request
        work.model.counts[request.head].learned += item.samples
        if item.found is not None:
            assert isinstance(request, LabelRequest)
            count_unlearned(request, item.found)
            return request.answer, self._of_labels(work, item.found, answer)
        self._keep_answer(item, answer)
        return request.answer, answer

    def _of_labels(self, work: Work, found: Found, learned: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request of labels, some of which were learned."""
        for seconds in found.seconds:
            self._metrics.label_delay.observe(seconds)
        return found.answer(work.model, learned["sequence"], learned["epoch"])
