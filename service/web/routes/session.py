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
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from wolfstream.service.access.key_ring import Grant
from wolfstream.service.engine.idempotency import frame_key
from wolfstream.service.engine.queue_items import Answer
from wolfstream.service.engine.serving import ServingEngine
from wolfstream.service.errors import NotLeader, NotReady, Refusal, Unavailable
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
from wolfstream.service.web.formats.bounds import bounds_of
from wolfstream.service.web.formats.memory import Lease, MemoryBudget
from wolfstream.service.web.formats.problems import problem_of
from wolfstream.service.web.formats.request_size import check_size
from wolfstream.service.web.formats.wire import JSON
from wolfstream.service.web.routes import handlers
from wolfstream.service.web.routes.frames import (
    SUBPROTOCOLS,
    Frame,
    FrameId,
    decode_frame,
    read_frame,
    read_frame_id,
)
from wolfstream.service.web.routes.outbox import Outbox

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
        answer.add_done_callback(lambda done: self._learned(frame.id, done))

    async def _label(self, frame: Frame, lease: Lease) -> None:
        model, settings = self._engine.model(self._model.name), self._settings
        labels = await decode_or_offload(
            lambda: late_labels_for(model.spec, frame.body, settings), frame.n_bytes, lease
        )
        await self._engine.compiled(model, None)
        expected = read_expected(frame.fields.get("if_match"))
        answer = handlers.label(self._engine, self.grant, model, labels, expected)
        answer.add_done_callback(lambda done: self._learned(frame.id, done))

    def _learned(self, frame_id: FrameId, done: "asyncio.Future[Answer]") -> None:
        error = done.exception()
        if isinstance(error, Refusal):
            self._keep_order(frame_id, error)
            self._refuse(frame_id, error)
        else:
            self._outbox.put({"id": frame_id, **done.result()}, self._memory.lease())

    def _start_prediction(self, frame: Frame) -> None:
        task = asyncio.create_task(self._predict(self._engine.model(self._model.name), frame))
        self._predictions.add(task)
        task.add_done_callback(self._predictions.discard)

    async def _predict(self, model: Model, frame: Frame) -> None:
        head, awaited = frame.fields.get("head"), read_awaited(frame.fields.get("min_sequence"))
        with self._memory.lease() as lease:
            try:
                question = await decode_or_offload(
                    lambda: question_for(model.spec, frame.body), frame.n_bytes, lease
                )
                answer = await handlers.predict(
                    self._engine, self.grant, model, head, awaited, question, lease
                )
            except Refusal as error:
                self._refuse(frame.id, error)
            else:
                self._outbox.put({"id": frame.id, **answer}, lease.hand_over())

    def _keep_order(self, frame_id: FrameId | None, error: Refusal) -> None:
        if self._order:
            self._order.refused(frame_id, error)

    def _refuse(self, frame_id: FrameId | None, error: Refusal) -> None:
        if isinstance(error, NotLeader):  # a reconnecting client is forwarded to that replica
            self.end(GOING_AWAY, "another replica leads the model")
            error = NotReady("another replica leads the model by now; nothing was learned")
        answer: dict[str, Any] = {"error": problem_of(error)}
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
