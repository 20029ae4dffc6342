"""Duplicates among a group's requests: recognised by idempotency key, answered as the first was."""

from typing import Any, NamedTuple

import msgpack

from wolfstream.service.engine.idempotency_keys import IdempotencyKeys
from wolfstream.service.engine.queue_items import Waiter
from wolfstream.service.errors import AnswerMissing, KeyReused, Refusal, StorageFailed
from wolfstream.service.storage.entries import KeyedRequest


class _Repeat(NamedTuple):
    waiter: Waiter
    first: Waiter  # of the group's request that had the key first
    same: bool  # whether both have the same body


class Duplicates:
    """The idempotency keys in one group of requests.

    Attributes:
        new: keys of requests that will be written to the log.
    """

    def __init__(self, keys: IdempotencyKeys) -> None:
        self.new: list[KeyedRequest] = []
        self._keys = keys
        # (model id, key) -> body digest and waiter of the group's first request with this key
        self._firsts: dict[tuple[int, bytes], tuple[bytes, Waiter]] = {}
        # Requests that repeat one of the same group, whose reply is not known yet.
        self._repeats: list[_Repeat] = []
        # Replies to requests that repeat one of an earlier group.
        self._replies: list[tuple[Waiter, Any]] = []

    def recognise(self, model: int, key: bytes, digest: bytes, waiter: Waiter) -> bool:
        """Return whether a request is a duplicate, which is answered and not learned.

        Args:
            model: the id of the model.
            key: of the request.
            digest: of its body.
            waiter: what waits for its reply.

        This is the one place where duplicates are recognised. Raises StorageFailed.
        """
        if first := self._firsts.get((model, key)):
            self._repeats.append(_Repeat(waiter, first[1], first[0] == digest))
            return True
        row = self._keys.find(model, key)
        if row is None:
            return False
        self._replies.append((waiter, _first_answer(row) if row.digest == digest else _reused()))
        return True

    def knows(self, model: int, key: bytes | None) -> bool:
        """Return whether a request was written under a key, learned or not."""
        return key is not None and self._keys.holds(model, key)

    def add(self, keyed: KeyedRequest, waiter: Waiter) -> None:
        """Register the key of a request that will be written."""
        self._firsts[keyed.model, keyed.key] = keyed.digest, waiter
        self.new.append(keyed)

    def waiting(self) -> list[Waiter]:
        """Return the waiters of all duplicates that have no reply."""
        return [*(item.waiter for item in self._repeats), *(waiter for waiter, _ in self._replies)]

    def replies(self, others: list[tuple[Waiter, Any]]) -> list[tuple[Waiter, Any]]:
        """Return the replies to duplicates that are known by now, each of them once.

        others: replies to the group's other requests. A duplicate of a request that could not be
            written gets the same error.
        """
        results = dict(others) if self._repeats else {}
        earlier, self._replies = self._replies, []
        due = [item for item in self._repeats if item.first in results]
        self._repeats = [item for item in self._repeats if item.first not in results]
        return [
            *earlier,
            *((item.waiter, _repeated(results[item.first], item.same)) for item in due),
        ]


def _repeated(result: Any, same: bool) -> Any:
    """Return the reply to a request that repeats one of its group, from the reply to that one."""
    if isinstance(result, StorageFailed):
        return result
    if not same:
        return _reused()
    return result if isinstance(result, Refusal) else _marked(result)


def _first_answer(row: KeyedRequest) -> Any:
    """Return the reply to a request that repeats one in the log."""
    if row.answer is None:
        return AnswerMissing(
            f"these samples are in the journal, up to sequence {row.sequence}, and their answer is "
            "lost; do not send them again, and send new samples under another key"
        )
    return _marked(msgpack.unpackb(row.answer))


def _marked(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "replayed": True}


def _reused() -> KeyReused:
    return KeyReused("this key belongs to another request; use a new key for a new request")
