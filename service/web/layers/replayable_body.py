"""Stores the body of a request, so that the request can be sent again."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wolfstream.service.errors import TooLarge

# The status of a response by a process that does not lead the model of the call.
NOT_LEADER = 421


class ReplayableBody:
    """A body that can be received several times, and stays in memory until the request is answered.

    Args:
        receive: the ASGI server's function.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._messages = list[Message]()
        self._next = 0  # index of the message that `receive` returns next

    def rewind(self) -> None:
        """Receive the body again from its beginning."""
        self._next = 0

    async def receive(self) -> Message:
        """Return the next message, like the function of the ASGI server."""
        if self._next == len(self._messages):
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            self._messages.append(message)
        self._next += 1
        return self._messages[self._next - 1]

    async def read(self, max_bytes: int) -> bytes:
        """Return the whole body. Raises TooLarge."""
        chunks, size = list[bytes](), 0
        while True:
            message = await self.receive()
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > max_bytes:
                raise TooLarge(f"a body may have at most {max_bytes} bytes")
            if not message.get("more_body"):
                return b"".join(chunks)


async def try_answer(app: ASGIApp, scope: Scope, body: ReplayableBody, send: Send) -> bool:
    """Let an application answer; return False if it does not lead the model.

    In that case, nothing was sent, and another process or replica has to answer.
    """
    is_leader = True

    async def send_if_leader(message: Message) -> None:
        nonlocal is_leader
        if message["type"] == "http.response.start":
            is_leader = message["status"] != NOT_LEADER
        if is_leader:
            await send(message)

    await app(scope, body.receive, send_if_leader)
    return is_leader
