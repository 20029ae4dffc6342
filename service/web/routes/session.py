"""One websocket connection to one model.

A session has two tasks. The reader reads a frame only while fewer than `window` frames are
unanswered, so a client that sends too fast is slowed down by its own connection. The sender writes
one answer at a time, and a frame counts as answered only once its answer is written. So neither
direction buffers more than a window.

With `?producer=NAME`, the name and the id of a learning frame form its idempotency key
(`engine.idempotency`): after a lost connection, the client sends the unanswered frames again with
the same ids, and each is learned once. The order of these frames is preserved: once a frame is
refused because the server is unavailable, all later frames are refused as well until it is sent
again.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.websockets import WebSocket, WebSocketDisconnect

from wolfstream.service.access.key_ring import Grant
from wolfstream.service.calls.samples import BODIES
from wolfstream.service.calls.table import CALLS, Call
from wolfstream.service.engine.idempotency import frame_key
from wolfstream.service.engine.queue_items import Response
from wolfstream.service.engine.serving import ServingEngine
from wolfstream.service.errors import (
    Invalid,
    NotLeader,
    NotReady,
    Refusal,
    SampleError,
    Unavailable,
    Unreadable,
)
from wolfstream.service.model.live import Model
from wolfstream.service.model.revision import read_awaited, read_expected
from wolfstream.service.settings import Settings
from wolfstream.service.spec.heads import LearningCall
from wolfstream.service.web.formats.body import (
    decode_or_offload,
    late_labels_for,
    question_for,
    samples_for,
)
from wolfstream.service.web.formats.bounds import Bounds, bounds_of, check_size
from wolfstream.service.web.formats.chunks import join_chunks, large_response_bytes
from wolfstream.service.web.formats.flat_rows import located
from wolfstream.service.web.formats.memory import Lease, MemoryBudget
from wolfstream.service.web.formats.problems import problem_of
from wolfstream.service.web.formats.wire import JSON, MSGPACK, Format
from wolfstream.service.web.routes import handlers


class Outbox:
    """Sends answers in the order in which they become ready.

    Args:
        window: number of frames that may be read before their answers are sent.

    Attributes:
        format: format of the answers.
    """

    def __init__(self, websocket: WebSocket, window: int) -> None:
        self.format: Format = JSON
        self._websocket, self._window = websocket, window
        self._free = asyncio.Semaphore(window)
        # (answer, the lease that holds its memory until it is sent).
        self._answers: asyncio.Queue[tuple[dict[str, Any], Lease]] = asyncio.Queue()
        self._closed = False

    async def reserve(self) -> None:
        """Wait until another frame may be read, and reserve its place in the window."""
        await self._free.acquire()

    def cancel_reservation(self) -> None:
        """Free the place of a frame that was not read."""
        self._free.release()

    def put(self, answer: dict[str, Any], lease: Lease) -> None:
        """Queue an answer, and hold its memory until it is sent; drop it if the client is gone."""
        if self._closed:
            lease.release()
            return
        lease.hold_unbounded(large_response_bytes(answer))
        self._answers.put_nowait((answer, lease))

    async def send(self) -> None:
        """Send answers until cancelled."""
        while True:
            answer, lease = await self._answers.get()
            with lease:
                await self.write(answer)
            self._free.release()

    async def empty(self) -> None:
        """Wait until all frames that were read are answered; no other may be read meanwhile."""
        for _ in range(self._window):
            await self._free.acquire()

    async def write(self, data: dict[str, Any]) -> None:
        """Send plain data at once."""
        large = large_response_bytes(data) > 0
        encoded = await join_chunks(self.format.chunks(data)) if large else self.format.encode(data)
        if self.format is JSON:
            await self._websocket.send_text(encoded.decode())
        else:
            await self._websocket.send_bytes(encoded)

    def close(self) -> None:
        """Drop the queued answers, and all that are put later."""
        self._closed = True
        while not self._answers.empty():
            self._answers.get_nowait()[1].release()


SUBPROTOCOLS = {"wolfstream.v1.json": JSON, "wolfstream.v1.msgpack": MSGPACK}
FrameId = int | str

_MAX_ID_LENGTH = 128
# The parameters that streams support: name in a request -> field of a frame.
_PARAMETERS = {"head": "head", "min_sequence": "min_sequence", "If-Match": "if_match"}


class Frame(NamedTuple):
    """A frame that has been checked, apart from its body."""

    id: FrameId
    call: Call
    fields: Mapping[str, Any]  # all fields of the frame
    body: dict[str, Any]  # the fields that the body of a request would have
    n_bytes: int  # size of the message


_CALLS = {call.frame: call for call in CALLS if call.frame is not None}
# op -> the fields of its body, and all its fields.
_BODY = {op: tuple(BODIES[call.body].__annotations__) for op, call in _CALLS.items()}
_FIELDS = {
    op: {
        *("id", "op", *_BODY[op]),
        *(_PARAMETERS[name] for name in (*call.query, *call.headers) if name in _PARAMETERS),
    }
    for op, call in _CALLS.items()
}


def decode_frame(
    message: Mapping[str, Any], frame_format: Format, bounds: Bounds
) -> dict[str, Any]:
    """Return the fields of the frame in a message. Raises Unreadable, TooLarge."""
    data = message.get("bytes")
    if data is None:
        if frame_format is MSGPACK:
            raise Unreadable("this stream takes MessagePack; send binary frames")
        data = message["text"].encode()
    frame = frame_format.decode(data, bounds)
    if not isinstance(frame, dict):
        raise Unreadable("a frame must be an object")
    return frame


def read_frame_id(fields: dict[str, Any]) -> FrameId:
    """Return the id of a frame, which its answer repeats. Raises Invalid."""
    given = fields.get("id")
    if type(given) is int or (type(given) is str and len(given) <= _MAX_ID_LENGTH):
        return given
    raise Invalid(f"a frame needs an id: an integer, or up to {_MAX_ID_LENGTH} characters")


def read_frame(frame_id: FrameId, fields: dict[str, Any], n_bytes: int) -> Frame:
    """Return a frame. Raises Invalid for an unknown op or field, or an invalid parameter.

    Args:
        frame_id: its id.
        fields: all its fields.
        n_bytes: size of the message.
    """
    op = fields.get("op")
    if not isinstance(op, str) or op not in _CALLS:
        raise Invalid(f"op must be one of {', '.join(_CALLS)}")
    unknown: list[SampleError] = [
        {"pointer": f"/{name}", "detail": "unknown field"}
        for name in fields
        if name not in _FIELDS[op]
    ]
    if unknown:
        raise Invalid(f"{op} takes {', '.join(sorted(_FIELDS[op]))} and nothing else", unknown)
    read_awaited(fields.get("min_sequence"))
    read_expected(fields.get("if_match"))
    body = {name: fields[name] for name in _BODY[op] if name in fields}
    return Frame(frame_id, _CALLS[op], fields, body, n_bytes)


# The codes with which the server closes a stream.
GOING_AWAY, NOT_ALLOWED = 1001, 1008


class Session:
    """One connection to one model.

    Args:
        grant: what the client's key allows.
        producer: the client's name, which makes ids idempotency keys; None without a name.

    Attributes:
        ended: set once the connection is closed.
    """

    def __init__(
        self,
        websocket: WebSocket,
        engine: ServingEngine,
        model: Model,
        grant: Grant,
        settings: Settings,
        memory: MemoryBudget,
        producer: str | None = None,
    ) -> None:
        self._websocket = websocket
        self._engine = engine
        self._model = model
        self.grant = grant
        self._settings, self._memory = settings, memory
        self._bounds = bounds_of(settings)
        self._window = settings.window
        self._producer = producer
        self._order = None if producer is None else _Order()
        self._outbox = Outbox(websocket, settings.window)
        self._predictions: set[asyncio.Task[None]] = set()
        self._ending = asyncio.Event()  # set by `end`
        self._close: tuple[int, str]  # the arguments of `end`
        self.ended = asyncio.Event()

    async def run(self) -> None:
        """Send a greeting, then answer frames until the client leaves or `end` is called."""
        offered = self._websocket.scope["subprotocols"]
        chosen = next((name for name in offered if name in SUBPROTOCOLS), None)
        await self._websocket.accept(chosen)
        if offered and chosen is None:
            supported = ", ".join(SUBPROTOCOLS)
            await self._websocket.close(NOT_ALLOWED, f"supported subprotocols: {supported}")
            return
        self._outbox.format = SUBPROTOCOLS[chosen] if chosen else JSON
        try:
            await self._outbox.write(await self._greeting())
            await self._serve()
        except WebSocketDisconnect:
            pass
        finally:
            for task in self._predictions:
                task.cancel()
            self._outbox.close()
            self.ended.set()

    def end(self, code: int, reason: str) -> None:
        """Stop reading frames, send the answers to those that were read, and close.

        It returns at once; `ended` is set once the connection is closed.
        """
        if not self._ending.is_set():
            self._close = code, reason
            self._ending.set()

    async def _serve(self) -> None:
        reader = asyncio.create_task(self._read())
        sender = asyncio.create_task(self._outbox.send())
        ending = asyncio.create_task(self._ending.wait())
        answered = None
        try:
            await asyncio.wait({reader, sender, ending}, return_when=asyncio.FIRST_COMPLETED)
            if ending.done() and not reader.done():
                reader.cancel()
                await asyncio.wait({reader})
                answered = asyncio.create_task(self._outbox.empty())
                await asyncio.wait({answered, sender}, return_when=asyncio.FIRST_COMPLETED)
                await self._websocket.close(*self._close)
        finally:
            tasks = [task for task in (reader, sender, ending, answered) if task is not None]
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _read(self) -> None:
        while True:
            await self._outbox.reserve()
            try:
                message = await self._websocket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                with self._memory.lease() as lease:
                    await self._take(message, lease)
            except asyncio.CancelledError:
                self._outbox.cancel_reservation()
                raise
            # Let other tasks run: if frames arrive fast enough, nothing above ever waits.
            await asyncio.sleep(0)

    async def _take(self, message: Mapping[str, Any], lease: Lease) -> None:
        """Begin to handle the frame in a message, or answer it with a problem."""
        frame_id: FrameId | None = None
        learns = True
        n_bytes = len(message.get("bytes") or message.get("text") or "")
        try:
            fields = await decode_or_offload(
                lambda: decode_frame(message, self._outbox.format, self._bounds), n_bytes, lease
            )
            frame_id = read_frame_id(fields)
            frame = read_frame(frame_id, fields, n_bytes)
            learns = frame.call.scope != "predict"
            self.grant.check(frame.call.scope or "admin")
            if learns and self._order:
                self._order.check(frame_id)
            self.grant.check_quota()
            check_size(fields, self._settings)
            match frame.call.name:
                case "predict":
                    self._start_prediction(frame)
                case "label":
                    await self._label(frame, lease)
                case "learn_asset":
                    await self._learn(frame, "asset", lease)
                case _:
                    await self._learn(frame, "samples", lease)
        except Refusal as error:
            if learns:
                self._keep_order(frame_id, error)
            self._refuse(frame_id, error)

    async def _learn(self, frame: Frame, call: LearningCall, lease: Lease) -> None:
        model = self._engine.model(self._model.name)
        samples = await decode_or_offload(
            lambda: samples_for(model.spec, frame.body), frame.n_bytes, lease
        )
        await self._engine.compiled(model, samples.X)
        expected = read_expected(frame.fields.get("if_match"))
        key = None
        if self._producer is not None:
            key = frame_key(self.grant.client, self._producer, frame.id)
        answer = handlers.learn(
            self._engine, self.grant, model, call, samples, key, expected=expected
        )
        answer.add_done_callback(lambda done: self._learned(frame, done))

    async def _label(self, frame: Frame, lease: Lease) -> None:
        model, settings = self._engine.model(self._model.name), self._settings
        labels = await decode_or_offload(
            lambda: late_labels_for(model.spec, frame.body, settings), frame.n_bytes, lease
        )
        await self._engine.compiled(model, None)
        expected = read_expected(frame.fields.get("if_match"))
        answer = handlers.label(self._engine, self.grant, model, labels, expected)
        answer.add_done_callback(lambda done: self._learned(frame, done))

    def _learned(self, frame: Frame, done: "asyncio.Future[Response]") -> None:
        error = done.exception()
        if isinstance(error, Refusal):
            self._keep_order(frame.id, error)
            self._refuse(frame.id, located(error, frame.body))
        else:
            self._outbox.put({"id": frame.id, **done.result()}, self._memory.lease())

    def _start_prediction(self, frame: Frame) -> None:
        task = asyncio.create_task(self._predict(self._engine.model(self._model.name), frame))
        self._predictions.add(task)
        task.add_done_callback(self._predictions.discard)

    async def _predict(self, model: Model, frame: Frame) -> None:
        head, awaited = frame.fields.get("head"), read_awaited(frame.fields.get("min_sequence"))
        with self._memory.lease() as lease:
            question = None
            try:
                question = await decode_or_offload(
                    lambda: question_for(model.spec, frame.body), frame.n_bytes, lease
                )
                answer = await handlers.predict(
                    self._engine, self.grant, model, head, awaited, question, lease
                )
            except Refusal as error:
                read = question is not None  # what reads a body knows its places
                self._refuse(frame.id, located(error, frame.body) if read else error)
            else:
                self._outbox.put({"id": frame.id, **answer}, lease.hand_over())

    def _keep_order(self, frame_id: FrameId | None, error: Refusal) -> None:
        if self._order:
            self._order.refused(frame_id, error)

    def _refuse(self, frame_id: FrameId | None, error: Refusal) -> None:
        if isinstance(error, NotLeader):  # a reconnecting client is forwarded to that replica
            self.end(GOING_AWAY, "another replica leads the model")
            error = NotReady("another replica leads the model by now; nothing was learned")
        answer: dict[str, Any] = {"error": problem_of(error.without_frames())}
        if frame_id is not None:
            answer = {"id": frame_id, **answer}
        self._outbox.put(answer, self._memory.lease())

    async def _greeting(self) -> dict[str, Any]:
        epoch, sequence = await self._engine.revision(self._model)
        greeting = {"model": self._model.name, "window": self._window}
        return {"hello": {**greeting, "sequence": sequence, "epoch": epoch}}


class _Order:
    """Preserves the order of a producer's frames if one of them has to be sent again."""

    def __init__(self) -> None:
        # The frame that has to be sent again, and why it was refused.
        self._awaited: tuple[FrameId | None, Unavailable] | None = None

    def check(self, frame_id: FrameId) -> None:
        """Raise the refusal of an earlier frame unless this is that frame, sent again."""
        if self._awaited and self._awaited[0] != frame_id:
            raise self._awaited[1]
        self._awaited = None

    def refused(self, frame_id: FrameId | None, error: Refusal) -> None:
        """Wait for a refused frame to be sent again, if the server could not take it."""
        if not self._awaited and isinstance(error, Unavailable):
            self._awaited = frame_id, error
