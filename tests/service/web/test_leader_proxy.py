"""The layer of a worker that lets the leader answer: a replica's, whose models may move."""

import asyncio
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.problems import problem_response
from wolfstream.service.web.transport.leader_proxy import LeaderProxy

PATH = "/v1/models/m/samples"


class Leader(httpx.AsyncBaseTransport):
    """The process that learns. bodies: that came to it."""

    def __init__(self) -> None:
        self.bodies = list[bytes]()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(await request.aread())
        return httpx.Response(200, content=b"of the leader")


class Worker:
    """A worker that knows the model. status: of its own answer."""

    def __init__(self, status: int, **settings: Any) -> None:
        self.leader, self.sent, self._status = Leader(), list[Any](), status
        self._pieces = [b"some ", b"samples"]
        known = Settings(_env_file=None, **settings)  # type: ignore[call-arg]
        self._layer = LeaderProxy(
            self._answer, known, self.leader, lambda _: True, lambda: True, problem_response
        )

    async def run(self, query: bytes = b"") -> "Worker":
        length = (b"content-length", b"12")
        scope = {
            "type": "http",
            "method": "POST",
            "path": PATH,
            "raw_path": PATH.encode(),
            "query_string": query,
            "scheme": "http",
            "headers": [length],
            "state": {},
        }
        await self._layer(scope, self._receive, self._send)
        return self

    async def _answer(self, _: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["more_body"]:
            pass
        await send({"type": "http.response.start", "status": self._status, "headers": []})
        await send({"type": "http.response.body", "body": b"of the worker"})

    async def _receive(self) -> Any:
        if not self._pieces:
            return await asyncio.Event().wait()
        piece = self._pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}

    async def _send(self, message: Any) -> None:
        self.sent.append(message)


def test_request_during_handover_is_forwarded_whole():
    worker = asyncio.run(Worker(421, fleet=("nats://a",)).run())
    assert worker.leader.bodies == [b"some samples"]
    assert worker.sent[0]["status"] == 200
    assert b"".join(message.get("body", b"") for message in worker.sent[1:]) == b"of the leader"


def test_call_that_allows_an_old_answer_is_the_leaders():
    """It may have a state of a model that is being brought back."""
    worker = asyncio.run(Worker(200).run(query=b"max_lag=60"))
    assert worker.leader.bodies == [b"some samples"]


@pytest.mark.parametrize("status", [200, 503])
def test_every_other_answer_of_the_worker_is_one(status: int):
    worker = asyncio.run(Worker(status, fleet=("nats://a",)).run())
    assert worker.leader.bodies == []
    assert [message.get("status") for message in worker.sent] == [status, None]
