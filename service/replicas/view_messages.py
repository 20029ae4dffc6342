"""The questions and answers by which replicas exchange views, as sealed bytes.

Each replica publishes a secret on NATS, which only the fleet can read. A question is sealed with
the secret of the replica that it is sent to, and so is the answer, together with the
question's own number. So only the fleet gets views, and nothing from elsewhere is ever decoded.
"""

import hmac
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgpack

from wolfstream.service.errors import Unauthenticated, Unreadable
from wolfstream.service.views.versions import Position

SEAL = "wolfstream-seal"
# The bound on an answer; a single view that is larger is not followed.
MOST_BYTES = 256 << 20
_NONCE_BYTES = 16


class ViewQuestion(NamedTuple):
    """The models whose views are wanted, with the held versions; None if none is held."""

    nonce: bytes
    held: Mapping[str, Position | None]


class NewerView(NamedTuple):
    """A newer view of a model. newer: the result of `Versions.newer`."""

    number: int
    spec: dict[str, Any]
    newer: bytes


class ViewAnswer(NamedTuple):
    """A replica's answer to a question.

    lag_seconds: the seconds since it last heard of the fleet itself. newer: views that are newer
    than the held ones. unconfirmed: models whose newest view it does not know or cannot give yet:
    it does not lead them, or takes them over, or has a newer one that is not written. refused:
    models whose views it cannot serve, with the reason. All other held views are the newest.
    """

    lag_seconds: float
    newer: Mapping[str, NewerView]
    unconfirmed: list[str]
    refused: Mapping[str, str]


def sealed_question(
    secret: str, held: Mapping[str, Position | None]
) -> tuple[ViewQuestion, bytes, str]:
    """Return a question for the replica with this secret, its bytes and their seal."""
    question = ViewQuestion(secrets.token_bytes(_NONCE_BYTES), held)
    content: bytes = msgpack.packb(question)
    return question, content, _seal(secret, b"question", content)


def read_question(secret: str, content: bytes, seal: str) -> ViewQuestion:
    """Return the question in sealed bytes. Raises Unauthenticated, Unreadable."""
    if not hmac.compare_digest(_seal(secret, b"question", content).encode(), seal.encode()):
        raise Unauthenticated("only the replicas of this fleet may ask for views")
    try:
        nonce, held = msgpack.unpackb(content)
        versions = {
            str(name): None if one is None else Position(str(one[0]), int(one[1]))
            for name, one in held.items()
        }
        return ViewQuestion(bytes(nonce), versions)
    except (ValueError, TypeError, AttributeError, IndexError, msgpack.UnpackException):
        raise Unreadable("it is no question of this version") from None


def sealed_answer(secret: str, question: ViewQuestion, answer: ViewAnswer) -> tuple[bytes, str]:
    """Return the bytes of an answer, and their seal."""
    content: bytes = msgpack.packb(answer)
    return content, _seal(secret, question.nonce, content)


def read_answer(secret: str, question: ViewQuestion, content: bytes, seal: str) -> ViewAnswer:
    """Return the answer in sealed bytes. Raises Unauthenticated, Unreadable."""
    if not hmac.compare_digest(_seal(secret, question.nonce, content).encode(), seal.encode()):
        raise Unauthenticated("the answer is not of the replica that was asked")
    try:
        lag_seconds, newer, unconfirmed, refused = msgpack.unpackb(content)
        views = {name: NewerView(*one) for name, one in newer.items()}
        return ViewAnswer(float(lag_seconds), views, list(unconfirmed), dict(refused))
    except (ValueError, TypeError, AttributeError, msgpack.UnpackException):
        raise Unreadable("it is no answer of this version") from None


def _seal(secret: str, of: bytes, content: bytes) -> str:
    made = hmac.new(secret.encode(), of, "sha256")
    made.update(content)
    return made.hexdigest()
