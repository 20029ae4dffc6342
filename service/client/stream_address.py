"""The address of a model's websocket stream, and the errors of its connection."""

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
    error_text,
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
    tls_context,
)

SUBPROTOCOL = Subprotocol("wolfstream.v1.msgpack")
_CLOSE_SECONDS = 2.0


class Address(NamedTuple):
    """The URL of a stream, and how to connect to it."""

    url: str
    options: dict[str, Any]  # arguments of websockets' clients, blocking and asyncio
    timeout: float  # seconds without a message after which the connection counts as lost


def stream_address(url: str, model: str, key: str | None, timeout: float, verify: Any) -> Address:
    """Return the address of a model's stream. Raises ClientError; see `client.sync.Client`."""
    url = check_url(url)
    context = tls_context(url, verify)
    options = {
        "subprotocols": [SUBPROTOCOL],
        "additional_headers": authorization(key),
        "compression": None,
        "open_timeout": min(timeout, CONNECT_SECONDS),
        "close_timeout": _CLOSE_SECONDS,
        "proxy": None if is_loopback(url) else True,
        # Read without a bound: a server that cannot send responses would stop reading requests.
        "max_queue": None,
        "max_size": None,
        **({"ssl": context} if context else {}),
    }
    stream_url = f"ws{url.removeprefix('http')}{call_path('stream', model)}"
    return Address(stream_url, options, timeout)


def opening_error(url: str, error: Exception) -> ClientError:
    """Return the client's error for a stream that could not be opened."""
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


def lost_connection(url: str, error: ConnectionClosed) -> AnswerLost:
    """Return the client's error for a stream that ended while requests had no response."""
    if error.rcvd and error.rcvd.code == CloseCode.MESSAGE_TOO_BIG:
        too_large = TooLargeMessage(f"{url} closed the stream: {error_text(error)}")
        too_large.add_note("a smaller --batch makes smaller messages")
        return too_large
    return AnswerLost(f"{url} closed the stream: {error_text(error)}")


def check_subprotocol(url: str, subprotocol: str | None) -> None:
    """Raise Unsuitable unless the server has chosen this client's subprotocol."""
    if subprotocol != SUBPROTOCOL:
        raise Unsuitable(f"{url} does not speak {SUBPROTOCOL}: is this wolfstream?")
