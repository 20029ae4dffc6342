"""The connection to NATS: an event loop in its own thread, for callers in other threads."""

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

# Longer than the timeout of `connected_client`.
_CONNECT_SECONDS = 40.0
_API_SECONDS = 5.0
# How long a task of the connection may take to end before it is cancelled again.
_CANCEL_AGAIN_SECONDS = 0.5
# How long a request waits for the client to reconnect, which is long enough to try two servers, and
# how often it checks.
_RECONNECT_SECONDS, _CHECK_SECONDS = 5.0, 0.02
# How long to wait for a copy of a stream to respond to a read, and after a timeout, how long reads
# go to the stream's leader. Servers route reads to a copy that is stopped or cut off until they
# have closed their connections to it.
_COPY_SECONDS, _SILENT_SECONDS = 2.0, 10.0
# How long a stream's leader is asked again for a message, and the pause between two requests. A new
# leader is elected within some seconds.
_READ_SECONDS, _AGAIN_SECONDS = 5.0, 0.1


class NatsRefusal(Exception):
    """A server has refused a request, finally.

    Attributes:
        code: JetStream's error code; 0 for a missing permission.
    """

    def __init__(self, code: int, description: str) -> None:
        super().__init__(f"{description} (error {code} of JetStream)")
        self.code = code


class NatsTimeout(Exception):
    """No server has responded in time; the request may have been carried out, or may still be."""


class NatsForbidden(NatsRefusal):
    """The servers do not let this user make a request, and so do not respond to it."""

    def __init__(self, subject: str, why: str) -> None:
        Exception.__init__(
            self,
            f"the NATS servers do not let this user use {subject} ({why}): give it the permissions "
            "that docs/fleet.md lists",
        )
        self.code = 0


class NatsDisconnected(NatsTimeout):
    """No server is connected; nothing was sent."""


class StreamMessage(NamedTuple):
    """A message of a stream."""

    sequence: int  # in the stream
    subject: str
    body: bytes


class NatsConnection:
    """A connection to one of several servers, from its creation until `close`.

    Coroutines run on the connection's loop; `run` submits them from any other thread.

    Attributes:
        servers: the addresses without passwords, for messages.
        loop: the connection's loop.
        client: the library's client.
        stream: the library's interface of JetStream.
    """

    def __init__(
        self,
        servers: Sequence[str],
        name: str,
        connect: Connect = connected_client,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Connect.

        Args:
            servers: addresses, such as nats://host:4222.
            name: how the servers list the client.
            connect: returns a client of the servers.
            loop: an event loop that the caller runs and stops; None starts one in its own thread.

        Raises StartupError if no server can be reached, or none accepts this client.
        """
        self.servers = without_passwords(servers)
        self.loop = loop or asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        if loop is None:
            self._thread = threading.Thread(target=self.loop.run_forever, name="nats", daemon=True)
            self._thread.start()
        try:
            self.client: Client = self.run(connect(servers, name), _CONNECT_SECONDS)
        except (StartupError, NatsTimeout, Error, OSError) as error:
            self._end_loop()
            raise StartupError(str(error)) from None
        # stream -> time until which reads go to its leader, by the loop's clock.
        self._silent = dict[str, float]()
        self.stream: JetStreamContext = self.client.jetstream(timeout=_API_SECONDS)

    @property
    def connected(self) -> bool:
        """Whether a server is connected now; on any thread."""
        return self.client.is_connected

    @property
    def refusals(self) -> int:
        """How many connections the servers have refused as unauthorized."""
        return self.client.refusals if isinstance(self.client, PersistentClient) else 0

    @property
    def max_payload(self) -> int:
        """The maximum size of a message with its headers, in bytes."""
        return self.client.max_payload

    def run(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Run a coroutine on the connection's loop, from any other thread; return its result.

        Args:
            work: the coroutine.
            seconds: how long to wait for it.

        Raises NatsTimeout after `seconds`, and what the coroutine raises.
        """
        future = self.begin(work)
        try:
            return future.result(seconds)
        except TimeoutError as error:
            if future.done():  # a request within the coroutine timed out
                raise NatsTimeout(f"no answer from NATS: {error or 'time-out'}") from None
            future.cancel()
            raise NatsTimeout(f"no answer from NATS within {seconds:g} s") from None

    def begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Start a coroutine on the connection's loop, from any other thread.

        Raises NatsDisconnected after `close`.
        """
        try:
            return asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError:  # the loop is closed
            work.close()
            raise NatsDisconnected("the connection to NATS is closed") from None

    async def wait_until_connected(self) -> None:
        """Wait while the client reconnects. Raises NatsDisconnected after some seconds."""
        deadline = self.loop.time() + _RECONNECT_SECONDS
        while not self.connected:
            if self.loop.time() >= deadline or self.client.is_closed:
                raise NatsDisconnected(f"no NATS server is connected at {self.servers}")
            await asyncio.sleep(_CHECK_SECONDS)

    async def ask(
        self,
        subject: str,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        seconds: float = _API_SECONDS,
    ) -> dict[str, Any]:
        """Send a message to a stream, or a request to JetStream; return the decoded reply.

        Args:
            subject: subject of the message.
            body: its content.
            headers: its headers.
            seconds: how long to wait for the reply.

        Raises NatsRefusal, NatsTimeout, NatsDisconnected.
        """
        await self.wait_until_connected()
        began = time.monotonic()
        try:
            reply = await self.client.request(
                subject, body, timeout=seconds, headers=dict(headers) if headers else None
            )
        except NoRespondersError:
            raise NatsTimeout("no NATS server holds the stream now") from None
        except Error as error:
            if why := _forbidden(self.client, began, subject):
                raise NatsForbidden(subject, why) from None
            raise NatsTimeout(f"no answer from NATS: {error}") from None
        answer: dict[str, Any] = json.loads(reply.data)
        if failure := answer.get("error"):
            refused = NatsRefusal(
                failure.get("err_code", 0), failure.get("description", "no description")
            )
            # The servers have no quorum at present, or are electing a leader.
            if failure.get("code") == _NOT_NOW and refused.code not in _FINAL:
                raise NatsTimeout(str(refused))
            raise refused
        return answer

    async def call(self, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Make a call to JetStream's API, such as STREAM.INFO.NAME; see `ask`."""
        return await self.ask(f"$JS.API.{name}", json.dumps(request).encode())

    async def get(
        self, stream: str, request: Mapping[str, Any], max_messages: int = 1
    ) -> list[StreamMessage]:
        """Return messages of a stream from any of its copies, which may lag.

        If no copy responds, the stream's leader is asked for one message.

        Args:
            stream: name of the stream.
            request: a request for JetStream's direct get.
            max_messages: the most messages to return; if more than one, the request has `batch`.

        Raises NatsTimeout, NatsDisconnected.
        """
        await self.wait_until_connected()
        if self.loop.time() >= self._silent.get(stream, 0):
            subject, body = f"$JS.API.DIRECT.GET.{stream}", json.dumps(request).encode()
            try:
                if max_messages == 1:
                    return _read_direct(
                        await self.client.request(subject, body, timeout=_COPY_SECONDS)
                    )
                return await self._get_many(subject, body, max_messages)
            except (TimeoutError, asyncio.CancelledError) as error:
                self._silent[stream] = self.loop.time() + _SILENT_SECONDS
                if isinstance(error, asyncio.CancelledError):  # the caller's timeout was shorter
                    raise
            except Error as error:
                raise NatsTimeout(f"no answer from NATS: {error or type(error).__name__}") from None
        rest = {key: value for key, value in request.items() if key not in ("batch", "max_bytes")}
        try:
            message = await self._get_from_leader(stream, rest)
        except NatsRefusal as error:
            raise NatsTimeout(str(error)) from None
        return [] if message is None else [message]

    async def last(self, stream: str, subject: str) -> StreamMessage | None:
        """Return the last message of a subject; None if even the stream's leader has none.

        Raises NatsRefusal, NatsTimeout, NatsDisconnected.
        """
        if messages := await self.get(stream, {"last_by_subj": subject}):
            return messages[0]
        return await self.last_of_leader(stream, subject)

    async def last_of_leader(self, stream: str, subject: str) -> StreamMessage | None:
        """Return the last message of a subject from the stream's leader; None without a message.

        Raises NatsRefusal, NatsTimeout, NatsDisconnected.
        """
        return await self._get_from_leader(stream, {"last_by_subj": subject})

    async def message_of_leader(self, stream: str, sequence: int) -> StreamMessage | None:
        """Return the message with a sequence from the stream's leader; None if it has none.

        Raises NatsRefusal, NatsTimeout, NatsDisconnected.
        """
        return await self._get_from_leader(stream, {"seq": sequence})

    async def _get_from_leader(
        self, stream: str, request: Mapping[str, Any]
    ) -> StreamMessage | None:
        """Return one message, or None; ask again for some seconds if there is no answer.

        A server that is stopped while it leads the stream takes the requests that have reached it
        with it. The next leader answers them.
        """
        subject, body = f"$JS.API.STREAM.MSG.GET.{stream}", json.dumps(request).encode()
        deadline, seconds = self.loop.time() + _READ_SECONDS, _COPY_SECONDS
        while True:
            try:
                answer = await self.ask(subject, body, None, seconds)
                break
            except NatsRefusal as error:
                if error.code == _NO_MESSAGE:
                    return None
                raise
            except NatsDisconnected:  # which has waited for a server already
                raise
            except NatsTimeout:
                if self.loop.time() >= deadline:
                    raise
            await asyncio.sleep(_AGAIN_SECONDS)
            seconds = _API_SECONDS
        message = answer["message"]
        return StreamMessage(
            message["seq"], message["subject"], base64.b64decode(message.get("data", ""))
        )

    async def _get_many(self, subject: str, body: bytes, max_messages: int) -> list[StreamMessage]:
        """Return the messages with which a copy responds to a request with `batch`."""
        inbox, messages = self.client.new_inbox(), list[StreamMessage]()
        subscription = await self.client.subscribe(inbox)
        try:
            await self.client.publish(subject, body, reply=inbox)
            while len(messages) < max_messages:
                reply = await subscription.next_msg(timeout=_COPY_SECONDS)
                if not (message := _read_direct(reply)):
                    break
                messages += message
        except Error:
            if not messages:  # otherwise return those that have arrived: they are in order
                raise
        finally:
            await subscription.unsubscribe()
        return messages

    def close(self) -> None:
        """Disconnect, and end the loop and its thread."""
        if self.loop.is_closed():
            return
        try:
            self.run(self.client.close(), _API_SECONDS)
        except (NatsTimeout, Error) as error:
            logger.warning("the connection to NATS was not closed cleanly: %s", error)
        self._end_loop()

    def _end_loop(self) -> None:
        if self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(_cancel_others(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


# JetStream's status "temporarily unavailable", and error codes with this status that are final
# nevertheless: a stream at its bound, and servers without space for a stream.
_NOT_NOW, LOG_FULL, NO_ROOM = 503, 10077, 10047
_FINAL = frozenset({LOG_FULL, NO_ROOM})
_NO_MESSAGE = 10037


def _forbidden(client: Client, began: float, subject: str) -> str:
    """Return why the servers forbade a request that began at a time; "" if they did not."""
    if not isinstance(client, PersistentClient):  # a client of a test
        return ""
    return client.forbidden_since(began, subject)


def _read_direct(reply: Msg) -> list[StreamMessage]:
    """Return the message in a reply to a direct get; empty for the reply that ends a batch."""
    headers = reply.headers or {}
    if "Nats-Sequence" not in headers:
        return []
    return [StreamMessage(int(headers["Nats-Sequence"]), headers["Nats-Subject"], reply.data)]


async def _cancel_others() -> None:
    """Cancel all other tasks on the loop, such as watches.

    The library waits by `asyncio.wait_for`, which on Python 3.11 swallows a cancellation that comes
    just after what it waits for. So tasks that go on are cancelled again.
    """
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in tasks:
            task.cancel()
        ended = asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.wait([ended], timeout=_CANCEL_AGAIN_SECONDS)
