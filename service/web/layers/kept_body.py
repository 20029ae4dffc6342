"""A request's body, for those who may have to send the request once more."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wolfstream.service.errors import TooLarge

# The status by which a process says that it does not learn the model of a call.
NOT_LEADER = 421


class KeptBody:
    """A body that can be read again: it is kept until the request is answered."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._kept = list[Message]()
        self._next = 0

    def begin_again(self) -> None:
        """Let what was received be received again."""
        self._next = 0

    async def receive(self) -> Message:
        """Return the next message, as of the ASGI server."""
        if self._next == len(self._kept):
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            self._kept.append(message)
        self._next += 1
        return self._kept[self._next - 1]

    async def read(self, most_bytes: int) -> bytes:
        """Return all of it. Raises TooLarge."""
        pieces, size = list[bytes](), 0
        while True:
            message = await self.receive()
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > most_bytes:
                raise TooLarge(f"a body may have {most_bytes} bytes")
            if not message.get("more_body"):
                return b"".join(pieces)


async def answered(app: ASGIApp, scope: Scope, body: KeptBody, send: Send) -> bool:
    """Return whether an application has answered; if not, another process or replica has to."""
    another = False

    async def send_unless_another_leads(message: Message) -> None:
        nonlocal another
        if message["type"] == "http.response.start":
            another = message["status"] == NOT_LEADER
        if not another:
            await send(message)

    await app(scope, body.receive, send_unless_another_leads)
    return not another
