"""The layer of a fleet around a replica's application, with a fleet of one."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from wolfstream.service.replicas.membership import Membership
from wolfstream.service.web.formats.problems import problem_response
from wolfstream.service.web.layers.forwarding import Forwarding


class Alone:
    """The only replica of a fleet, which never gets to lead a model."""

    url = "http://alone"

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def check(self) -> None:
        pass

    def leads(self, _: str) -> bool:
        return False

    def partitions(self, _: str) -> list[str]:
        return []

    def whole_of(self, _: str) -> None:
        return None

    def responsible(self, _: str) -> "Alone":
        return self

    def is_here(self, _: object) -> bool:
        return True

    async def lead(self, _: str) -> bool:
        self.asked.set()
        await asyncio.Event().wait()
        return False


class Gone(Alone):
    """The replica that was to lead the model, which nobody reaches."""

    url = "http://127.0.0.1:1"

    def is_here(self, _: object) -> bool:
        return False

    def is_gone(self, _: object) -> bool:
        return True

    def suspect(self, _: object) -> None:
        pass


class Silent(Gone):
    """The replica that leads the model, which takes a call and does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.url = ""

    def is_gone(self, _: object) -> bool:
        return False

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        async with await asyncio.start_server(self._take, "127.0.0.1", 0) as server:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            await reader.readuntil(b"rows")
            self.asked.set()
            await reader.read()


class Moving(Gone):
    """The replica that is to lead the model, which answers what is asked of it in turn.

    answers: a status and a body each; the last one again and again.
    """

    def __init__(self, *answers: tuple[int, Any]) -> None:
        super().__init__()
        self._answers = list(answers)

    def living(self) -> list[Any]:
        return []

    def names(self) -> list[str]:
        return ["m"]

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        async with await asyncio.start_server(self._take, "127.0.0.1", 0) as server:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            await reader.readuntil(b"\r\n\r\n")
            status, body = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
            content = json.dumps(body).encode()
            head = f"HTTP/1.1 {status} -\r\ncontent-length: {len(content)}\r\nconnection: close"
            writer.write(head.encode() + b"\r\n\r\n" + content)
            await writer.drain()


class Views:
    """Views that are held, or not, since a time."""

    def __init__(self, held: bool, lag_seconds: float = 0.0) -> None:
        self._held, self._lag_seconds = held, lag_seconds
        self.views = self

    def predicts(self, _: str) -> bool:
        return self._held

    def is_stale(self, name: str) -> bool:
        return self.lag_seconds(name) > 10.0

    def lag_seconds(self, _: str) -> float:
        return self._lag_seconds


class Call:
    """A request through the layer. answered: by the models whose views are held, 200 or other."""

    def __init__(
        self, director: Any, views: Views, path: str, answered: int = 200, method: str = "POST"
    ) -> None:
        self.sent: list[Any] = []
        self._answered, self.bodies = answered, list[bytes]()
        membership = Membership(director, views, None)  # type: ignore[arg-type]
        self._layer = Forwarding(
            self._not_led, membership, self._of_views, problem_response, 1 << 20
        )
        self._scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [],
            "state": {"grant": SimpleNamespace(prefix=""), "headers": {}},
        }

    async def run(self) -> None:
        await self._layer(self._scope, self._receive, self._send)

    async def _not_led(self, *_: object) -> None:
        raise AssertionError("the model is not led")

    async def _of_views(self, _: Scope, receive: Receive, send: Send) -> None:
        self.bodies.append((await receive())["body"])
        await send({"type": "http.response.start", "status": self._answered, "headers": []})
        await send({"type": "http.response.body", "body": b"of a view"})

    async def _receive(self) -> Any:
        return {"type": "http.request", "body": b"rows", "more_body": False}

    async def _send(self, message: Any) -> None:
        self.sent.append(message)


def test_a_call_that_a_stop_cuts_off_before_it_began_is_told_to_try_again():
    """As 503, which says that nothing was learned; a 500 would leave that open."""

    async def run() -> list[Any]:
        director = Alone()
        call = Call(director, Views(held=False), "/v1/models/m/samples")
        running = asyncio.create_task(call.run())
        await director.asked.wait()
        running.cancel()
        await running
        return call.sent

    sent = asyncio.run(run())
    assert sent[0]["status"] == 503
    assert b"try again" in sent[1]["body"]


@pytest.mark.parametrize(("call", "type_"), [("samples", b"in-doubt"), ("predict", b"not-ready")])
def test_a_call_that_a_stop_cuts_off_at_the_leader_says_what_is_known(call: str, type_: bytes):
    async def run() -> list[Any]:
        leader = Silent()
        async with leader.listening():
            sent = Call(leader, Views(held=False), f"/v1/models/m/{call}")
            running = asyncio.create_task(sent.run())
            await leader.asked.wait()
            running.cancel()
            await running
        return sent.sent

    sent = asyncio.run(run())
    assert sent[0]["status"] == 503
    assert b"urn:wolfstream:" + type_ in sent[1]["body"]


def test_a_view_predicts_while_its_model_is_taken_over():
    async def run() -> list[Any]:
        call = Call(Alone(), Views(held=True), "/v1/models/m/predict")
        await call.run()
        return call.sent

    sent = asyncio.run(run())
    assert (sent[0]["status"], sent[1]["body"]) == (200, b"of a view")


def test_what_a_view_cannot_answer_is_asked_of_the_leader():
    async def run() -> Call:
        director = Alone()
        call = Call(director, Views(held=True), "/v2/models/m/infer", answered=421)
        running = asyncio.create_task(call.run())
        await director.asked.wait()
        running.cancel()
        await running
        return call

    call = asyncio.run(run())
    assert call.bodies == [b"rows"]
    assert [message["status"] for message in call.sent[:1]] == [503]


def test_where_a_view_is_too_old_the_answer_says_so():
    async def run() -> list[Any]:
        call = Call(Gone(), Views(held=False, lag_seconds=12.0), "/v1/models/m/predict")
        await call.run()
        return call.sent

    sent = asyncio.run(run())
    assert sent[0]["status"] == 503
    assert b"12 s old" in sent[1]["body"]


class TestList:
    DESCRIBED = {"model": "m", "sequence": 3, "epoch": "e", "status": "learning", "features": 2}
    REFUSED = 421, {"detail": "this replica does not lead the model"}

    def listed(self, *answers: tuple[int, Any]) -> tuple[int, Any]:
        """Return the status and the content of a list whose model is described so."""

        async def run() -> list[Any]:
            director = Moving(*answers)
            async with director.listening():
                call = Call(director, Views(held=False), "/v1/models", method="GET")
                await call.run()
            return call.sent

        start, body = asyncio.run(run())[:2]
        return start["status"], json.loads(body["body"])

    def test_waits_for_a_model_that_changes_hands(self):
        described = {**self.DESCRIBED, "heads": {}}
        answers = self.REFUSED, (503, {}), (200, described)
        assert self.listed(*answers) == (200, {"models": [self.DESCRIBED]})

    def test_leaves_out_a_model_that_is_gone(self):
        assert self.listed(self.REFUSED, (404, {})) == (200, {"models": []})

    def test_is_refused_rather_than_short(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("wolfstream.service.web.layers.forwarding._PATIENCE_SECONDS", 0.2)
        status, problem = self.listed(self.REFUSED)
        assert status == 503
        assert "no replica leads model 'm' now" in problem["detail"]
