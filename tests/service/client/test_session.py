"""A session of a stream over a server in memory: order, windows, what is sent again."""

from collections import deque
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.faults import PretendModel
from wolfstream.service.client.batches import one_batch
from wolfstream.service.client.errors import (
    AnswerLost,
    ClientError,
    Refused,
    TooLargeMessage,
    Unsuitable,
)
from wolfstream.service.client.session import Session
from wolfstream.service.client.steps import Connect, Effect, Pause, Receive, Retry, Transmit, run

FULL = {"status": 503, "title": "Full", "retry_after_seconds": 0}


class InMemory:
    """Does a session's steps over a pretend model; faults fall on the frames as they come.

    keeps_order: whether frames behind a refused one are refused until it comes again.
    """

    def __init__(self, model: PretendModel, window: int = 3, keeps_order: bool = True) -> None:
        self.model = model
        self.window = window
        self.keeps_order = keeps_order
        self.connections = 0
        self.pauses = 0
        self.most = 0
        self._answers: deque[Any] = deque()
        self._ended = False
        self._due: int | None = None

    def __call__(self, effect: Effect) -> Any:
        match effect:
            case Pause():
                self.pauses += 1
            case Connect(query):
                self._answers.clear()
                self._ended, self._due = False, None
                self._producer = query["producer"]
                self.connections += 1
                return msgpack.packb({"hello": {"window": self.window, "sequence": 0}})
            case Transmit(message):
                if self._ended:
                    raise AnswerLost("closed")
                self._take(msgpack.unpackb(message))
            case Receive():
                if not self._answers:
                    assert self._ended, "waits for what will not come"
                    raise AnswerLost("closed")
                answer = self._answers.popleft()
                return answer if isinstance(answer, bytes) else msgpack.packb(answer)
        return None

    def _take(self, frame: dict[str, Any]) -> None:
        fault = self.model.fault()
        if self._due not in (None, frame["id"]):
            fault = "busy"
        if fault == "lost before":
            self._ended = True
            return
        if fault == "busy":
            if self.keeps_order:
                self._due = self._due or frame["id"]
            self._answers.append({"id": frame["id"], "error": FULL})
        else:
            self._due = None
            answer = self.model.learn((self._producer, frame["id"]), frame)
            if fault == "lost":
                self._ended = True
                return
            self._answers.append(b"\xc1" if fault == "garbage" else {"id": frame["id"], **answer})
        self.most = max(self.most, len(self._answers))


def sent(session: Session, server: InMemory, k: int) -> int:
    return run(session.send_batch(one_batch(np.zeros(1), k), "samples"), server)


faults = st.lists(st.sampled_from(["", "", "lost before", "lost", "busy", "garbage"]), max_size=30)


@given(faults, st.integers(1, 4), st.integers(1, 5))
def test_each_frame_is_learned_once_and_answered_in_order(
    script: list[str], window: int, unread: int
) -> None:
    server = InMemory(PretendModel(script), window)
    session = Session("p", 1, Retry(60))
    run(session.open(), server)
    received = []
    for k in range(12):
        assert sent(session, server, k) == k + 1
        while session.unanswered > unread:
            received.append(run(session.next_response(), server))
    while session.unanswered:
        received.append(run(session.next_response(), server))
    assert server.model.learned == list(range(12))
    assert [ticket for ticket, _ in received] == list(range(1, 13))
    assert [answer["results"]["prediction"] for _, answer in received] == [[k] for k in range(12)]
    assert session.acknowledged == 12
    assert server.most <= window


@given(faults, st.integers(1, 11))
def test_a_source_that_begins_again_learns_the_rest(script: list[str], again_from: int) -> None:
    model = PretendModel(script)
    for first in (1, again_from):
        server, session = InMemory(model), Session("p", first, Retry(60))
        for k in range(first - 1, 12):
            sent(session, server, k)
        run(session.flush(), server)
    assert model.learned == list(range(12))


def test_answers_that_came_before_the_end_are_read() -> None:
    server = InMemory(PretendModel(["", "lost before"]))
    session = Session("p", 1, Retry(60))
    for k in range(3):
        sent(session, server, k)
    run(session.flush(), server)
    assert server.model.keys == [("p", 1), ("p", 2), ("p", 3)]
    assert server.connections == 2


def test_a_server_that_does_not_keep_the_order_is_found_out() -> None:
    server = InMemory(PretendModel(["busy"]), keeps_order=False)
    session = Session("p", 1, Retry(60))
    for k in range(3):
        sent(session, server, k)
    with pytest.raises(Refused, match="503") as caught:
        run(session.next_response(), server)
    assert caught.value.ticket == 1
    assert caught.value.__notes__ == ["a later request was learned first, so the order is lost"]
    assert [run(session.next_response(), server)[0] for _ in range(2)] == [2, 3]
    assert server.model.learned == [1, 2]


def test_no_room_for_longer_than_patience() -> None:
    server = InMemory(PretendModel(["busy"] * 9))
    session = Session("p", 1, Retry(0))
    for k in range(3):
        sent(session, server, k)
    for ticket in (1, 2, 3):
        with pytest.raises(Refused, match="503") as caught:
            run(session.next_response(), server)
        assert caught.value.ticket == ticket
    server.model.faults.clear()
    assert sent(session, server, 3) == 4


def test_samples_on_their_way_are_bounded_too() -> None:
    server = InMemory(PretendModel(), window=100)
    session = Session("p", 1, Retry(60))
    for k in range(10):
        run(session.send_batch(one_batch(np.zeros((3000, 1)), [k] * 3000), "asset"), server)
    assert server.most == 2
    run(session.send_batch(one_batch(np.zeros((9000, 1)), [99] * 9000), "asset"), server)
    run(session.flush(), server)
    assert server.model.learned == sorted([*range(10)] * 3000) + [99] * 9000


class Replies:
    """Greets, takes everything, and says what it was told to, whatever was asked."""

    def __init__(self, *messages: Any, hello: Any = None) -> None:
        self.messages = list(messages)
        self.hello = hello or {"hello": {"window": 9}}
        self.connections = 0

    def __call__(self, effect: Effect) -> Any:
        match effect:
            case Connect():
                self.connections += 1
                return msgpack.packb(self.hello)
            case Receive():
                message = self.messages.pop(0)
                if isinstance(message, ClientError):
                    raise message
                return msgpack.packb(message)
        return None


def answer(ticket: Any) -> dict[str, Any]:
    return {"id": ticket, "results": {}, "learned": 1}


def test_an_error_without_an_id_ends_all_that_is_on_its_way() -> None:
    replies = Replies({"error": {"status": 400, "title": "Unreadable"}}, answer(3))
    session = Session("p", 1, Retry(60))
    for k in range(2):
        sent(session, replies, k)  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(AnswerLost, match="could not read one of 2 messages: 400 Unreadable"):
            run(session.next_response(), replies)
    sent(session, replies, 2)  # type: ignore[arg-type]
    assert run(session.next_response(), replies)[0] == 3
    assert replies.connections == 2


def test_answers_to_nobody_are_passed_over() -> None:
    replies = Replies(answer(7), answer("1"), answer(None), answer([]), {}, answer(1), answer(1))
    session = Session("p", 1, Retry(60))
    sent(session, replies, 0)  # type: ignore[arg-type]
    assert run(session.next_response(), replies) == (1, answer(1))
    with pytest.raises(ClientError, match="every response has been received"):
        run(session.next_response(), replies)


def test_a_message_that_is_too_big_is_not_sent_again() -> None:
    replies = Replies(TooLargeMessage("1009"))
    session = Session("p", 1, Retry(60))
    sent(session, replies, 0)  # type: ignore[arg-type]
    with pytest.raises(TooLargeMessage):
        run(session.next_response(), replies)
    assert replies.connections == 1


@pytest.mark.parametrize("hello", [{"hi": 1}, {"hello": {}}, {"hello": 1}, {"error": 3}, [1]])
def test_greetings_of_others(hello: Any) -> None:
    with pytest.raises(Unsuitable, match="is this wolfstream"):
        run(Session("p", 1, Retry(60)).open(), Replies(hello=hello))


def test_numbers_begin_at_one() -> None:
    with pytest.raises(ValueError, match="from 1 on"):
        Session("p", 0, Retry(60))
