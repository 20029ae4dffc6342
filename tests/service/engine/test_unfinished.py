"""A commit that has no answer yet holds up its own model only, whose requests keep their order.

The journal of these tests is in memory, and finishes a commit when a test says so.
"""

import itertools
import math
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from tests.service.memory_storage import MemoryStorage
from tests.service.specs import read_papers_spec
from tests.service.streams import part, two_classes
from wolfstream.service.engine.queue_items import (
    Item,
    LabelRequest,
    LearnRequest,
    Order,
    WaitingRowsRequest,
)
from wolfstream.service.engine.writer import Writer
from wolfstream.service.errors import AnotherState, InDoubt, NotLeader, StorageFailed
from wolfstream.service.model.live import Model
from wolfstream.service.model.revision import Revision, check_revision
from wolfstream.service.samples.ids import LateLabels
from wolfstream.service.settings import Settings
from wolfstream.service.storage.term import Term

SAMPLES = two_classes(60)
SPEC = read_papers_spec({"working_set": {"max_size": 20}, "asset": {"dimension": 4}})


class Server:
    """A writer with two models, a's next commit being late."""

    def __init__(self) -> None:
        self.memory = MemoryStorage()
        self.replies: dict[Any, Any] = {}
        self.writer = Writer(self.memory.storage, Settings(), self._acknowledge, math.inf)
        self.writer.recover(lambda _: None)
        self.a, self.b = (self.writer.new_models.create(name, SPEC)[0] for name in "ab")
        self.memory.fate[self.a.id] = "late"

    def _acknowledge(self, replies: Any, _changed: Any) -> None:
        self.replies.update(replies)

    def begin(self, *group: Item) -> list[Any]:
        """Begin a group; the answers by now, None for those that have none."""
        self.writer.begin(list(group))
        return self.answers(*group)

    def finish(self, error: StorageFailed | None = None) -> None:
        """Let the late commit end."""
        self.memory.finishing = {self.a.id: error}
        self.writer.go_on()

    def answers(self, *group: Item) -> list[Any]:
        return [self.replies.get(request.waiter) for request in group]


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.writer.close()


def learn(model: Model, number: int, key: bytes | None = None) -> LearnRequest:
    rows = part(SAMPLES, 10 * number, 10 * number + 10)
    return LearnRequest(model, "asset", rows, Future(), 0.0, key)


def test_others_are_answered_and_it_is_too_once_it_ends(server: Server) -> None:
    first, other = learn(server.a, 0, b"k"), learn(server.b, 0, b"k")
    waiting, answer = server.begin(first, other)
    assert waiting is None
    assert answer["sequence"] == 10
    assert server.writer.busy == {server.a}
    assert server.writer.waiting() == [first.waiter]
    (another,) = server.begin(learn(server.b, 1))
    assert another["sequence"] == 20
    server.finish()
    assert server.answers(first)[0]["sequence"] == 10
    assert server.writer.busy == set()
    (again,) = server.begin(learn(server.a, 0, b"k"))
    assert again == {**server.answers(first)[0], "replayed": True}


def test_who_sends_the_same_again_gets_the_same_answer(server: Server) -> None:
    pair = learn(server.a, 0, b"k"), learn(server.a, 0, b"k")
    assert server.begin(*pair) == [None, None]
    server.finish()
    first, second = server.answers(*pair)
    assert second == {**first, "replayed": True}
    assert first["sequence"] == 10


def test_answers_are_written_with_keys_of_their_own_model(server: Server) -> None:
    """So they hold it up while its own commit is late, and not while another model's is."""
    log = server.memory.storage.journal.reader(server.a.id)
    server.memory.fate.clear()
    server.begin(learn(server.a, 0, b"k"))
    server.memory.fate[server.a.id] = "late"
    (other,) = server.begin(learn(server.b, 0, b"l"))
    assert other["sequence"] == 10
    assert server.writer.busy == set()
    assert server.begin(learn(server.a, 1, b"m")) == [None]
    assert [row.sequence for row in log.unanswered(0)] == [10]
    assert server.writer.busy == {server.a}
    server.finish()
    assert server.writer.busy == set()
    assert [row.sequence for row in log.unanswered(0)] == [20]


def test_what_was_not_written_can_be_sent_again(server: Server) -> None:
    request = learn(server.a, 0, b"k")
    server.begin(request)
    server.finish(StorageFailed("full; nothing was learned"))
    assert isinstance(server.answers(request)[0], StorageFailed)
    assert server.a.counts["asset"].rejected == 10
    (answer,) = server.begin(learn(server.a, 0, b"k"))
    assert answer["sequence"] == 10
    assert "replayed" not in answer


def test_what_stays_in_doubt_is_settled_later(server: Server) -> None:
    request = learn(server.a, 0)
    server.begin(request)
    server.finish(InDoubt("no answer"))
    assert isinstance(server.answers(request)[0], InDoubt)
    assert server.writer.busy == set()
    (answer,) = server.begin(learn(server.a, 1))
    assert answer["sequence"] == 10


def test_an_order_waits_for_it(server: Server) -> None:
    journal, looks = server.writer._storage.journal, itertools.count(1)

    def finished_at_the_third_look(seconds: float) -> dict[Term, StorageFailed | None]:
        if next(looks) == 3:
            server.memory.finishing = {server.a.id: None}
        return type(journal).finished(journal, seconds)

    journal.finished = finished_at_the_third_look  # type: ignore[method-assign]
    order = Order(lambda: server.a.published.sequence, Future(), server.a)
    answer, sequence = server.begin(learn(server.a, 0), order)
    assert answer["sequence"] == sequence == 10


def refused_order(model: Model) -> Order:
    """Return an order for a state in which the model is not."""
    return Order(
        lambda: check_revision("a", model.published.epoch, 0, [Revision("another", 9)]),
        Future(),
        model,
    )


class TestRefusedOrder:
    """One under a condition that does not hold: a commit proves that nobody else has learned."""

    def test_keeps_no_other_model_waiting(self, server: Server):
        order, other = refused_order(server.a), learn(server.b, 0)
        assert server.begin(order) == [None]
        assert server.writer.busy == {server.a}
        assert server.begin(other)[0]["sequence"] == 10
        server.finish()
        assert isinstance(server.answers(order)[0], AnotherState)
        assert server.writer.busy == set()

    def test_is_for_the_replica_that_leads_by_then(self, server: Server):
        order = refused_order(server.a)
        server.begin(order)
        server.finish(NotLeader("another replica writes the log"))
        assert isinstance(server.answers(order)[0], NotLeader)
        assert not server.a.led


def test_all_that_wait_for_it_are_known(server: Server) -> None:
    """So that they are answered where the writer fails."""
    request, again = learn(server.a, 0, b"k"), learn(server.a, 0, b"k")
    labels = LabelRequest(server.a, "asset", LateLabels(["unknown"], [1]), Future(), 0.0)
    predicted = WaitingRowsRequest(
        server.a,
        ["row"],
        SAMPLES.X[:1],
        {"prediction": ["up"], "sequence": 0, "epoch": "e", "head": "asset"},
        Future(),
        0.0,
    )
    unsure = learn(server.a, 0)._replace(expected=(Revision("another", 9),))
    group: list[Item] = [request, again, labels, predicted, unsure]
    server.begin(*group)
    assert set(server.writer.waiting()) == {item.waiter for item in group}
    server.finish()
    assert server.writer.waiting() == []
    server.memory.fate[server.a.id] = "late"
    order = refused_order(server.a)
    server.begin(order)
    assert server.writer.waiting() == [order.waiter]
    server.finish()


def test_a_model_that_another_replica_has_by_then_is_let_go(server: Server) -> None:
    request = learn(server.a, 0)
    labels = LabelRequest(server.a, "asset", LateLabels(["unknown"], [1]), Future(), 0.0)
    group: list[Item] = [request, labels]
    server.begin(*group)
    server.finish(NotLeader("another replica writes the log"))
    assert [type(answer) for answer in server.answers(*group)] == [NotLeader] * 2
    assert not server.a.led
    server.writer.go_on()
    assert server.writer.models.get("a") is None
