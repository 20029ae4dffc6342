"""Requests as bytes, and what the bytes of an answer mean."""

import ipaddress
import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, urlsplit

import httpx
import msgpack
import numpy as np

from service.client_errors import AnswerLost, ClientError, Refused, unreachable
from service.client_steps import Reply, Request

MSGPACK = "application/vnd.msgpack"
ACCEPTED = f"{MSGPACK}, application/problem+json"
IDEMPOTENCY_KEY = "idempotency-key"
REPLAYED = "idempotency-replayed"
CONNECT_SECONDS = 10.0
# What clients are made with unless told otherwise.
ANSWER_SECONDS = 60.0
RETRY_SECONDS = 60.0
# Shorter than any server's: a connection that the server closes while a request is on its way
# leaves open whether the request was applied.
KEEPALIVE_SECONDS = 2.0
# The calls that bring samples, by the names of the heads that learn from them.
LEARNING_CALLS = {
    "samples": "samples",
    "working_set": "samples",
    "semiparametric": "samples",
    "asset": "asset",
}
Verify: TypeAlias = bool | str | Path | ssl.SSLContext


def model_path(name: str, *more: str) -> str:
    """The path of a model, or of something below it."""
    return "/".join(["/v1/models", quote(name, safe=""), *more])


def learning_call(head: str) -> str:
    """The call that brings a head its samples. Raises ValueError."""
    if head not in LEARNING_CALLS:
        raise ValueError(f"head must be one of {', '.join(LEARNING_CALLS)}, not {head!r}")
    return LEARNING_CALLS[head]


def packed(data: Any) -> bytes:
    """MessagePack of plain data, arrays and numpy's scalars."""
    body: bytes = msgpack.packb(data, default=_plain_of_numpy)
    return body


def _plain_of_numpy(value: Any) -> Any:
    """An array as its little-endian bytes, which MessagePack carries; a scalar as Python's."""
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


def headers_of(request: Request) -> dict[str, str]:
    """The headers of a request, beside those of all."""
    media_type = {} if request.body is None else {"content-type": MSGPACK}
    return {**media_type, **request.headers}


def answer_to(request: Request, reply: Reply) -> dict[str, Any]:
    """What a reply says; for one that the server had kept, with "replayed". Raises ClientError."""
    media_type = reply.headers.get("content-type", "").partition(";")[0]
    success = 200 <= reply.status < 300
    if not reply.content:
        answer: dict[str, Any] | None = {}
    elif media_type == MSGPACK:
        answer = plain(msgpack.unpackb, reply.content)
    elif media_type.endswith("json"):
        answer = plain(json.loads, reply.content)
    elif success:
        raise ClientError(f"{request.path} answered with {media_type}: is this wolfstream?")
    else:
        answer = None
    if success:
        if answer is None:
            raise AnswerLost(f"the answer to {request.path} cannot be read")
        return {**answer, "replayed": True} if REPLAYED in reply.headers else answer
    problem = answer or {"title": reply.reason}
    seconds = reply.headers.get("retry-after", "")
    if seconds.isascii() and seconds.isdecimal():
        problem["retry_after_seconds"] = float(seconds)
    raise Refused(reply.status, problem)


def plain(decode: Callable[[Any], Any], body: bytes | str) -> dict[str, Any] | None:
    """A decoded object; None if it is anything else."""
    try:
        data = decode(body)
    except (ValueError, msgpack.UnpackException, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def failed(url: str, error: httpx.RequestError) -> ClientError:
    """What httpx's error means for the request."""
    not_sent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.PoolTimeout)
    if isinstance(error, not_sent):
        return unreachable(url, error)
    return AnswerLost(f"{url} did not answer: {error or type(error).__name__}")


def connection_options(
    url: str, key: str | None, timeout: float, context: ssl.SSLContext | bool
) -> dict[str, Any]:
    """What httpx's clients are made with."""
    return {
        "base_url": url,
        "headers": {"accept": ACCEPTED, **authorization(key)},
        "timeout": httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
        "limits": httpx.Limits(keepalive_expiry=KEEPALIVE_SECONDS),
        "trust_env": not is_loopback(url),
        "verify": context,
    }


def trusted(url: str, verify: Verify) -> ssl.SSLContext | bool:
    """The TLS context of https and wss; False where the URL asks for none."""
    if urlsplit(url).scheme != "https":
        return False
    if isinstance(verify, ssl.SSLContext):
        return verify
    if isinstance(verify, bool):
        return httpx.create_ssl_context(verify=verify)
    if Path(verify).is_dir():
        return ssl.create_default_context(capath=str(verify))
    return ssl.create_default_context(cafile=str(verify))


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


def is_loopback(url: str) -> bool:
    """Whether a URL means this machine: a proxy would take it to be the proxy's machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
