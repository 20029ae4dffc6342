"""A commit's result is each model's own, and a commit in doubt is learned once or not at all.

The journal of these tests is in memory: the writer works with any that keeps the interface.
"""

import math
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any, Literal

import pytest

from tests.service.memory_storage import MemoryStorage
from tests.service.specs import read_papers_spec
from tests.service.streams import part, two_classes
from tests.service.writer_bench import work_off
from wolfstream.service.engine import commits
from wolfstream.service.engine.queue_items import LearnRequest
from wolfstream.service.engine.writer import Writer
from wolfstream.service.errors import InDoubt, SnapshotFailed, StorageFailed
from wolfstream.service.model.live import Model
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.problems import problem_of

SAMPLES = two_classes(60)
SPEC = read_papers_spec({"working_set": {"max_size": 20}, "asset": {"dimension": 4}})
# The first samples may wait for a compiler, which counts as learning.
SNAPSHOT_SECONDS = 3600.0


class Server:
    """A writer over storage in memory, with two models."""

    def __init__(self) -> None:
        self.memory = MemoryStorage()
        self.changed: list[Model] = []
        self.start()
        self.a, self.b = (self.writer.new_models.create(name, SPEC)[0] for name in "ab")

    def start(self) -> None:
        self.replies: dict[Any, Any] = {}
        settings = Settings(snapshot_seconds=SNAPSHOT_SECONDS)
        self.writer = Writer(self.memory.storage, settings, self._acknowledge, math.inf)
        self.writer.recover(lambda _: None)

    def _acknowledge(self, replies: Any, changed: Any) -> None:
        self.replies.update(replies)
        self.changed += changed

    def send(self, *asked: tuple[Model, int, bytes | None]) -> list[Any]:
        """The answers to a group of requests: a model, the number of the samples, a key."""
        group = [
            LearnRequest(
                model, "asset", part(SAMPLES, 10 * number, 10 * number + 10), Future(), 0.0, key
            )
            for model, number, key in asked
        ]
        work_off(self.writer, list(group))
        return [self.replies[request.waiter] for request in group]

    def predictions(self, model: Model) -> Any:
        return model.published.heads["asset"].predict(SAMPLES.X)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.writer.close()


def sequences(memory: MemoryStorage, model: Model) -> list[int]:
    return [entry.sequence for entry in memory.entries[model.id]]


def test_what_fails_for_one_model_is_learned_by_the_other(server: Server) -> None:
    server.memory.fate[server.a.id] = "refused"
    first, other, second = server.send(
        (server.a, 0, b"k"), (server.b, 1, b"k"), (server.a, 2, None)
    )
    assert isinstance(first, StorageFailed)
    assert isinstance(second, StorageFailed)
    assert other["sequence"] == 10
    assert (server.a.published.sequence, server.b.published.sequence) == (0, 10)
    assert server.a.counts["asset"].rejected == 20
    answer, again = server.send((server.a, 0, b"k"), (server.b, 1, b"k"))
    assert answer["sequence"] == 10
    assert "replayed" not in answer
    assert again == {**other, "replayed": True}


def test_failed_commit_is_an_obstacle_for_a_time(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.send((server.a, 0, None))
    assert server.writer.obstacle == ""
    server.memory.fate |= {server.a.id: "refused", server.b.id: "refused"}
    server.send((server.a, 1, None), (server.b, 1, None))
    assert "commit to the journal failed" in server.writer.obstacle
    server.send((server.b, 1, None))
    assert server.writer.obstacle == ""
    server.memory.fate[server.a.id] = "refused"
    server.send((server.a, 1, None), (server.b, 2, None))
    assert server.writer.obstacle == ""  # others can be written
    server.memory.fate[server.a.id] = "refused"
    server.send((server.a, 1, None))
    assert server.writer.obstacle
    later = time.monotonic() + 31
    monkeypatch.setattr(commits.time, "monotonic", lambda: later)
    assert server.writer.obstacle == ""


def test_unwritten_answers_are_written_later(server: Server) -> None:
    log = server.memory.storage.journal.reader(server.a.id)
    (first,) = server.send((server.a, 0, b"k"))
    server.memory.fate[server.a.id] = "refused"
    server.send((server.a, 1, b"l"), (server.b, 0, b"l"))
    assert [row.sequence for row in log.unanswered(0)] == [10]
    server.send((server.a, 1, b"m"))
    assert [row.sequence for row in log.unanswered(0)] == [20]
    assert server.send((server.a, 0, b"k")) == [{**first, "replayed": True}]


def test_a_commit_in_doubt_that_was_written_is_learned_once(server: Server) -> None:
    without_doubt = Server()
    (expected,) = without_doubt.send((without_doubt.a, 0, b"k"))
    server.memory.fate[server.a.id] = "written"
    (answer,) = server.send((server.a, 0, b"k"))
    assert isinstance(answer, InDoubt)
    assert problem_of(answer)["status"] == 503
    assert problem_of(answer)["type"] == "urn:wolfstream:in-doubt"
    assert server.a.published.sequence == 0
    server.changed.clear()
    (again,) = server.send((server.a, 0, b"k"))
    assert again.pop("epoch") != expected.pop("epoch")
    assert again == {**expected, "replayed": True}
    assert server.changed[0] is server.a
    assert sequences(server.memory, server.a) == [10]
    assert server.a.published.sequence == 10
    assert server.predictions(server.a) == without_doubt.predictions(without_doubt.a)
    server.start()
    assert server.writer.models.get("a").published.sequence == 10  # type: ignore[union-attr]


def test_a_commit_in_doubt_that_was_lost_can_be_sent_again(server: Server) -> None:
    server.memory.fate[server.a.id] = "lost"
    assert isinstance(server.send((server.a, 0, b"k"))[0], InDoubt)
    (answer,) = server.send((server.a, 0, b"k"))
    assert answer["sequence"] == 10
    assert "replayed" not in answer
    assert sequences(server.memory, server.a) == [10]


def test_doubt_stops_its_model_alone(server: Server) -> None:
    server.memory.fate[server.a.id] = "written"
    server.memory.unsettled.add(server.a.id)
    server.send((server.a, 0, None))
    refused, learned = server.send((server.a, 1, None), (server.b, 0, None))
    assert isinstance(refused, StorageFailed)
    assert learned["sequence"] == 10
    server.memory.unsettled.clear()
    (after,) = server.send((server.a, 1, None))
    assert after["sequence"] == 20
    assert sequences(server.memory, server.a) == [10, 20]


def test_a_model_in_doubt_is_deleted_once_that_is_settled(server: Server) -> None:
    server.memory.fate[server.a.id] = "written"
    server.memory.unsettled.add(server.a.id)
    server.send((server.a, 0, None))
    with pytest.raises(StorageFailed, match="in doubt"):
        server.writer.models.delete(server.a)
    assert server.a.led
    server.memory.unsettled.clear()
    assert server.send((server.b, 0, None))[0]["sequence"] == 10
    server.writer.models.delete(server.a)
    assert server.writer._commits.doubtful == []
    assert server.send((server.b, 1, None))[0]["sequence"] == 20


def test_a_model_whose_term_ends_in_doubt_leaves_none(server: Server) -> None:
    server.memory.fate[server.a.id] = "written"
    server.memory.unsettled.add(server.a.id)
    server.send((server.a, 0, None))
    server.memory.terms[server.a.id].end()
    assert server.send((server.b, 0, None))[0]["sequence"] == 10
    assert server.writer._commits.doubtful == []
    assert server.writer.models.get("a") is None


@pytest.mark.parametrize("fate", ["lost", "written"])
def test_doubt_concerns_one_model_only(server: Server, fate: Literal["lost", "written"]) -> None:
    """Nor of models whose answers are not written yet."""
    server.send((server.a, 0, b"k"))
    server.memory.fate[server.b.id] = fate
    server.send((server.a, 1, None), (server.b, 0, None))
    assert server.writer._commits.doubtful == [server.b]
    assert server.send((server.a, 2, None))[0]["sequence"] == 30


def test_who_waits_beside_a_large_request_is_answered_before_it(server: Server) -> None:
    """The samples are in one commit; the shorter block is learned and acknowledged first."""
    answered: list[list[int]] = []
    server.writer._learning._acknowledge = lambda replies, _: answered.append(
        [reply["sequence"] for _, reply in replies]
    )
    large = two_classes(3000)
    group = [
        LearnRequest(server.a, "asset", large, Future(), 0.0),
        LearnRequest(server.b, "asset", part(SAMPLES, 0, 5), Future(), 0.0),
        LearnRequest(server.a, "asset", part(SAMPLES, 0, 7), Future(), 0.0),
    ]
    work_off(server.writer, list(group))
    assert answered == [[5], [3000], [3007]]
    assert sequences(server.memory, server.a) == [1024, 2048, 3000, 3007]


@pytest.mark.parametrize("fate", ["lost", "written"])
def test_challenger_waits_for_checkpoint_in_doubt(
    server: Server, fate: Literal["lost", "written"]
) -> None:
    """Else a restart would go on from a checkpoint that it had passed without one."""
    follower, _ = server.writer.challengers.make("c", server.a, SPEC, "empty")
    challengers, memory = server.writer.challengers, server.memory
    server.send((server.a, 0, None), (server.a, 1, None))
    challengers.catch_up(follower)
    memory.fate[follower.id], memory.unsettled = fate, {follower.id}
    with pytest.raises(SnapshotFailed):
        server.writer.snapshots.start(follower)
    server.send((server.a, 2, None))
    assert challengers.next_turn(follower).blocks == []
    memory.unsettled = set()
    server.send((server.a, 3, None))
    challengers.catch_up(follower)
    assert follower.published.sequence == 40
    assert sequences(memory, follower) == ([20] if fate == "written" else [])
    said = server.predictions(follower)
    server.start()
    follower = server.writer.models.with_id(follower.id).model
    server.writer.challengers.catch_up(follower)
    assert server.predictions(follower) == said
