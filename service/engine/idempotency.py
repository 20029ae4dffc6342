"""Idempotency keys: which requests count as the same, so that the second is not learned again.

A client names a request in one of two ways. Each becomes a text that is unique within the model:

    Idempotency-Key: KEY                          CLIENT KEY
    a frame's id on .../stream?producer=NAME      CLIENT NAME ID    the id as JSON

- CLIENT is the name of the API key as JSON, and empty where no API key is needed. So no client sees
  the answers to another's requests, and a replaced API key of the same name continues the old one.
- KEY and NAME contain no space, so texts of the two forms never collide.
- Logs and memory hold digests of the texts. Responses are only in the logs, so that memory does not
  grow with their size.

The life of a key:

1. It is committed with its entry.
2. Its answer is known once the entry's block is absorbed. The answer is written with the next
   commit that has keys, and at the latest before the next snapshot. So an entry without an answer
   comes after every snapshot: recovery replays it by the same function as live, and gets the first
   answer.
3. It is forgotten when the model has too many, oldest first. Time plays no part, so a clock that
   jumps loses no key. A rollback forgets only keys of entries that broke the model and were never
   learned.
"""

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgpack

from wolfstream.service.engine.queue_items import Waiter
from wolfstream.service.errors import (
    AnswerMissing,
    InDoubt,
    Invalid,
    KeyReused,
    Refusal,
    StorageFailed,
)
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.storage.entries import KeyedRequest
from wolfstream.service.storage.log import LogReader
from wolfstream.service.storage.term import Term

_VISIBLE = re.compile(r"[!-~]{1,255}")
# Digests of these lengths do not collide by chance. Keys stay in memory, so theirs are short.
_KEY_BYTES, _BODY_BYTES = 16, 32


def header_key(values: Sequence[str], client: str) -> bytes | None:
    """Return the key in a request's `Idempotency-Key` headers; None without one. Raises Invalid.

    A value is the key itself, or a string as structured fields write it (RFC 9651): the key in
    double quotes, with a backslash before each quote or backslash.
    """
    if not values:
        return None
    if len(values) > 1:
        raise Invalid("several Idempotency-Key headers; send one")
    value = values[0]
    if value.startswith('"'):
        quoted = re.fullmatch(r'"((?:[^"\\]|\\["\\])*)"', value)
        value = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else ""
    return _digest(_KEY_BYTES, f"{_text(client)} {_checked(value, 'Idempotency-Key')}".encode())


def frame_key(client: str, producer: str, frame_id: int | str) -> bytes:
    """Return the key of a learning frame, on a stream whose producer was checked."""
    return _digest(_KEY_BYTES, f"{_text(client)} {producer} {json.dumps(frame_id)}".encode())


def read_producer(value: str | None) -> str | None:
    """Return the checked producer of a stream's query. Raises Invalid."""
    return None if value is None else _checked(value, "producer")


def body_digest(head: HeadName, record: bytes) -> bytes:
    """Return the digest of a request's head and samples, whatever format these came in."""
    return _digest(_BODY_BYTES, head.encode() + b" " + record)


def _text(client: str) -> str:
    return json.dumps(client) if client else ""


def _checked(key: str, name: str) -> str:
    if not _VISIBLE.fullmatch(key):
        raise Invalid(f"{name} must have 1 to 255 visible ASCII characters, without spaces")
    return key


def _digest(size: int, data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=size).digest()


logger = logging.getLogger(__name__)

# Answers up to this size are not worth shrinking.
_SMALL_BYTES = 256
# Shrinking takes a tenth of a millisecond for each answer, during which nothing is learned.
_SHRUNK_AT_A_TIME = 256


class IdempotencyKeys:
    """The keys of all models. Used by one thread.

    A key is known once its commit is durable, and also while the commit is in doubt: the request
    must then neither be learned again, nor be called unlearned.

    Args:
        at_least: how many keys of each model are kept. Up to an eighth more are, so that old ones
            are forgotten many at a time.
        most_bytes: bound on the bytes of each model's answers. Beyond it the oldest ones shrink to
            `sequence` and `learned`.
    """

    def __init__(self, at_least: int, most_bytes: int) -> None:
        self._logs: dict[int, LogReader] = {}  # model id -> its log
        self._at_least = at_least
        self._most_bytes = most_bytes
        # model id -> sequence -> bytes of an answer that can shrink; oldest first
        self._sizes: dict[int, dict[int, int]] = {}
        self._totals: Counter[int] = Counter()  # model id -> sum of these bytes
        # model id -> key -> sequence; in the order of the sequences
        self._sequences: dict[int, dict[bytes, int]] = {}
        # (model id, sequence) -> a request that is durable, but not learned yet
        self._unanswered: dict[tuple[int, int], KeyedRequest] = {}
        # model id -> sequence -> a request whose answer is known, but not in the log yet
        self._unwritten: dict[int, dict[int, KeyedRequest]] = {}
        # model id -> keys of its commit in doubt
        self._doubtful: dict[int, set[bytes]] = {}

    def read_from(self, log: LogReader) -> None:
        """Read the answers of a model from its log."""
        self._logs[log.model] = log

    def load(self, log: LogReader) -> None:
        """Load the keys in a model's log. Raises StartupError, StorageFailed."""
        model = log.model
        self.forget(model)
        self._logs[model] = log
        sequences: dict[bytes, int] = {}
        for sequence, key, n_bytes in log.keys():  # noqa: SIM118
            sequences[key] = sequence
            self._add_size(model, sequence, n_bytes or 0)
        if sequences:
            self._sequences[model] = sequences

    def find(self, model: int, key: bytes) -> KeyedRequest | None:
        """Return the request that was committed under a key; None if there is none.

        Raises InDoubt if one may have been committed, and AnswerMissing if one was, but its answer
        cannot be read now.
        """
        if key in self._doubtful.get(model, ()):
            raise InDoubt(
                "whether the request under this key was written is not known yet; send it again "
                "under the same key"
            )
        sequence = self._sequences.get(model, {}).get(key)
        if sequence is None:
            return None
        try:
            return self._read(model, sequence)
        except StorageFailed as error:
            raise AnswerMissing(
                f"these samples are in the journal, up to sequence {sequence}, and their answer "
                f"cannot be read now: {error.detail}; send them again under the same key"
            ) from None

    def _read(self, model: int, sequence: int) -> KeyedRequest | None:
        unwritten = self._unwritten.get(model, {})
        return unwritten.get(sequence) or self._logs[model].find(sequence)

    def holds(self, model: int, key: bytes) -> bool:
        """Return whether a request was committed under a key."""
        return key in self._sequences.get(model, {})

    def unwritten(self, model: int) -> list[KeyedRequest]:
        """Return a model's requests whose answers are known, but not in the log yet."""
        return list(self._unwritten.get(model, {}).values())

    def committed(
        self, model: int, new: Sequence[KeyedRequest], error: StorageFailed | None
    ) -> None:
        """Register the outcome of a commit of new keys, and of the answers that came with them.

        Args:
            model: the id of the model.
            new: the keys in the commit; without any, it had no answers either.
            error: why it failed; None if it is durable.
        """
        if isinstance(error, InDoubt):
            self._doubtful.setdefault(model, set()).update(row.key for row in new)
        if error is not None:
            return
        if new:
            self._unwritten.pop(model, None)
        # Requests of earlier commits may still be unanswered: large ones are learned in parts.
        self._unanswered |= {(row.model, row.sequence): row for row in new}
        for row in new:
            self._sequences.setdefault(model, {})[row.key] = row.sequence

    def resolved(self, model: int) -> None:
        """Forget which keys were in doubt: no commit of the model is any more."""
        self._doubtful.pop(model, None)

    def answer(self, model: int, sequence: int, answer: dict[str, Any]) -> None:
        """Store the answer to a request that was committed with a key."""
        row = self._unanswered.pop((model, sequence)).with_answer(answer)
        self._unwritten.setdefault(model, {})[sequence] = row
        self._add_size(model, sequence, len(row.answer or b""))

    def add_answered(self, requests: list[KeyedRequest]) -> None:
        """Add requests of a replayed log, with the answers that the log lacks."""
        for row in requests:
            self._sequences.setdefault(row.model, {})[row.key] = row.sequence
            self._unwritten.setdefault(row.model, {})[row.sequence] = row
            self._add_size(row.model, row.sequence, len(row.answer or b""))

    def write(self, term: Term) -> None:
        """Write a model's answers that are not in its log yet. Raises StorageFailed."""
        if answered := self.unwritten(term.model):
            term.write_answers(answered)
            del self._unwritten[term.model]

    def forget_unlearned(self, model: int, learned: int) -> None:
        """Forget the keys of a model's entries after the last sequence that it has learned."""
        sequences = self._sequences.get(model, {})
        for key in [key for key, sequence in sequences.items() if sequence > learned]:
            sequence = sequences.pop(key)
            self._unanswered.pop((model, sequence), None)
            self._drop_size(model, sequence)

    def forget_oldest(self, term: Term) -> None:
        """Forget a model's surplus keys and shrink its surplus answers.

        If the log cannot be written, this is logged and they are kept.
        """
        model = term.model
        self._shrink_oldest(term)
        sequences = self._sequences.get(model, {})
        surplus = len(sequences) - self._at_least
        if surplus <= self._at_least // 8:
            return
        oldest = list(islice(sequences.items(), surplus))
        try:
            term.forget_keys(oldest[-1][1])
        except StorageFailed as error:
            logger.error("old idempotency keys kept: model_id=%d error=%s", model, error)
            return
        for key, sequence in oldest:
            del sequences[key]
            self._unwritten.get(model, {}).pop(sequence, None)
            self._drop_size(model, sequence)

    def forget(self, model: int) -> None:
        """Forget all keys of a model that was deleted, or is led elsewhere."""
        for by_model in (self._sequences, self._sizes, self._unwritten, self._doubtful):
            by_model.pop(model, None)
        self._logs.pop(model, None)
        del self._totals[model]
        for request in [request for request in self._unanswered if request[0] == model]:
            del self._unanswered[request]

    def _shrink_oldest(self, term: Term) -> None:
        """Shrink the oldest answers until an eighth of the bound is free, a few at a time."""
        model = term.model
        if self._totals[model] <= self._most_bytes:
            return
        surplus, rows, sequences = self._totals[model] - self._most_bytes * 7 // 8, [], []
        for sequence, n_bytes in islice(self._sizes[model].items(), _SHRUNK_AT_A_TIME):
            if surplus <= 0:
                break
            surplus -= n_bytes
            sequences.append(sequence)
            row = self._read(model, sequence)
            if row is not None and row.answer is not None:
                rows.append(row._replace(answer=_shrunk(row.answer)))
        try:
            term.shorten_answers(rows)
        except StorageFailed as error:
            logger.error("old answers not shrunk: model_id=%d error=%s", model, error)
            return
        for sequence in sequences:
            self._unwritten.get(model, {}).pop(sequence, None)
            self._drop_size(model, sequence)

    def _add_size(self, model: int, sequence: int, n_bytes: int) -> None:
        if n_bytes > _SMALL_BYTES:
            self._sizes.setdefault(model, {})[sequence] = n_bytes
            self._totals[model] += n_bytes

    def _drop_size(self, model: int, sequence: int) -> None:
        self._totals[model] -= self._sizes.get(model, {}).pop(sequence, 0)


def _shrunk(answer: bytes) -> bytes:
    """Return an encoded answer without its results and the description of the head."""
    answer_fields = msgpack.unpackb(answer)
    kept_names = ("model", "sequence", "epoch", "learned")
    short = {name: answer_fields[name] for name in kept_names if name in answer_fields}
    head = {"name": answer_fields["head"]["name"]}
    encoded: bytes = msgpack.packb({**short, "results": {}, "head": head})
    return encoded


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
