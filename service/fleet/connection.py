"""The connection to NATS. Its event loop runs in its own thread; callers are in other threads."""

import asyncio
import base64
import json
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeAlias, TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error, NoRespondersError
from nats.js import JetStreamContext

from wolfstream.service.errors import StartupError
from wolfstream.service.fleet.connecting import (
    PersistentClient,
    connected_client,
    without_passwords,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")
Connect: TypeAlias = Callable[[Sequence[str], str], Coroutine[Any, Any, Client]]

# More than `connected_client` takes.
_CONNECT_SECONDS = 40.0
_API_SECONDS = 5.0
# How long a request waits for the client, whose server has gone, to be connected to another one:
# longer than it takes to try two of them.
_RECONNECT_SECONDS, _LOOK_SECONDS = 5.0, 0.02
# How long a copy of a stream may take to answer a read, and for how long the stream's leader is
# asked after it has not. Reads are passed on to a server that is stopped, or cut off, for as long
# as the others have not closed their connections to it.
_COPY_SECONDS, _SILENT_SECONDS = 2.0, 10.0


class Refused(Exception):
    """A server has refused a request for good: `code` says why.

    code: JetStream's number of the error.
    """

    def __init__(self, code: int, description: str) -> None:
        super().__init__(f"{description} (error {code} of JetStream)")
        self.code = code


class Unanswered(Exception):
    """No server has answered in time: the request may have been done, or may still be done."""


class Forbidden(Refused):
    """The servers do not let this user make a request, and it waited for an answer in vain."""

    def __init__(self, subject: str, why: str) -> None:
        Exception.__init__(
            self,
            f"the NATS servers do not let this user use {subject} ({why}): give it the permissions "
            "that docs/fleet.md lists",
        )
        self.code = 0


class NotConnected(Unanswered):
    """No server is connected; nothing was sent."""


class Stored(NamedTuple):
    """A message of a stream, with its sequence there."""

    sequence: int
    subject: str
    body: bytes


class NatsConnection:
    """A connection to any of some servers, from its creation until `close`.

    Coroutines run on the connection's loop; `run` submits them from any other thread. Raises
    StartupError if no server can be reached, or none accepts this client.

    Args:
        servers: addresses, such as nats://host:4222.
        name: how the servers list it.
        connect: returns a client of the servers.
        loop: where the client runs, if somebody else runs it and ends it; otherwise the connection
            has a loop in a thread of its own.
    """

    def __init__(
        self,
        servers: Sequence[str],
        name: str,
        connect: Connect = connected_client,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.servers = without_passwords(servers)
        self.loop = loop or asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        if loop is None:
            self._thread = threading.Thread(target=self.loop.run_forever, name="nats", daemon=True)
            self._thread.start()
        try:
            self.client: Client = self.run(connect(servers, name), _CONNECT_SECONDS)
        except (StartupError, Unanswered, Error, OSError) as error:
            self._end_loop()
            raise StartupError(str(error)) from None
        # Until when, by the loop's clock, the copies of a stream count as silent.
        self._silent = dict[str, float]()
        self.stream: JetStreamContext = self.client.jetstream(timeout=_API_SECONDS)

    @property
    def connected(self) -> bool:
        """Return whether a server is connected now; on any thread."""
        return self.client.is_connected

    @property
    def refusals(self) -> int:
        """How many connections the servers have refused for who this client is."""
        return self.client.refusals if isinstance(self.client, PersistentClient) else 0

    @property
    def max_payload(self) -> int:
        """Return the largest size of a message with its headers, in bytes."""
        return self.client.max_payload

    def run(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Run a coroutine on the connection's loop and return its result; on any other thread.

        Raises Unanswered after `seconds`.
        """
        future = self.begin(work)
        try:
            return future.result(seconds)
        except TimeoutError as error:
            if future.done():  # one of its own requests has had less time
                raise Unanswered(f"no answer from NATS: {error or 'time-out'}") from None
            future.cancel()
            raise Unanswered(f"no answer from NATS within {seconds:g} s") from None

    def begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Start a coroutine on the connection's loop; on any other thread.

        Raises NotConnected after `close`.
        """
        try:
            return asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError:  # the loop is closed
            work.close()
            raise NotConnected("the connection to NATS is closed") from None

    async def reach(self) -> None:
        """Wait until a server is connected, while the client goes from one to another.

        Raises NotConnected.
        """
        deadline = self.loop.time() + _RECONNECT_SECONDS
        while not self.connected:
            if self.loop.time() >= deadline or self.client.is_closed:
                raise NotConnected(f"no NATS server is connected at {self.servers}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def ask(
        self,
        subject: str,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        seconds: float = _API_SECONDS,
    ) -> dict[str, Any]:
        """Send a message or a call and return JetStream's answer.

        Raises Refused, Unanswered, NotConnected.
        """
        await self.reach()
        began = time.monotonic()
        try:
            reply = await self.client.request(
                subject, body, timeout=seconds, headers=dict(headers) if headers else None
            )
        except NoRespondersError:
            raise Unanswered("no NATS server holds the stream now") from None
        except Error as error:
            if why := _forbidden(self.client, began, subject):
                raise Forbidden(subject, why) from None
            raise Unanswered(f"no answer from NATS: {error}") from None
        answer: dict[str, Any] = json.loads(reply.data)
        if failure := answer.get("error"):
            refused = Refused(
                failure.get("err_code", 0), failure.get("description", "no description")
            )
            # The servers have no quorum, or their leader is being chosen.
            if failure.get("code") == _NOT_NOW and refused.code not in _FINAL:
                raise Unanswered(str(refused))
            raise refused
        return answer

    async def call(self, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Make a call of JetStream's interface, such as STREAM.INFO.NAME; see `ask`."""
        return await self.ask(f"$JS.API.{name}", json.dumps(request).encode())

    async def get(self, stream: str, request: Mapping[str, Any], most: int = 1) -> list[Stored]:
        """Return messages of a stream from any of its copies, which may lag behind the others.

        request: that of a direct get of JetStream. most: the number of messages; above one, the
        request has `batch`. If no copy answers, the stream's leader is asked, for one message.
        Raises Unanswered, NotConnected.
        """
        await self.reach()
        if self.loop.time() >= self._silent.get(stream, 0):
            subject, body = f"$JS.API.DIRECT.GET.{stream}", json.dumps(request).encode()
            try:
                if most == 1:
                    return _stored(await self.client.request(subject, body, timeout=_COPY_SECONDS))
                return await self._get_many(subject, body, most)
            except (TimeoutError, asyncio.CancelledError) as error:
                self._silent[stream] = self.loop.time() + _SILENT_SECONDS
                if isinstance(error, asyncio.CancelledError):  # the caller had less time
                    raise
            except Error as error:
                raise Unanswered(f"no answer from NATS: {error or type(error).__name__}") from None
        rest = {key: value for key, value in request.items() if key not in ("batch", "max_bytes")}
        try:
            found = await self._get_of_leader(stream, rest)
        except Refused as error:
            raise Unanswered(str(error)) from None
        return [] if found is None else [found]

    async def last(self, stream: str, subject: str) -> Stored | None:
        """Return the last message of a subject; None if the stream's leader has none either.

        Raises Refused, Unanswered, NotConnected.
        """
        if found := await self.get(stream, {"last_by_subj": subject}):
            return found[0]
        return await self.last_of_leader(stream, subject)

    async def last_of_leader(self, stream: str, subject: str) -> Stored | None:
        """The last message of a subject that the stream's leader knows; None if it knows none.

        Raises Refused, Unanswered, NotConnected.
        """
        return await self._get_of_leader(stream, {"last_by_subj": subject})

    async def _get_of_leader(self, stream: str, request: Mapping[str, Any]) -> Stored | None:
        try:
            answer = await self.call(f"STREAM.MSG.GET.{stream}", request)
        except Refused as error:
            if error.code == _NO_MESSAGE:
                return None
            raise
        message = answer["message"]
        body = base64.b64decode(message.get("data", ""))
        return Stored(message["seq"], message["subject"], body)

    async def _get_many(self, subject: str, body: bytes, most: int) -> list[Stored]:
        inbox, found = self.client.new_inbox(), list[Stored]()
        subscription = await self.client.subscribe(inbox)
        try:
            await self.client.publish(subject, body, reply=inbox)
            while len(found) < most:
                message = await subscription.next_msg(timeout=_COPY_SECONDS)
                if not (stored := _stored(message)):
                    break
                found += stored
        except Error:
            if not found:  # what has come so far is whole
                raise
        finally:
            await subscription.unsubscribe()
        return found

    def close(self) -> None:
        """Disconnect and end the thread."""
        if self.loop.is_closed():
            return
        try:
            self.run(self.client.close(), _API_SECONDS)
        except (Unanswered, Error) as error:
            logger.warning("the connection to NATS was not closed cleanly: %s", error)
        self._end_loop()

    def _end_loop(self) -> None:
        if self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(_cancel_others(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


# 503 of an answer, and the errors under it that are final: a stream at its bound.
_NOT_NOW, LOG_FULL, NO_ROOM = 503, 10077, 10047
_FINAL = frozenset({LOG_FULL, NO_ROOM})
_NO_MESSAGE = 10037


def _forbidden(client: Client, began: float, subject: str) -> str:
    """Return what the servers have forbidden since a time that concerns a request."""
    if not isinstance(client, PersistentClient):  # of tests
        return ""
    return client.forbidden_since(began, subject)


def _stored(message: Msg) -> list[Stored]:
    """Return the message in an answer to a direct get; None for the last, empty answer."""
    headers = message.headers or {}
    if "Nats-Sequence" not in headers:
        return []
    return [Stored(int(headers["Nats-Sequence"]), headers["Nats-Subject"], message.data)]


async def _cancel_others() -> None:
    """Cancel the tasks that still run on the loop, such as watches."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
