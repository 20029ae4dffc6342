"""The layer of a fleet around a replica's application, with a fleet of one."""

import asyncio
import contextlib
import json
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from wolfstream.service.cluster import neighbours as neighbours_module
from wolfstream.service.cluster.connections import client_of_replicas
from wolfstream.service.cluster.membership import Membership
from wolfstream.service.cluster.neighbours import Neighbours
from wolfstream.service.errors import NotReady
from wolfstream.service.web.formats.problems import problem_response
from wolfstream.service.web.transport import forwarding
from wolfstream.service.web.transport.forwarding import ForwardingMiddleware


class Alone:
    """The only replica of a fleet, which never gets to lead a model."""

    url = "http://alone"

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    lag_seconds = 0.0

    def check(self) -> None:
        pass

    def leads(self, _: str) -> bool:
        return False

    def responsible(self, _: str) -> "Alone":
        return self

    def is_here(self, _: object) -> bool:
        return True

    async def lead(self, _: str) -> bool:
        self.asked.set()
        await asyncio.Event().wait()
        return False

    def progress(self, name: str) -> str:
        return f"model {name!r} has learned 3 of 9 samples"


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


class SilentOnNats(Gone):
    """The replica that leads the model, which NATS has lost, and which answers late or never.

    lives: whether it answers at all.
    """

    def __init__(self, *, lives: bool) -> None:
        super().__init__()
        self._lives = lives

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        async with await asyncio.start_server(self._take, "127.0.0.1", 0) as server:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            head = await reader.readuntil(b"\r\n\r\n")
            if not self._lives:
                await reader.read()
                return
            if b"/livez" not in head:
                await asyncio.sleep(1.2)
            writer.write(b"HTTP/1.1 200 -\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
            await writer.drain()


class Moving(Gone):
    """The replica that is to lead the model, which answers what is asked of it in turn.

    answers: a status and a body each; the last one again and again.
    """

    HEADERS: tuple[str, ...] = ()

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
            head += "".join(f"\r\n{line}" for line in self.HEADERS)
            writer.write(head.encode() + b"\r\n\r\n" + content)
            await writer.drain()


class Tagging(Moving):
    """The replica that leads the model, which says with which state it answers."""

    HEADERS = ('ETag: "e:7"',)


class Leaderless(Moving):
    """A replica that is to lead many models, and describes each of them after some seconds.

    most: how many it was asked for at the same time.
    """

    def __init__(self, models: int, seconds: float) -> None:
        super().__init__()
        self._models, self._seconds = models, seconds
        self._asked_now = self.most = 0

    def names(self) -> list[str]:
        return [f"m{number:02}" for number in range(self._models)]

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._asked_now += 1
        self.most = max(self.most, self._asked_now)
        with contextlib.closing(writer):
            path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reader.read(), self._seconds)
                return  # the client has left: closing the server waits for this from Python 3.12 on
            model = {**TestList.DESCRIBED, "model": path.rpartition("/")[2]}
            content = json.dumps(model).encode()
            head = f"HTTP/1.1 200 -\r\ncontent-length: {len(content)}\r\nconnection: close"
            writer.write(head.encode() + b"\r\n\r\n" + content)
            await writer.drain()
        self._asked_now -= 1


class Views:
    """Views that are held, or not, since a time."""

    def __init__(self, held: bool, lag_seconds: float = 0.0) -> None:
        self._held, self._lag_seconds = held, lag_seconds
        self.views = self

        self.told = list[str]()

    def predicts(self, _: str) -> bool:
        return self._held

    def record_shown(self, _: str, tag: str) -> None:
        self.told.append(tag)

    def is_stale(self, name: str) -> bool:
        return self.lag_seconds(name) > 10.0

    def lag_seconds(self, _: str) -> float:
        return self._lag_seconds


class Call:
    """A request through the layer. answered: by the models whose views are held, 200 or other."""

    def __init__(
        self,
        roles: Any,
        views: Views,
        path: str,
        answered: int = 200,
        method: str = "POST",
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        self.sent: list[Any] = []
        self._answered, self.bodies = answered, list[bytes]()
        self._received = False
        tls = ssl.create_default_context()
        self.neighbours = Neighbours(roles, client_of_replicas(tls))
        # No view is served here, so there are no served views.
        membership = Membership(roles, views, None, self.neighbours, tls)  # type: ignore[arg-type]
        self._layer = ForwardingMiddleware(
            self._not_led, membership, self._of_views, problem_response, 1 << 20
        )
        self._scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": list(headers),
            "state": {"grant": SimpleNamespace(prefix=""), "headers": {}},
        }

    @property
    def problem(self) -> dict[str, Any]:
        """What a refused call is answered with."""
        assert self.sent[0]["status"] == 503
        told: dict[str, Any] = json.loads(self.sent[1]["body"])
        return told

    async def run(self) -> None:
        await self._layer(self._scope, self._receive, self._send)

    async def _not_led(self, *_: object) -> None:
        raise AssertionError("the model is not led")

    async def _of_views(self, _: Scope, receive: Receive, send: Send) -> None:
        self.bodies.append((await receive())["body"])
        await send({"type": "http.response.start", "status": self._answered, "headers": []})
        await send({"type": "http.response.body", "body": b"of a view"})

    async def _receive(self) -> Any:
        if self._received:
            await asyncio.Event().wait()  # the client stays
        self._received = True
        return {"type": "http.request", "body": b"rows", "more_body": False}

    async def _send(self, message: Any) -> None:
        self.sent.append(message)


def test_call_cut_before_begin_tries_again():
    """As 503, which says that nothing was learned; a 500 would leave that open."""

    async def run() -> list[Any]:
        roles = Alone()
        call = Call(roles, Views(held=False), "/v1/models/m/samples")
        running = asyncio.create_task(call.run())
        await roles.asked.wait()
        running.cancel()
        await running
        return call.sent

    sent = asyncio.run(run())
    assert sent[0]["status"] == 503
    assert b"try again" in sent[1]["body"]


@pytest.mark.parametrize(("call", "type_"), [("samples", b"in-doubt"), ("predict", b"not-ready")])
def test_call_cut_at_leader_tells_known(call: str, type_: bytes):
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
        roles = Alone()
        call = Call(roles, Views(held=True), "/v2/models/m/infer", answered=421)
        running = asyncio.create_task(call.run())
        await roles.asked.wait()
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


class Mute(Silent):
    """The replica that leads the model, which accepts connections and answers none of them."""

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            await reader.read()

    def living(self) -> list[Any]:
        return [self]


class TestNeighbourThatAnswersNothing:
    """NATS says that it lives; so it leads the model, and calls for it cannot be answered."""

    @pytest.fixture(autouse=True)
    def quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(neighbours_module, "SILENT_SECONDS", 0.3)
        monkeypatch.setattr(neighbours_module, "_ASK_SECONDS", 0.05)

    @pytest.mark.parametrize(
        ("path", "headers", "outcome"),
        [
            ("samples", [], "unknown"),
            ("samples", [(b"idempotency-key", b"k")], "unknown"),
            ("predict", [], "not-learned"),
        ],
    )
    def test_leaves_no_call_without_an_answer(
        self,
        path: str,
        headers: list[tuple[bytes, bytes]],
        outcome: str,
        caplog: pytest.LogCaptureFixture,
    ):
        async def run() -> None:
            leader = Mute()
            async with leader.listening(), asyncio.timeout(10):
                call = Call(leader, Views(held=False), f"/v1/models/m/{path}", headers=headers)
                asking = asyncio.create_task(call.neighbours.run())
                await call.run()
                assert call.problem["outcome"] == outcome
                assert "has not answered this one over HTTP" in call.problem["detail"]
                described = call.neighbours.describe()[leader.url]
                assert not described["answers"]
                assert "ReadTimeout" in described["error"]
                await self.check_next(call)
                asking.cancel()
                await asyncio.wait([asking])
                await asyncio.sleep(0.05)  # the connections are closed

        asyncio.run(run())
        assert "replica unreachable over HTTP" in caplog.text

    async def check_next(self, call: Call) -> None:
        """Nothing more is sent to it, and the answer says so."""
        call.sent.clear()
        call._received = False
        await call.run()
        assert call.problem["outcome"] == "not-learned"
        assert "nothing was sent to it" in call.problem["detail"]
        assert call.neighbours.unanswered == 1


class TestTakeoverThatTakesLong:
    """Calls are refused while the log is read, and told how far it is."""

    def test_refuses_samples_in_time(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(
            "wolfstream.service.web.transport.forwarding._LEADER_TIMEOUT_SECONDS", 0.2
        )
        problem = self.refused(Views(held=False), "samples")
        assert (problem["outcome"], problem["type"][-9:]) == ("not-learned", "not-ready")
        assert problem["detail"] == "model 'm' has learned 3 of 9 samples; try again"

    def test_refuses_predictions_of_a_view_that_is_too_old_at_once(self):
        problem = self.refused(Views(held=False, lag_seconds=12.0), "predict")
        assert "has learned 3 of 9 samples" in problem["detail"]
        assert "what it knows of it is 12 s old" in problem["detail"]

    def refused(self, views: Views, call: str) -> dict[str, Any]:
        """Return the problem that a call is answered with."""

        async def run() -> dict[str, Any]:
            sent = Call(Alone(), views, f"/v1/models/m/{call}")
            async with asyncio.timeout(5):
                await sent.run()
            return sent.problem

        return asyncio.run(run())


@pytest.mark.parametrize(("call", "told"), [("predict", ['"e:7"']), ("samples", [])])
def test_notes_which_sequence_the_leader_has_predicted_with(call: str, told: list[str]):
    views = Views(held=False)

    async def run() -> None:
        leader = Tagging((200, {}))
        async with leader.listening():
            await Call(leader, views, f"/v1/models/m/{call}").run()

    asyncio.run(run())
    assert views.told == told


class CallOfLeader(Call):
    """A call that the application answers."""

    async def _not_led(self, *given: Any) -> None:
        await given[-1]({"type": "http.response.start", "status": 200, "headers": []})
        await given[-1]({"type": "http.response.body", "body": b""})


class Reconnecting(Alone):
    """A replica whose client of NATS goes from one server to another while it is asked."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._looks = looks

    @property
    def lag_seconds(self) -> float:  # type: ignore[override]
        return float(self._looks >= 0)

    def responsible(self, name: str) -> Alone:
        self._looks -= 1
        if self._looks >= 0:
            raise NotReady(f"NATS does not answer; model {name!r} cannot be led now")
        return super().responsible(name)

    async def lead(self, _: str) -> bool:
        return True


@pytest.mark.parametrize(("looks", "status"), [(3, 200), (1 << 30, 503)])
def test_call_waits_while_another_server_of_nats_is_reached(
    looks: int, status: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(forwarding, "_LEADER_TIMEOUT_SECONDS", 1.0)

    async def run() -> list[Any]:
        call = CallOfLeader(Reconnecting(looks), Views(held=False), "/v1/models/m/samples")
        await call.run()
        return call.sent

    sent = asyncio.run(run())
    assert sent[0]["status"] == status
    assert status == 200 or b"NATS does not answer" in sent[1]["body"]


class TestSilenceOnNats:
    """As while servers of NATS are replaced: the replica goes on answering."""

    def call(self, leader: SilentOnNats) -> Call:
        call = Call(leader, Views(held=False), "/v1/models/m/samples")

        async def run() -> None:
            async with leader.listening(), asyncio.timeout(30.0):
                await call.run()
                await asyncio.sleep(0.05)  # the connections are closed

        asyncio.run(run())
        return call

    def test_samples_wait_for_the_answer(self):
        call = self.call(SilentOnNats(lives=True))
        assert call.sent[0]["status"] == 200

    def test_nobody_waits_for_a_replica_that_has_stopped(self):
        assert self.call(SilentOnNats(lives=False)).problem["outcome"] == "unknown"


class TestList:
    DESCRIBED = {"model": "m", "sequence": 3, "epoch": "e", "status": "learning", "features": 2}
    REFUSED = 421, {"detail": "this replica does not lead the model"}

    def listed(self, *answers: tuple[int, Any]) -> tuple[int, Any]:
        """Return the status and the content of a list whose model is described so."""
        return self.listed_by(Moving(*answers))

    def listed_by(self, roles: Moving) -> tuple[int, Any]:
        """Return the status and the content of a list of what a replica is to lead."""

        async def run() -> list[Any]:
            async with roles.listening():
                call = Call(roles, Views(held=False), "/v1/models", method="GET")
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
        monkeypatch.setattr(
            "wolfstream.service.web.transport.forwarding._LEADER_TIMEOUT_SECONDS", 0.2
        )
        status, problem = self.listed(self.REFUSED)
        assert status == 503
        assert "no replica leads model 'm' now" in problem["detail"]

    def test_asks_for_many_models_at_the_same_time(self):
        roles = Leaderless(40, seconds=0.05)
        status, listed = self.listed_by(roles)
        assert status == 200
        assert [model["model"] for model in listed["models"]] == roles.names()
        assert 1 < roles.most <= 16

    def test_is_refused_in_time_for_many_models(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(
            "wolfstream.service.web.transport.forwarding._LEADER_TIMEOUT_SECONDS", 0.3
        )
        began = time.monotonic()
        status, problem = self.listed_by(Leaderless(40, seconds=4.0))
        assert time.monotonic() - began < 3.0
        assert status == 503
        assert "no replica leads model 'm00' and 39 others now; try again" in problem["detail"]
