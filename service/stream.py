"""The websocket stream: learn, asset and predict over one connection.

A session has two tasks. The reader takes a frame only while fewer than `window` are
unanswered, so a client that sends too fast is slowed down by its own connection; the sender
writes one answer at a time, and an answer counts as given only when it was written. So
neither direction buffers more than a window.

`?producer=NAME` makes the id of each frame that teaches its idempotency key, together with the
name: a client that lost its connection sends again what was unanswered, under the same ids, and
each is learned once. `service.idempotency` says what the key is. Of such a client the order is
kept as well: once there was no room for a frame that teaches, those behind it are refused like
it until it comes again, so that none overtakes it.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from service import api
from service.admission import Answer
from service.engine import Engine
from service.errors import Invalid, Refusal, SampleError, Unavailable, Unreadable
from service.idempotency import frame_key
from service.keys import Grant, KeyRing
from service.model import Model
from service.names import n_rows
from service.request_size import check_size
from service.samples import read_rows, read_samples
from service.settings import Settings
from service.wire import JSON, MSGPACK, Format

SUBPROTOCOLS = {"wolfstream.v1.json": JSON, "wolfstream.v1.msgpack": MSGPACK}
GOING_AWAY, NOT_ALLOWED = 1001, 1008
_LONGEST_ID = 128
_FIELDS = {
    "learn": {"id", "op", "x", "y"},
    "asset": {"id", "op", "x", "y"},
    "predict": {"id", "op", "x", "head", "min_sequence"},
}


class Streams:
    """The open sessions of a server, so that it can end them."""

    def __init__(self) -> None:
        self._open: set[Session] = set()

    def __len__(self) -> int:
        return len(self._open)

    async def serve(self, session: "Session") -> None:
        """Run a session to its end."""
        self._open.add(session)
        try:
            await session.run()
        finally:
            self._open.discard(session)

    def end_revoked(self, ring: KeyRing) -> None:
        """End what was opened with a key that is no longer in force, with 1008."""
        for session in self._open:
            if not ring.holds(session.grant):
                session.end(NOT_ALLOWED, "the key is no longer in force")

    async def drain(self) -> None:
        """Read no more frames, answer those that were read, close with 1001."""
        sessions = list(self._open)
        for session in sessions:
            session.end(GOING_AWAY, "the server is shutting down")
        await asyncio.gather(*(session.ended.wait() for session in sessions))


class Session:
    """One connection to one model.

    grant: what the client's key allows.
    producer: what a client that comes again calls itself; None where ids are no keys.
    describe: turns a refusal into the problem that the client gets.
    """

    def __init__(
        self,
        websocket: WebSocket,
        engine: Engine,
        model: Model,
        grant: Grant,
        settings: Settings,
        describe: Callable[[Refusal], dict[str, Any]],
        producer: str | None = None,
    ) -> None:
        self._websocket = websocket
        self._engine = engine
        self._model = model
        self.grant = grant
        self._settings = settings
        self._window = settings.window
        self._describe = describe
        self._producer = producer
        self._due: tuple[int | str, Unavailable] | None = None
        self._format: Format = JSON
        self._free = asyncio.Semaphore(settings.window)
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._predictions: set[asyncio.Task[None]] = set()
        self._ending = asyncio.Event()
        self._close: tuple[int, str]
        self.ended = asyncio.Event()

    async def run(self) -> None:
        """Greet, then serve until the client leaves or `end` is called."""
        offered = self._websocket.scope["subprotocols"]
        chosen = next((name for name in offered if name in SUBPROTOCOLS), None)
        await self._websocket.accept(chosen)
        if offered and chosen is None:
            known = ", ".join(SUBPROTOCOLS)
            await self._websocket.close(NOT_ALLOWED, f"subprotocols spoken here: {known}")
            return
        self._format = SUBPROTOCOLS[chosen] if chosen else JSON
        try:
            await self._write(self._greeting())
            await self._serve()
        except WebSocketDisconnect:
            pass
        finally:
            for task in self._predictions:
                task.cancel()
            self.ended.set()

    def end(self, code: int, reason: str) -> None:
        """Stop reading, let all answers be written, close; `ended` is set when that is done."""
        if not self._ending.is_set():
            self._close = code, reason
            self._ending.set()

    async def _serve(self) -> None:
        reader = asyncio.create_task(self._read())
        sender = asyncio.create_task(self._send_answers())
        ending = asyncio.create_task(self._ending.wait())
        answered = None
        try:
            await asyncio.wait({reader, sender, ending}, return_when=asyncio.FIRST_COMPLETED)
            if ending.done() and not reader.done():
                reader.cancel()
                await asyncio.wait({reader})
                answered = asyncio.create_task(self._all_answered())
                await asyncio.wait({answered, sender}, return_when=asyncio.FIRST_COMPLETED)
                await self._websocket.close(*self._close)
        finally:
            tasks = [task for task in (reader, sender, ending, answered) if task is not None]
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end

    async def _read(self) -> None:
        while True:
            await self._free.acquire()
            try:
                message = await self._websocket.receive()
            except asyncio.CancelledError:
                self._free.release()
                raise
            if message["type"] == "websocket.disconnect":
                return
            self._take(message)

    def _take(self, message: Mapping[str, Any]) -> None:
        """Start on one frame; its answer, or what is wrong with it, will be sent."""
        frame_id: Any = None
        op = ""
        try:
            frame = self._decode(message)
            frame_id = _frame_id(frame)
            op = _checked_op(frame)
            self.grant.check("predict" if op == "predict" else "learn")
            if op != "predict":
                self._check_turn(frame_id)
            self.grant.check_quota()
            check_size(frame, self._settings)
            model = self._engine.model(self._model.name)
            if op == "predict":
                task = asyncio.create_task(self._predict(frame_id, model, frame))
                self._predictions.add(task)
                task.add_done_callback(self._predictions.discard)
            else:
                body = {name: frame[name] for name in ("x", "y") if name in frame}
                call: api.LearningCall = "asset" if op == "asset" else "samples"
                samples = read_samples(body, model.spec.task)
                answer = api.learn(self._engine, model, call, samples, self._key(frame_id))
                self.grant.spend(len(samples.y))
                answer.add_done_callback(lambda done: self._learned(frame_id, done))
        except Refusal as error:
            if op != "predict":
                self._note_turn(frame_id, error)
            self._refuse(frame_id, error)

    def _check_turn(self, frame_id: int | str) -> None:
        """Refuse what would overtake a frame that is due to come again."""
        if self._due and self._due[0] != frame_id:
            raise self._due[1]
        self._due = None

    def _note_turn(self, frame_id: Any, error: Refusal) -> None:
        if self._producer is not None and not self._due and isinstance(error, Unavailable):
            self._due = frame_id, error

    def _key(self, frame_id: int | str) -> bytes | None:
        if self._producer is None:
            return None
        return frame_key(self.grant.key_id, self._producer, frame_id)

    def _decode(self, message: Mapping[str, Any]) -> dict[str, Any]:
        data = message.get("bytes")
        if data is None:
            if self._format is MSGPACK:
                raise Unreadable("this stream speaks MessagePack; send binary frames")
            data = message["text"].encode()
        frame = self._format.decode(data)
        if not isinstance(frame, dict):
            raise Unreadable("a frame must be an object")
        return frame

    async def _predict(self, frame_id: Any, model: Model, frame: dict[str, Any]) -> None:
        body = {"x": frame["x"]} if "x" in frame else {}
        head, min_sequence = frame.get("head"), frame.get("min_sequence")
        try:
            rows = read_rows(body)
            self.grant.spend(n_rows(rows))
            answer = await api.predict(self._engine, model, head, min_sequence, rows)
        except Refusal as error:
            self._refuse(frame_id, error)
        else:
            self._answers.put_nowait({"id": frame_id, **answer})

    def _learned(self, frame_id: Any, done: "asyncio.Future[Answer]") -> None:
        error = done.exception()
        if isinstance(error, Refusal):
            self._note_turn(frame_id, error)
            self._refuse(frame_id, error)
        else:
            self._answers.put_nowait({"id": frame_id, **done.result()})

    def _refuse(self, frame_id: Any, error: Refusal) -> None:
        answer = {"error": self._describe(error)}
        self._answers.put_nowait(answer if frame_id is None else {"id": frame_id, **answer})

    async def _send_answers(self) -> None:
        while True:
            await self._write(await self._answers.get())
            self._free.release()

    async def _all_answered(self) -> None:
        for _ in range(self._window):
            await self._free.acquire()

    async def _write(self, data: dict[str, Any]) -> None:
        encoded = self._format.encode(data)
        if self._format is JSON:
            await self._websocket.send_text(encoded.decode())
        else:
            await self._websocket.send_bytes(encoded)

    def _greeting(self) -> dict[str, Any]:
        sequence = self._model.published.sequence
        return {"hello": {"model": self._model.name, "window": self._window, "sequence": sequence}}


def _frame_id(frame: dict[str, Any]) -> int | str:
    frame_id = frame.get("id")
    if type(frame_id) is int or (type(frame_id) is str and len(frame_id) <= _LONGEST_ID):
        return frame_id
    raise Invalid(f"a frame needs an id: an integer, or up to {_LONGEST_ID} characters")


def _checked_op(frame: dict[str, Any]) -> str:
    op = frame.get("op")
    if not isinstance(op, str) or op not in _FIELDS:
        raise Invalid(f"op must be one of {', '.join(_FIELDS)}")
    unknown: list[SampleError] = [
        {"pointer": f"/{name}", "detail": "unknown field"}
        for name in frame
        if name not in _FIELDS[op]
    ]
    if unknown:
        raise Invalid(f"{op} takes {', '.join(sorted(_FIELDS[op]))} and nothing else", unknown)
    min_sequence = frame.get("min_sequence")
    if min_sequence is not None and (type(min_sequence) is not int or min_sequence < 0):
        raise Invalid("min_sequence must be a whole number, zero or more")
    return op
