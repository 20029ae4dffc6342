"""Who asks for it is told that samples are durable: once they are in the log, or never.

The journal of these tests is in memory: the writer works with any that keeps the interface.
"""

import math
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

import pytest

from tests.service.memory_storage import Fate, MemoryStorage
from tests.service.specs import read_papers_spec
from tests.service.streams import part, two_classes
from tests.service.writer_bench import work_off
from wolfstream.service.engine.queue_items import LearnRequest
from wolfstream.service.engine.writer import Writer
from wolfstream.service.errors import StorageFailed
from wolfstream.service.model.live import Model
from wolfstream.service.settings import Settings

SAMPLES = two_classes(10)
SPEC = read_papers_spec({"working_set": None, "asset": {"dimension": 4}})


class Told(NamedTuple):
    """A reply, and what its model had in the log, and had learned, when it was given."""

    reply: Any
    logged: list[int]
    learned: int


class Server:
    """A writer over storage in memory, with two models, and all that it has told."""

    def __init__(self) -> None:
        self.memory = MemoryStorage()
        self._models: dict[Any, Model] = {}
        self._told: dict[Any, Told] = {}
        self.writer = Writer(self.memory.storage, Settings(), self._acknowledge, math.inf)
        self.writer.recover(lambda _: None)
        self.a, self.b = (self.writer.new_models.create(name, SPEC)[0] for name in "ab")

    def _acknowledge(self, replies: Any, _changed: Any) -> None:
        for waiter, reply in replies:
            assert waiter not in self._told
            model = self._models[waiter]
            logged = [entry.sequence for entry in self.memory.entries[model.id]]
            self._told[waiter] = Told(reply, logged, model.published.sequence)

    def request(self, model: Model) -> LearnRequest:
        """Samples of somebody who wants to know when they are durable."""
        samples = part(SAMPLES, 0, 10)
        request = LearnRequest(model, "asset", samples, Future(), 0.0, durable=Future())
        self._models |= {request.waiter: model, request.durable: model}
        return request

    def durable(self, request: LearnRequest) -> Told | None:
        return self._told.get(request.durable)

    def answer(self, request: LearnRequest) -> Told | None:
        return self._told.get(request.waiter)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.writer.close()


def test_are_given_after_the_commit_and_before_learning(server: Server) -> None:
    request = server.request(server.a)
    work_off(server.writer, [request])
    durable, answer = server.durable(request), server.answer(request)
    assert durable is not None
    assert answer is not None
    assert durable.reply["sequence"] == answer.reply["sequence"] == 10
    assert durable[1:] == ([10], 0)
    assert answer[1:] == ([10], 10)


@pytest.mark.parametrize("fate", ["refused", "full", "lost", "written"])
def test_are_not_given_where_the_commit_failed(server: Server, fate: Fate) -> None:
    """Also where it is in doubt, and turns out to be in the log."""
    server.memory.fate[server.a.id] = fate
    failed, other = server.request(server.a), server.request(server.b)
    work_off(server.writer, [failed, other])
    work_off(server.writer, [server.request(server.b)])
    assert server.durable(failed) is None
    answer, durable = server.answer(failed), server.durable(other)
    assert answer is not None
    assert isinstance(answer.reply, StorageFailed)
    assert durable is not None
    assert durable.logged == [10]


@pytest.mark.parametrize("error", [None, StorageFailed("full; nothing was learned")])
def test_wait_for_a_late_commit(server: Server, error: StorageFailed | None) -> None:
    server.memory.fate[server.a.id] = "late"
    request = server.request(server.a)
    server.writer.begin([request])
    server.writer.go_on()
    assert server.durable(request) is server.answer(request) is None
    server.memory.finishing = {server.a.id: error}
    server.writer.go_on()
    assert server.answer(request) is not None
    assert (server.durable(request) is None) is (error is not None)
