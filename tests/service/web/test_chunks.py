"""Answers that are written chunk by chunk."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import msgpack
import pytest
from pydantic_core import to_json

from wolfstream.service.web.formats.chunks import (
    ChunkedResponse,
    join_chunks,
    json_chunks,
    msgpack_chunks,
)
from wolfstream.service.web.formats.memory import MemoryBudget

T = TypeVar("T")
MANY = 20_000
ANSWERS: list[dict[str, Any]] = [
    {},
    {"prediction": [], "results": {}},
    {"sequence": 3, "prediction": ["a", 'quoted "b"']},
    {"prediction": [1] * MANY, "decision": [[0.1, -2.5, 1e300]] * MANY, "classes": ["é", 1, True]},
    {"results": {"prediction": list(range(MANY)), "decision": [None, 0.5] * (MANY // 2)}},
    {"outputs": [{"name": name, "data": [0.5] * MANY} for name in "xy"]},
    {"decision": [[0.5] * MANY] * 3},
]


@pytest.mark.parametrize("answer", ANSWERS)
class TestPieces:
    def test_of_json_are_the_whole(self, answer: dict[str, Any]):
        assert b"".join(json_chunks(answer)) == to_json(answer)

    def test_of_messagepack_are_the_whole(self, answer: dict[str, Any]):
        assert b"".join(msgpack_chunks(answer)) == msgpack.packb(answer)


@pytest.mark.parametrize("answer", [ANSWERS[3], ANSWERS[5]])
@pytest.mark.parametrize("chunks_of", [json_chunks, msgpack_chunks])
def test_no_chunk_is_large(answer: dict[str, Any], chunks_of: Callable[[Any], Iterator[bytes]]):
    chunks = list(chunks_of(answer))
    assert max(map(len, chunks)) < sum(map(len, chunks)) / 3


async def with_turns(work: Awaitable[T]) -> tuple[T, int]:
    """Return what some work gives, and how many turns another task had meanwhile."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    result = await work
    task.cancel()
    return result, turns


def test_others_come_between_the_pieces_of_a_frame():
    written, turns = asyncio.run(with_turns(join_chunks(json_chunks(ANSWERS[3]))))
    assert written == to_json(ANSWERS[3])
    assert turns > 5


def test_chunks_of_response_let_others_in():
    sent = list[bytes]()

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def respond() -> None:
        chunks = json_chunks(ANSWERS[3])
        lease = MemoryBudget(1 << 30).lease()
        response = ChunkedResponse(chunks, 200, {}, "application/json", lease)
        await response({"type": "http", "asgi": {"spec_version": "2.3"}}, receive, send)

    _, turns = asyncio.run(with_turns(respond()))
    assert b"".join(sent) == to_json(ANSWERS[3])
    assert turns > 5
