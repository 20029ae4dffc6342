"""HTTP between the processes of a simulation: requests reach an ASGI application of another one.

Messages of a call keep their order and take some time each. A partition holds them back, as TCP
does, until it is healed; a process that ends breaks its calls. Faults break a call before the
request has arrived, before the response has, or within the response.

A call ends at its first response: there are no connections that several calls share, no
websockets, and nothing is ever full.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.simulation.kernel import Group, Kernel

Headers = list[tuple[bytes, bytes]]
Message = MutableMapping[str, Any]
# The usual time of a message, and the longest time of a slow one.
_USUAL_SECONDS, _SLOW_SECONDS = 0.0005, 0.3
_TIMEOUT_SECONDS = 1.0


class NotConnected(Exception):
    """No connection was made: nothing was sent. timed_out: whether nobody has refused it."""

    def __init__(self, timed_out: bool) -> None:
        super().__init__("timed out" if timed_out else "refused")
        self.timed_out = timed_out


class Broken(Exception):
    """The connection ended before the response did."""


class Answer(NamedTuple):
    """A response as a whole."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Faults:
    """How likely a call fails in some way, and how likely a message is slow."""

    lost_requests: float = 0.0
    lost_responses: float = 0.0
    cut_responses: float = 0.0
    slow_messages: float = 0.0


@dataclass(eq=False)
class Listener:
    """A process that takes calls at an address.

    refused: called with the call and the error that an application raises.
    """

    app: Any
    loop: asyncio.AbstractEventLoop
    group: Group
    refused: Callable[[str, Exception], object]
    # In the order of their beginnings; all are answered or cancelled before the listener ends.
    tasks: dict["asyncio.Task[None]", None] = field(default_factory=dict)


class Network:
    """The network of a simulation. seed: decides times and faults."""

    def __init__(self, kernel: Kernel, seed: object) -> None:
        self.kernel = kernel
        self.faults = Faults()
        self.counts = Counter[str]()
        self.random = Random(f"{seed} network")
        self._listeners: dict[str, Listener] = {}
        self._calls: dict[Call, None] = {}
        # Pairs of names that do not hear each other, with what waits for them to.
        self._cut: dict[frozenset[str], list[Callable[[], object]]] = {}
        self._numbers = 0

    def listen(self, address: str, listener: Listener) -> None:
        """Take calls at an address, such as a:80."""
        self._listeners[address] = listener

    def unlisten(self, listener: Listener) -> None:
        """Take no more calls for a listener."""
        for address, one in list(self._listeners.items()):
            if one is listener:
                del self._listeners[address]

    def ended(self, group: Group) -> None:
        """Break all calls of a process that has ended, and take none for it."""
        for address, one in list(self._listeners.items()):
            if one.group is group:
                del self._listeners[address]
        for call in [one for one in self._calls if group in (one.client, one.server)]:
            call.break_off()

    def cut(self, one: str, other: str) -> None:
        """Hold back what two processes send to each other."""
        self.kernel.note("cut", one, other)
        self._cut.setdefault(frozenset({one, other}), [])

    def heal(self) -> None:
        """Deliver what was held back, and hold back nothing more."""
        self.kernel.note("heal")
        cut, self._cut = self._cut, {}
        at = self.kernel.now
        for deliver in [one for held in cut.values() for one in held]:
            at += self.random.expovariate(10 / _USUAL_SECONDS)  # in their order
            self.kernel.call_at(at, deliver)

    def is_cut(self, one: str, other: str) -> bool:
        """Return whether two processes do not hear each other."""
        return frozenset({one, other}) in self._cut

    def delay(self) -> float:
        """Return how long a message takes."""
        if self.random.random() < self.faults.slow_messages:
            return self.random.uniform(0, _SLOW_SECONDS)
        return self.random.expovariate(1 / _USUAL_SECONDS)

    def chance(self, of: str) -> bool:
        """Return whether a fault of some kind happens now, and count it."""
        happens: bool = self.random.random() < getattr(self.faults, of)
        if happens:
            self.counts[of] += 1
        return happens

    async def connect(self, host: str, port: int) -> None:
        """Return once a connection could be made. Raises OSError."""
        group = self.kernel.current.group
        assert group is not None
        try:
            await self.reached(group.name, f"{host}:{port}", 1000.0)
        except NotConnected as error:
            raise OSError(str(error)) from None

    async def reached(self, client: str, address: str, seconds: float) -> Listener:
        """Return who listens at an address, after the time of a connection. Raises NotConnected."""
        await asyncio.sleep(self.delay() + self.delay())
        listener = self._listeners.get(address)
        if listener is not None and self.is_cut(client, listener.group.name):
            await asyncio.sleep(seconds)
            raise NotConnected(timed_out=True)
        if listener is None:
            raise NotConnected(timed_out=False)
        return listener

    async def begin(
        self, method: str, url: str, headers: Headers, body: bytes, connect_seconds: float
    ) -> "Call":
        """Connect and send a request. Raises NotConnected."""
        parts = urlsplit(url)
        group = self.kernel.current.group
        assert group is not None
        listener = await self.reached(group.name, parts.netloc, connect_seconds)
        self._numbers += 1
        call = Call(self, self._numbers, group, listener, _scope(method, url, headers), body)
        self._calls[call] = None
        call.send_request()
        return call

    async def call(
        self,
        method: str,
        url: str,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
        seconds: float = 30.0,
    ) -> Answer:
        """Return the response to a request. Raises NotConnected, Broken, TimeoutError."""
        sent = [(name.encode(), value.encode()) for name, value in headers]
        async with asyncio.timeout(seconds):
            call = await self.begin(method, url, sent, body, _TIMEOUT_SECONDS)
            with contextlib.closing(call):
                status, given = await call.head()
                pieces = [piece async for piece in call.pieces()]
        named = {name.decode().lower(): value.decode() for name, value in given}
        return Answer(status, named, b"".join(pieces))

    def deliver(self, one: str, other: str, at: float, what: Callable[[], object]) -> None:
        """Call a function at a time, or later where two processes do not hear each other."""

        def arrive() -> None:
            held = self._cut.get(frozenset({one, other}))
            if held is None:
                what()
            else:
                held.append(arrive)

        self.kernel.call_at(at, arrive)

    def forget(self, call: "Call") -> None:
        """Note that a call has ended."""
        self._calls.pop(call, None)


class Call:
    """A request and its response. Used on the loop of the client, except for what is said so."""

    def __init__(
        self,
        network: Network,
        number: int,
        client: Group,
        listener: Listener,
        scope: dict[str, Any],
        body: bytes,
    ) -> None:
        self.client, self.server = client, listener.group
        self._network, self._number, self._listener = network, number, listener
        self._scope, self._body = scope, body
        self._client_loop = asyncio.get_running_loop()
        # What has come for the client: heads, pieces, an end or a break.
        self._received: deque[Any] = deque()
        self._news = asyncio.Event()
        # What has come for the server; used on its loop.
        self._requested: deque[Message] = deque()
        self._requested_news: asyncio.Event | None = None
        # When the last message of each direction arrives.
        self._to_server_at = self._to_client_at = 0.0
        self._ended = False
        self._cuts = network.chance("cut_responses")
        self._loses = not self._cuts and network.chance("lost_responses")

    # The client's end

    def send_request(self) -> None:
        """Send the request, which may be lost."""
        network = self._network
        network.kernel.note("call", self._number, self._scope["method"], self._scope["path"])
        if network.chance("lost_requests"):
            self._to_client(Broken)
            return
        self._requested.append({"type": "http.request", "body": self._body, "more_body": False})
        self._to_server(self._begin_to_serve)

    async def head(self) -> tuple[int, Headers]:
        """Return the beginning of the response. Raises Broken."""
        head: tuple[int, Headers] = await self._next()
        return head

    async def pieces(self) -> Any:
        """Yield the rest of the response. Raises Broken."""
        while (piece := await self._next()) is not None:
            yield piece

    async def _next(self) -> Any:
        while not self._received:
            self._news.clear()
            await self._news.wait()
        received = self._received.popleft()
        if received is Broken:
            raise Broken
        return received

    def close(self) -> None:
        """Leave: the server learns of it."""
        if not self._ended:
            self._ended = True
            self._network.forget(self)
            self._to_server(self._leave)

    def break_off(self) -> None:
        """Let both ends learn that the other one is gone; on any thread."""
        self._to_client(Broken)
        self._to_server(self._leave)
        self._network.forget(self)

    def _to_server(self, what: Callable[[], object]) -> None:
        network, loop = self._network, self._listener.loop
        at = max(network.kernel.now + network.delay(), self._to_server_at + 1e-6)
        self._to_server_at = at
        names = self.client.name, self.server.name
        network.deliver(*names, at, lambda: _on(loop, self.server, what))

    def _to_client(self, received: Any) -> None:
        network = self._network
        at = max(network.kernel.now + network.delay(), self._to_client_at + 1e-6)
        self._to_client_at = at
        names = self.client.name, self.server.name

        def arrive() -> None:
            self._received.append(received)
            self._news.set()

        network.deliver(*names, at, lambda: _on(self._client_loop, self.client, arrive))

    # The server's end, on its loop

    def _begin_to_serve(self) -> None:
        self._requested_news = asyncio.Event()
        task = self._listener.loop.create_task(self._serve())
        self._listener.tasks[task] = None
        task.add_done_callback(self._listener.tasks.pop)

    def _leave(self) -> None:
        self._requested.append({"type": "http.disconnect"})
        if self._requested_news is not None:
            self._requested_news.set()

    async def _serve(self) -> None:
        try:
            await self._listener.app(self._scope, self._receive, self._send)
        except asyncio.CancelledError:
            self._to_client(Broken)
            raise
        except Exception as error:
            self._listener.refused(f"{self._scope['method']} {self._scope['path']}", error)
            self._to_client(Broken)

    async def _receive(self) -> Message:
        assert self._requested_news is not None
        while not self._requested:
            self._requested_news.clear()
            await self._requested_news.wait()
        if self._requested[0]["type"] == "http.disconnect":  # it stays true
            return self._requested[0]
        return self._requested.popleft()

    async def _send(self, message: Message) -> None:
        network = self._network
        if message["type"] == "http.response.start":
            network.kernel.note("answer", self._number, message["status"])
            self._to_client(
                Broken if self._loses else (message["status"], [*message.get("headers", ())])
            )
        elif message["type"] == "http.response.body":
            body = bytes(message.get("body", b""))
            if self._cuts and body:
                self._to_client(body[: len(body) // 2])
                self._to_client(Broken)
            elif body:
                self._to_client(body)
            if not message.get("more_body"):
                self._to_client(None)
                # As of a server, which says so once the response was sent.
                self._leave()


def _on(loop: asyncio.AbstractEventLoop, group: Group, what: Callable[[], object]) -> None:
    """Call a function on a loop, unless its process is gone."""
    if not group.dead and not loop.is_closed():
        loop.call_soon_threadsafe(what)


def _scope(method: str, url: str, headers: Headers) -> dict[str, Any]:
    parts = urlsplit(url)
    host, _, port = parts.netloc.partition(":")
    given = [(name.lower(), value) for name, value in headers]
    if not any(name == b"host" for name, _ in given):
        given.append((b"host", parts.netloc.encode()))
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "server": (host, int(port or 80)),
        "client": ("10.0.0.9", 1024),
        "scheme": parts.scheme,
        "root_path": "",
        "method": method,
        "path": parts.path,
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "headers": given,
        "state": {},
    }
