"""What replicas ask each other for, and what they tell: views, as sealed bytes.

A replica says on NATS, where only the fleet is, by which word it knows its fellows. A question is
sealed with the word of the one that is asked, and so is the answer, together with the question's
own number. So nobody else is given a view, and what anybody else has written is never decoded.
"""

import hmac
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgpack

from service.errors import Unauthenticated, Unreadable
from service.views.versions import Position

SEAL = "wolfstream-seal"
# Of one answer; a view that alone has more is not followed.
MOST_BYTES = 256 << 20
_NONCE_BYTES = 16


class ViewQuestion(NamedTuple):
    """The models whose views are asked for, with the versions that are held; None for none."""

    nonce: bytes
    held: Mapping[str, Position | None]


class NewerView(NamedTuple):
    """What a replica gives of a model. newer: as of `Versions.newer`."""

    number: int
    spec: dict[str, Any]
    newer: bytes


class ViewAnswer(NamedTuple):
    """What a replica tells of the models that it was asked for.

    lag_seconds: for how long it has known nothing of the fleet itself. newer: the views that are
    newer than those held. elsewhere: models that it does not lead. refused: those that it cannot
    give, with the reason. The views of all others are held already.
    """

    lag_seconds: float
    newer: Mapping[str, NewerView]
    elsewhere: list[str]
    refused: Mapping[str, str]


def ask(word: str, held: Mapping[str, Position | None]) -> tuple[ViewQuestion, bytes, str]:
    """A question for the replica with a word, its bytes and their seal."""
    question = ViewQuestion(secrets.token_bytes(_NONCE_BYTES), held)
    content: bytes = msgpack.packb(question)
    return question, content, _seal(word, b"question", content)


def read_question(word: str, content: bytes, seal: str) -> ViewQuestion:
    """The question in sealed bytes. Raises Unauthenticated, Unreadable."""
    if not hmac.compare_digest(_seal(word, b"question", content).encode(), seal.encode()):
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


def tell(word: str, question: ViewQuestion, answer: ViewAnswer) -> tuple[bytes, str]:
    """The bytes of an answer, and their seal."""
    content: bytes = msgpack.packb(answer)
    return content, _seal(word, question.nonce, content)


def read_answer(word: str, question: ViewQuestion, content: bytes, seal: str) -> ViewAnswer:
    """The answer to a question in sealed bytes. Raises Unauthenticated, Unreadable."""
    if not hmac.compare_digest(_seal(word, question.nonce, content).encode(), seal.encode()):
        raise Unauthenticated("the answer is not of the replica that was asked")
    try:
        lag_seconds, newer, elsewhere, refused = msgpack.unpackb(content)
        views = {name: NewerView(*one) for name, one in newer.items()}
        return ViewAnswer(float(lag_seconds), views, list(elsewhere), dict(refused))
    except (ValueError, TypeError, AttributeError, msgpack.UnpackException):
        raise Unreadable("it is no answer of this version") from None


def _seal(word: str, of: bytes, content: bytes) -> str:
    made = hmac.new(word.encode(), of, "sha256")
    made.update(content)
    return made.hexdigest()
