"""The requests and responses by which replicas exchange views, as sealed bytes.

Each replica announces a secret on NATS, where only the fleet can read it. A request is sealed with
the secret of the replica that it is sent to. The response is sealed with the same secret and the
nonce of the request. So only the fleet gets views, and nothing from outside is ever decoded.
"""

import hmac
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgpack

from wolfstream.service.cluster.versions import ViewVersion
from wolfstream.service.errors import Unauthenticated, Unreadable

SEAL = "wolfstream-seal"
# Bound on the size of a response. A view larger than half of it is not copied.
MAX_BYTES = 256 << 20
_NONCE_BYTES = 16


class ViewRequest(NamedTuple):
    """A request for newer views of some models."""

    nonce: bytes
    versions: Mapping[str, ViewVersion | None]  # model -> version of the copy; None without one


class NewerView(NamedTuple):
    """A newer view of a model."""

    number: int  # of the model
    spec: dict[str, Any]
    newer: bytes  # the result of `Versions.newer`


class ViewResponse(NamedTuple):
    """A replica's response. The copies of requested models that it does not name are the newest.

    Attributes:
        lag_seconds: seconds since the replica itself last heard its fleet, and since the logs of
            these models have last shown that it leads them.
        newer: model -> newer view.
        unconfirmed: models of which the replica does not know the newest view, or cannot send it
            yet: it does not lead the model, is taking it over, or has not written the newer view.
        refused: model -> why the replica cannot serve its view.
    """

    lag_seconds: float
    newer: Mapping[str, NewerView]
    unconfirmed: list[str]
    refused: Mapping[str, str]


def seal_request(
    secret: str, versions: Mapping[str, ViewVersion | None]
) -> tuple[ViewRequest, bytes, str]:
    """Return (request, its bytes, their seal).

    Args:
        secret: the secret of the replica that the request is sent to.
        versions: see `ViewRequest`.
    """
    request = ViewRequest(secrets.token_bytes(_NONCE_BYTES), versions)
    content: bytes = msgpack.packb(request)
    return request, content, _seal(secret, b"question", content)


def read_request(secret: str, content: bytes, seal: str) -> ViewRequest:
    """Return the request in sealed bytes. Raises Unauthenticated, Unreadable."""
    if not hmac.compare_digest(_seal(secret, b"question", content).encode(), seal.encode()):
        raise Unauthenticated("only the replicas of this fleet may ask for views")
    try:
        nonce, plain = msgpack.unpackb(content)
        versions = {
            str(name): None if version is None else ViewVersion(str(version[0]), int(version[1]))
            for name, version in plain.items()
        }
        return ViewRequest(bytes(nonce), versions)
    except (ValueError, TypeError, AttributeError, IndexError, msgpack.UnpackException):
        raise Unreadable("the body is not a request of this version") from None


def seal_response(secret: str, request: ViewRequest, response: ViewResponse) -> tuple[bytes, str]:
    """Return the bytes of a response, and their seal."""
    content: bytes = msgpack.packb(response)
    return content, _seal(secret, request.nonce, content)


def read_response(secret: str, request: ViewRequest, content: bytes, seal: str) -> ViewResponse:
    """Return the response in sealed bytes. Raises Unauthenticated, Unreadable."""
    if not hmac.compare_digest(_seal(secret, request.nonce, content).encode(), seal.encode()):
        raise Unauthenticated("the response is not from the replica that was asked")
    try:
        lag_seconds, newer, unconfirmed, refused = msgpack.unpackb(content)
        views = {name: NewerView(*fields) for name, fields in newer.items()}
        return ViewResponse(float(lag_seconds), views, list(unconfirmed), dict(refused))
    except (ValueError, TypeError, AttributeError, msgpack.UnpackException):
        raise Unreadable("the body is not a response of this version") from None


def _seal(secret: str, purpose: bytes, content: bytes) -> str:
    mac = hmac.new(secret.encode(), purpose, "sha256")
    mac.update(content)
    return mac.hexdigest()
