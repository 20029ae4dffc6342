"""Requests as bytes, responses from bytes, and the options of connections."""

import ipaddress
import json
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, urlsplit

import httpx
import msgpack
import numpy as np

from wolfstream.service.calls.table import BY_NAME
from wolfstream.service.client.errors import AnswerLost, ClientError, Refused, unreachable
from wolfstream.service.client.steps import Reply, Request

MSGPACK = "application/vnd.msgpack"
OCTETS = "application/octet-stream"
EVENT_STREAM = "text/event-stream, application/problem+json"
ACCEPTED = f"{MSGPACK}, application/problem+json"
IDEMPOTENCY_KEY = "idempotency-key"
REPLAYED = "idempotency-replayed"
CONNECT_SECONDS = 10.0
# Without TLS the operating system accepts connections, so even a busy server does at once.
_PLAIN_CONNECT_SECONDS = 2.0
# Default of the clients' `timeout`.
ANSWER_SECONDS = 60.0
# Shorter than any server's. If a server closed an idle connection just as a request is sent, the
# client could not know whether the request was applied.
KEEPALIVE_SECONDS = 2.0
# Characters of one part of a host's name (RFC 1035).
_MAX_LABEL = 63
# head -> the call that takes its samples.
LEARNING_CALLS = {
    "samples": "learn",
    "working_set": "learn",
    "semiparametric": "learn",
    "adaptive": "learn",
    "asset": "learn_asset",
    "novelty": "learn",
}
Verify: TypeAlias = bool | str | Path | ssl.SSLContext


def call_path(call: str, model: str = "", job: str = "") -> str:
    """Return the path of a call, for a model and a job where it has them."""
    return BY_NAME[call].path.format(name=quote(model, safe=""), job=quote(job, safe=""))


def request_of(
    call: str,
    model: str = "",
    body: bytes | None = None,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    job: str = "",
) -> Request:
    """Return the request of a call. model, job: see `call_path`."""
    method, repeatable = BY_NAME[call].method, BY_NAME[call].repeat != "never"
    path = call_path(call, model, job)
    return Request(method, path, body, query or {}, headers or {}, repeatable)


def learning_call(head: str) -> str:
    """Return the call that takes the samples of a head. Raises ValueError."""
    if head not in LEARNING_CALLS:
        raise ValueError(f"head must be one of {', '.join(LEARNING_CALLS)}, not {head!r}")
    return LEARNING_CALLS[head]


def pack(data: Any) -> bytes:
    """Encode plain data, arrays and numpy's scalars as MessagePack."""
    body: bytes = msgpack.packb(data, default=_plain_of_numpy)
    return body


def _plain_of_numpy(value: Any) -> Any:
    """Return an array as its little-endian bytes, and a scalar as a number of Python."""
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{type(value).__name__} cannot be sent: {value!r:.60}")
    kind, itemsize = value.dtype.kind, value.dtype.itemsize
    if kind not in "fi":
        return value.tolist()
    name = "<f4" if kind == "f" and itemsize == 4 else f"<{kind}8"
    data = np.ascontiguousarray(value, name)
    return {"dtype": name, "shape": list(data.shape), "data": data.tobytes()}


def request_headers(request: Request) -> dict[str, str]:
    """Return the headers of a request, besides those that all requests have."""
    media_type = {} if request.body is None else {"content-type": MSGPACK}
    return {**media_type, **request.headers}


def decode_reply(request: Request, reply: Reply) -> dict[str, Any]:
    """Decode a reply; "replayed" marks one that the server had kept. Raises ClientError."""
    media_type = reply.headers.get("content-type", "").partition(";")[0]
    success = 200 <= reply.status < 300
    if not reply.content:
        response: dict[str, Any] | None = {}
    elif media_type == MSGPACK:
        response = plain(msgpack.unpackb, reply.content)
    elif media_type.endswith("json"):
        response = plain(json.loads, reply.content)
    elif success:
        raise ClientError(f"{request.path} responded with {media_type}: is this wolfstream?")
    else:
        response = None
    if success:
        if response is None:
            raise AnswerLost(f"the response to {request.path} cannot be read")
        return {**response, "replayed": True} if REPLAYED in reply.headers else response
    problem = response or {"title": reply.reason}
    seconds = reply.headers.get("retry-after", "")
    if seconds.isascii() and seconds.isdecimal():
        problem["retry_after_seconds"] = float(seconds)
    raise Refused(reply.status, problem)


def decode_octets(request: Request, reply: Reply) -> bytes:
    """Return the bytes of a reply that has no other form. Raises ClientError."""
    media_type = reply.headers.get("content-type", "").partition(";")[0]
    if reply.status == 200 and media_type == OCTETS:
        return reply.content
    decode_reply(request, reply)
    raise ClientError(f"{request.path} responded with {media_type}: is this wolfstream?")


def plain(decode: Callable[[Any], Any], body: bytes | str) -> dict[str, Any] | None:
    """Decode an object; return None for anything else."""
    try:
        data = decode(body)
    except (ValueError, msgpack.UnpackException, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def request_error(url: str, error: httpx.RequestError) -> ClientError:
    """Return the client's error for one of httpx."""
    not_sent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.PoolTimeout)
    if isinstance(error, not_sent):
        return unreachable(url, error)
    return AnswerLost(f"{url} did not respond: {error or type(error).__name__}")


def connection_options(
    url: str, key: str | None, timeout: float, context: ssl.SSLContext | bool
) -> dict[str, Any]:
    """Return the arguments of httpx's clients."""
    connect = _PLAIN_CONNECT_SECONDS if context is False else CONNECT_SECONDS
    return {
        "base_url": url,
        "headers": {"accept": ACCEPTED, **authorization(key)},
        "timeout": httpx.Timeout(timeout, connect=min(timeout, connect)),
        "limits": httpx.Limits(keepalive_expiry=KEEPALIVE_SECONDS),
        "trust_env": not is_loopback(url),
        "verify": context,
    }


def tls_context(url: str, verify: Verify) -> ssl.SSLContext | bool:
    """Return the TLS context for https and wss; False for a URL without TLS.

    Args:
        url: of the server, with https for a websocket too.
        verify: see `client.sync.Client`.

    Raises OSError for certificates that cannot be read.
    """
    if urlsplit(url).scheme != "https":
        return False
    if isinstance(verify, ssl.SSLContext):
        return verify
    if isinstance(verify, bool):
        return httpx.create_ssl_context(verify=verify)
    if Path(verify).is_dir():
        return ssl.create_default_context(capath=str(verify))
    Path(verify).open("rb").close()  # `ssl` does not name a file that it cannot read
    return ssl.create_default_context(cafile=str(verify))


def check_url(url: str) -> str:
    """Return the URL with its scheme in lower case, without a final slash.

    Raises ClientError if it cannot be a server's.
    """
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        parts = httpx.URL()
    labels = parts.host.removesuffix(".").split(".")
    is_host = all(0 < len(label) <= _MAX_LABEL for label in labels)  # or resolving it would fail
    if parts.scheme not in ("http", "https") or not is_host:
        raise ClientError(f"{url!r} is not the URL of a server, such as http://127.0.0.1:8000")
    return f"{parts.scheme}{url.rstrip('/')[len(parts.scheme) :]}"


def authorization(key: str | None) -> dict[str, str]:
    """Return the header that carries an API key; nothing without a key."""
    return {} if key is None else {"authorization": f"Bearer {key}"}


def is_loopback(url: str) -> bool:
    """Return whether a URL means this machine, which for a proxy would be the proxy's own."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
