"""A client of a running server, for one model, over HTTP; `client_stream` is the websocket's.

ClientError
├── Unreachable      no connection: nothing was sent
├── Refused          the server answered with a problem: nothing of the request was applied
└── AnswerLost       the request was sent, the answer did not come: it may have been learned

Both connections take samples by `send`, which may return before they are learned, and give the
answers by `receive`; at most `window` requests should be without an answer. Both wait and try
again, as long as the server asks for it, when it has no room: the only case in which sending
twice cannot learn twice.
"""

import ipaddress
import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias
from urllib.parse import quote, urlsplit

import httpx
import msgpack
import numpy as np
from numpy.typing import NDArray

MSGPACK = "application/vnd.msgpack"

# An array of rows, or rows of named numbers.
Rows: TypeAlias = NDArray[np.float64] | list[Mapping[str, float]]

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 120.0
_PATIENCE_SECONDS = 60.0
_PATHS = {"working_set": "/samples", "asset": "/asset", "semiparametric": "/samples"}


class ClientError(Exception):
    """What went wrong between this client and the server, in one line."""


class Unreachable(ClientError):
    """There is no connection; nothing was sent."""


class AnswerLost(ClientError):
    """A request was sent and no answer came: whether it was applied is not known."""


class Refused(ClientError):
    """The server refused a request; nothing of it was applied."""

    def __init__(self, status: int, problem: dict[str, Any], ticket: int | None = None) -> None:
        self.status = status
        self.problem = problem
        self.ticket = ticket
        super().__init__(_describe(status, problem))

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the server wants to be asked again, if it does."""
        seconds = self.problem.get("retry_after_seconds")
        return None if seconds is None else max(0.05, float(seconds))


def _describe(status: int, problem: dict[str, Any]) -> str:
    text = f"{status} {problem.get('title', 'refused')}"
    if problem.get("detail"):
        text += f": {problem['detail']}"
    wrong = problem.get("errors") or []
    places = [f"{e.get('pointer', '')} {e.get('detail', '')}".strip() for e in wrong[:3]]
    if places:
        text += f" ({'; '.join(places)}{'; ...' if len(wrong) > 3 else ''})"
    return " ".join(text.split())


class Connection(Protocol):
    """What a stream of samples needs of a transport."""

    window: int

    @property
    def unanswered(self) -> int:
        """Requests whose answers `receive` will still give."""

    def send(self, head: str, X: Rows, y: list[Any]) -> int:
        """Send samples for a head to learn; the number that their answer will carry."""

    def receive(self) -> tuple[int, dict[str, Any]]:
        """The next answer and the number of its request."""


class HttpConnection:
    """A model behind its HTTP interface, one request after another."""

    window = 1

    def __init__(self, url: str, model: str, key: str | None = None) -> None:
        self.url = check_url(url)
        self.path = f"/v1/models/{quote(model, safe='')}"
        self._answers: deque[tuple[int, dict[str, Any]]] = deque()
        self._sent = 0
        self._http = httpx.Client(
            base_url=self.url,
            headers={"accept": f"{MSGPACK}, application/problem+json", **authorization(key)},
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
            # Shorter than any server's: a connection that the server closes while a request is
            # on its way would leave open whether its samples were learned.
            limits=httpx.Limits(keepalive_expiry=2.0),
            trust_env=not is_loopback(self.url),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._http.close()

    def describe(self) -> dict[str, Any]:
        """The model's description; raises Refused with status 404 if there is none."""
        return self._call("GET", self.path)

    def create(self, spec: Any) -> dict[str, Any]:
        """Create the model, or find it with the same spec; its description."""
        return self._call("PUT", self.path, spec)

    def predict(self, X: Rows, head: str) -> dict[str, Any]:
        """What a head predicts for the rows."""
        return self._call("POST", f"{self.path}/predict", {"x": rows_to_send(X)}, head=head)

    @property
    def unanswered(self) -> int:
        """Requests whose answers `receive` will still give."""
        return len(self._answers)

    def send(self, head: str, X: Rows, y: list[Any]) -> int:
        """Send samples for a head to learn, and wait until they are."""
        self._sent += 1
        answer = self._call("POST", self.path + _PATHS[head], {"x": rows_to_send(X), "y": y})
        self._answers.append((self._sent, answer))
        return self._sent

    def receive(self) -> tuple[int, dict[str, Any]]:
        """The next answer and the number of its request."""
        return self._answers.popleft()

    def _call(self, method: str, path: str, body: Any = None, **query: str) -> dict[str, Any]:
        content = None if body is None else msgpack.packb(body)
        patience = Patience()
        while True:
            try:
                return self._call_once(method, path, content, query)
            except Refused as refused:
                patience.wait(refused)

    def _call_once(
        self, method: str, path: str, content: bytes | None, query: dict[str, str]
    ) -> dict[str, Any]:
        headers = {"content-type": MSGPACK} if content is not None else {}
        try:
            response = self._http.request(
                method, path, content=content, params=query, headers=headers
            )
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            raise unreachable(self.url, error) from None
        except httpx.RequestError as error:
            raise AnswerLost(f"{self.url} did not answer: {reason_of(error)}") from None
        answer = _decode(response)
        if response.is_success:
            return answer
        seconds = response.headers.get("retry-after", "")
        if response.status_code in (429, 503) and seconds.isdecimal():
            answer["retry_after_seconds"] = float(seconds)
        raise Refused(response.status_code, answer)


class Patience:
    """Waits as long as the server asks for, and gives up after a minute without success."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def wait(self, refused: Refused) -> None:
        """Sleep until the server wants to be asked again; raises `refused` to give up."""
        seconds = refused.retry_after
        waited = time.monotonic() - self._since
        if seconds is None or waited + seconds > _PATIENCE_SECONDS:
            raise refused
        time.sleep(seconds)


def check_url(url: str) -> str:
    """The URL without a slash at its end; raises ClientError if it cannot be a server's."""
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        parts = httpx.URL()
    if parts.scheme not in ("http", "https") or not parts.host:
        raise ClientError(f"{url!r} is not the URL of a server, such as http://127.0.0.1:8000")
    return url.rstrip("/")


def authorization(key: str | None) -> dict[str, str]:
    """The header that a server with keys asks for; none without a key."""
    return {} if key is None else {"authorization": f"Bearer {key}"}


def rows_to_send(X: Rows) -> Any:
    """An array as its little-endian bytes, which MessagePack carries; named rows as they are."""
    if isinstance(X, list):
        return X
    data = np.ascontiguousarray(X, "<f8")
    return {"dtype": "<f8", "shape": list(data.shape), "data": data.tobytes()}


def _decode(response: httpx.Response) -> dict[str, Any]:
    media_type = response.headers.get("content-type", "").partition(";")[0]
    if media_type == MSGPACK:
        return plain(msgpack.unpackb, response.content)
    if media_type.endswith("json"):
        return plain(json.loads, response.content)
    if response.is_success:
        raise ClientError(f"{response.url} answered with {media_type}: is this wolfstream?")
    return {"title": response.reason_phrase}


def plain(decode: Callable[[Any], Any], body: bytes | str) -> dict[str, Any]:
    """A decoded object; an empty one if it is anything else."""
    try:
        data = decode(body)
    except ValueError:
        data = None
    return data if isinstance(data, dict) else {}


def unreachable(url: str, error: Exception) -> Unreachable:
    """The error for a connection that could not be made."""
    return Unreachable(
        f"cannot reach {url}: {reason_of(error)}; is the server running (`wolfstream serve`)?"
    )


def reason_of(error: Exception) -> str:
    """What an error says, or at least its name."""
    return str(error) or type(error).__name__


def is_loopback(url: str) -> bool:
    """Whether a URL means this machine: a proxy would take it to be the proxy's machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
