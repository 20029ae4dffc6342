"""Where a model's websocket stream is, how to connect to it, and what can go wrong."""

from typing import Any, NamedTuple

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import CloseCode
from websockets.typing import Subprotocol

from wolfstream.service.client.errors import (
    AnswerLost,
    ClientError,
    Refused,
    TooLargeMessage,
    Unsuitable,
    reason_of,
    unreachable,
)
from wolfstream.service.client.steps import Reply, Request
from wolfstream.service.client.wire import (
    CONNECT_SECONDS,
    authorization,
    call_path,
    check_url,
    decode_reply,
    is_loopback,
    trusted,
)

SUBPROTOCOL = Subprotocol("wolfstream.v1.msgpack")
_CLOSE_SECONDS = 2.0


class Address(NamedTuple):
    """The URL of a stream, and how to connect to it.

    options: the arguments of websockets' clients, blocking and asyncio.
    timeout: seconds without a message after which the connection counts as lost.
    """

    url: str
    options: dict[str, Any]
    timeout: float


def address(url: str, model: str, key: str | None, timeout: float, verify: Any) -> Address:
    """Return the address of a model's stream. Raises ClientError."""
    url = check_url(url)
    context = trusted(url, verify)
    options = {
        "subprotocols": [SUBPROTOCOL],
        "additional_headers": authorization(key),
        "compression": None,
        "open_timeout": min(timeout, CONNECT_SECONDS),
        "close_timeout": _CLOSE_SECONDS,
        "proxy": None if is_loopback(url) else True,
        # Read without a bound: a server that cannot send its responses stops reading, too.
        "max_queue": None,
        "max_size": None,
        **({"ssl": context} if context else {}),
    }
    at = f"ws{url.removeprefix('http')}{call_path('stream', model)}"
    return Address(at, options, timeout)


def not_opened(url: str, error: Exception) -> ClientError:
    """Return the error that says why a stream could not be opened."""
    if not isinstance(error, InvalidStatus):
        return unreachable(url, error)
    response = error.response
    body = bytes(response.body or b"")
    reply = Reply(response.status_code, response.reason_phrase, response.headers, body)
    try:
        decode_reply(Request("GET", url), reply)
    except Refused as refused:
        return refused
    except ClientError:
        pass
    return Unsuitable(f"{url} responded with {response.status_code}: is this wolfstream?")


def lost(url: str, error: ConnectionClosed) -> AnswerLost:
    """Return the error for requests whose stream ended before their responses came."""
    if error.rcvd and error.rcvd.code == CloseCode.MESSAGE_TOO_BIG:
        too_large = TooLargeMessage(f"{url} closed the stream: {reason_of(error)}")
        too_large.add_note("a smaller --batch makes smaller messages")
        return too_large
    return AnswerLost(f"{url} closed the stream: {reason_of(error)}")


def check_subprotocol(url: str, spoken: str | None) -> None:
    """Raise Unsuitable if the server speaks another subprotocol."""
    if spoken != SUBPROTOCOL:
        raise Unsuitable(f"{url} does not speak {SUBPROTOCOL}: is this wolfstream?")
