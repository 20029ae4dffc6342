"""Small requests that are checked together: each gets the outcome that it would get alone."""

from typing import Any

import numpy as np
import pytest

from tests.service.streams import two_classes
from wolfstream.service.engine.admission import Admission, admit
from wolfstream.service.engine.idempotency import Duplicates, IdempotencyKeys
from wolfstream.service.engine.queue_items import LearnRequest
from wolfstream.service.errors import InvalidSamples
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.memory import ModelMemory
from wolfstream.service.samples.validation import Samples
from wolfstream.service.settings import Settings
from wolfstream.service.spec.model import ModelSpec


class Nobody:
    """Waits for no reply."""

    def done(self) -> bool:
        return False

    def set_result(self, result: Any, /) -> None:
        pass

    def set_exception(self, error: Exception, /) -> None:
        pass


@pytest.fixture
def learner() -> Learner:
    learner = Learner(Model(1, "m", ModelSpec()))
    learner.absorb("working_set", two_classes(40))
    return learner


def requests_of(model: Model, rows: list[Samples]) -> list[LearnRequest]:
    return [LearnRequest(model, "working_set", each, Nobody(), 0.0) for each in rows]


def admission_of(learner: Learner, requests: list[LearnRequest]) -> Admission:
    settings = Settings()
    memory = ModelMemory(1 << 40)
    duplicates = Duplicates(IdempotencyKeys(10, 1 << 20))
    return admit(requests, duplicates, settings, memory, lambda _: learner, lambda: 0)


def rows_of(widths: list[int]) -> list[Samples]:
    return [Samples(np.full((1, width), 0.5 * i), ["a"]) for i, width in enumerate(widths)]


def test_requests_together_are_the_entries_that_they_are_alone(learner: Learner) -> None:
    width = two_classes(1).X.shape[1]
    requests = requests_of(learner.model, rows_of([width] * 40))
    together = admission_of(learner, requests)
    assert [item.request for item in together.admitted] == requests
    for i, request in enumerate(requests):
        (alone,) = admission_of(learner, [request]).entries
        entry = together.entries[i]
        assert entry == alone._replace(sequence=41 + i, block=80)


def test_refused_request_leaves_the_others_admitted(learner: Learner) -> None:
    width = two_classes(1).X.shape[1]
    rows = rows_of([width, width, width + 1, width, width])
    requests = requests_of(learner.model, rows)
    admission = admission_of(learner, requests)
    assert [item.sequence for item in admission.admitted] == [41, 42, 43, 44]
    ((waiter, error),) = admission.refused
    assert waiter is requests[2].waiter
    assert isinstance(error, InvalidSamples)


def test_request_of_one_class_too_many_is_refused_alone(learner: Learner) -> None:
    width = two_classes(1).X.shape[1]
    most = Settings().classes
    rows = [Samples(np.zeros((1, width)), [f"new {i}"]) for i in range(most)]
    requests = requests_of(learner.model, rows)
    admission = admission_of(learner, requests)
    known = len(learner.heads["working_set"].view().classes or ())
    assert len(admission.admitted) == most - known
    assert len(admission.refused) == known
