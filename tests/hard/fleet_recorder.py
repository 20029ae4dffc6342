"""Records all messages of a fleet's logs as they come, so that purges hide nothing of them.

It speaks to the servers by the public client, and shares no code with the product.
"""

import asyncio
import base64
import contextlib
import datetime
import json
import threading
import time
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import nats
from nats.aio.client import Client
from nats.errors import Error

from tests.service.jetstream.store import StoredMessage
from tests.simulation.stream_link import Archived

T = TypeVar("T")

_LOGS = 8
_CATALOGUE = "KV_wolfstream-models"
_BATCH, _PAUSE_SECONDS, _ANSWER_SECONDS, _PATIENCE_SECONDS = 256, 0.05, 0.5, 60.0


class Cluster(NamedTuple):
    """The servers that keep a stream, by their names. leader: empty while there is none."""

    leader: str
    followers: list[str]


class Recorder:
    """Reads from a thread of its own until `close`.

    archive: what the streams have ever stored, each stream in its order.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self.archive = list[Archived]()
        self._addresses = list(addresses)
        self._streams = [f"WOLFSTREAM_LOG_{number}" for number in range(_LOGS)] + [_CATALOGUE]
        self._missed = list[str]()
        # stream -> sequence of the last message that was read.
        self._read = dict.fromkeys(self._streams, 0)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="recorder", daemon=True)
        self._thread.start()
        self._client: Client = self._run(self._connected())
        self._following: list[asyncio.Task[None]] = self._run(self._begin_to_follow())

    def cluster(self, number: int) -> Cluster:
        """Return the servers that keep the log of a model."""
        answer = self._run(self._call(f"STREAM.INFO.WOLFSTREAM_LOG_{number % _LOGS}", {}))
        told = answer["cluster"]
        return Cluster(told.get("leader", ""), [one["name"] for one in told.get("replicas", [])])

    def numbers(self) -> dict[str, int]:
        """Return the number of each model that is recorded by now."""
        subject = "$KV.wolfstream-models.model."
        return {
            _decoded(entry.message.subject.removeprefix(subject)): json.loads(entry.message.body)[
                "number"
            ]
            for entry in list(self.archive)
            if entry.message.subject.startswith(subject) and entry.message.body
        }

    def read_to_end(self) -> list[str]:
        """Read to the present end of all streams, and return what was not read.

        Where a purge was faster than the recorder nothing else can be said.
        """
        faults = list(self._missed)
        for name in self._streams:
            last = self._state(name)["last_seq"]
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while self._read[name] < last:
                if time.monotonic() > deadline:
                    faults.append(f"{name}: read up to {self._read[name]} of {last}")
                    break
                time.sleep(_PAUSE_SECONDS)
        return faults

    def finish(self) -> list[str]:
        """Do the same, and return also what the streams hold otherwise than was read."""
        faults = self.read_to_end()
        for name in self._streams[:_LOGS]:
            state = self._state(name)
            recorded = {
                entry.message.sequence: entry.message.body
                for entry in self.archive
                if entry.stream == name
            }
            for sequence in range(max(state["first_seq"], 1), state["last_seq"] + 1):
                stored = self._run(self._stored(name, sequence))
                if stored is not None and stored != recorded.get(sequence):
                    faults.append(f"{name}: message {sequence} is not what was stored first")
        return faults

    def _state(self, name: str) -> dict[str, Any]:
        """Return what a stream says of its messages."""
        state: dict[str, Any] = self._run(self._call(f"STREAM.INFO.{name}", {}))["state"]
        return state

    def close(self) -> None:
        """End the thread."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE_SECONDS)

    async def _end(self) -> None:
        # Once the client is closed, it turns a cancellation into an error of its own.
        await _cancelled(self._following)
        with contextlib.suppress(Error, TimeoutError):
            await self._client.close()
        await _cancelled(asyncio.all_tasks() - {asyncio.current_task()})

    async def _connected(self) -> Client:
        async def hush(_: Exception) -> None:
            """Servers are killed on purpose."""

        return await nats.connect(
            self._addresses,
            name="recorder",
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.2,
            ping_interval=2,
            max_outstanding_pings=2,
            error_cb=hush,
        )

    async def _call(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of JetStream's interface, once there is one without an error."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            answer: dict[str, Any] = {}
            with contextlib.suppress(Error, TimeoutError):
                reply = await self._client.request(
                    f"$JS.API.{name}", json.dumps(request).encode(), timeout=5
                )
                answer = json.loads(reply.data)
            code = answer.get("error", {}).get("code")
            if answer and code in (None, 404):
                return answer
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name}: {answer}")
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _stored(self, stream: str, sequence: int) -> bytes | None:
        """Return a message as the stream's leader has it; None if it was purged."""
        answer = await self._call(f"STREAM.MSG.GET.{stream}", {"seq": sequence})
        if "message" not in answer:
            return None
        return base64.b64decode(answer["message"].get("data", ""))

    async def _begin_to_follow(self) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self._follow(name)) for name in self._streams]

    async def _follow(self, stream: str) -> None:
        while True:
            try:
                n = await self._next(stream)
            except (Error, TimeoutError):  # a copy on a server that is stopped was asked
                n = await self._next_of_leader(stream)
            if n < _BATCH:
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _next(self, stream: str) -> int:
        """Take the next messages of a stream, from any of its copies; return how many."""
        inbox, n = self._client.new_inbox(), 0
        request = {"seq": self._read[stream] + 1, "next_by_subj": ">", "batch": _BATCH}
        subscription = await self._client.subscribe(inbox)
        try:
            subject = f"$JS.API.DIRECT.GET.{stream}"
            await self._client.publish(subject, json.dumps(request).encode(), reply=inbox)
            while n < _BATCH:
                message = await subscription.next_msg(timeout=_ANSWER_SECONDS)
                headers = message.headers or {}
                if "Nats-Sequence" not in headers:
                    break
                sequence = int(headers["Nats-Sequence"])
                if sequence <= self._read[stream]:
                    continue
                at, subject = headers["Nats-Time-Stamp"], headers["Nats-Subject"]
                self._take(stream, sequence, subject, message.data, at)
                n += 1
        finally:
            await subscription.unsubscribe()
        return n

    async def _next_of_leader(self, stream: str) -> int:
        """Take the next message that the stream's leader has; return how many."""
        request = json.dumps({"seq": self._read[stream] + 1, "next_by_subj": ">"}).encode()
        n = 0
        with contextlib.suppress(Error, TimeoutError):
            subject = f"$JS.API.STREAM.MSG.GET.{stream}"
            while n < _BATCH:
                reply = await self._client.request(subject, request, timeout=_ANSWER_SECONDS)
                message = json.loads(reply.data).get("message")
                if message is None:
                    break
                body = base64.b64decode(message.get("data", ""))
                self._take(stream, message["seq"], message["subject"], body, message["time"])
                request = json.dumps({"seq": message["seq"] + 1, "next_by_subj": ">"}).encode()
                n += 1
        return n

    def _take(self, stream: str, sequence: int, subject: str, body: bytes, time: str) -> None:
        if sequence <= self._read[stream]:
            return
        if sequence > self._read[stream] + 1 and stream != _CATALOGUE:
            missed = f"{self._read[stream] + 1} to {sequence - 1} of {stream}"
            self._missed.append(f"the recorder has not read {missed} before they were purged")
        at = datetime.datetime.fromisoformat(time).timestamp()
        stored = StoredMessage(sequence, subject, b"", body, int(at * 1e9))
        self.archive.append(Archived(stream, stored, "", at))
        self._read[stream] = sequence


async def _cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended."""
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _decoded(token: str) -> str:
    """Return the name of a model in a subject, where it has no dots and no colons."""
    return token.replace("=", ".").replace("/", ":")
