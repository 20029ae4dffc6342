"""Exactly once: a request that comes again under its key is answered again, not learned again.

What a client calls a request by, and the text that makes it a key of its model:

    Idempotency-Key: KEY                          CLIENT KEY
    a frame's id on .../stream?producer=NAME      CLIENT NAME ID    the id as JSON

CLIENT is the id of the API key, so no client meets another's answers; empty where none is
needed. No part but the id has a space, so no two texts of different forms are the same. The log
has digests of these texts.

A key is committed with its entry. Its answer is known once the entry's block is absorbed; it is
written in the next commit that has keys, and in any case before a snapshot is begun. So an entry
without an answer is behind every snapshot: recovery replays it, by the same function as live,
and what comes of it is the first answer. A rollback takes no keys but those of what was never
learned, because it broke the model.

Keys are forgotten by their number alone, the oldest first, so no clock that jumps can lose one.
"""

import hashlib
import json
import logging
import re
from asyncio import Future
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from service.errors import Invalid, KeyReused, Refusal, StorageFailed
from service.log import Log
from service.log_rows import Keyed
from service.records import to_record
from service.samples import Samples
from service.spec import HeadName
from service.wire import MSGPACK

logger = logging.getLogger(__name__)

_VISIBLE = re.compile(r"[!-~]{1,255}")
# Two texts or records with one digest do not turn up by chance; keys stay in memory.
_KEY_BYTES, _BODY_BYTES = 16, 32


def header_key(values: Sequence[str], client: str) -> bytes | None:
    """The key that the `Idempotency-Key` headers of a request give it. Raises Invalid.

    A value is the key as it is, or a string of structured fields (RFC 9651): the key in double
    quotes, with a backslash before a quote or backslash.
    """
    if not values:
        return None
    if len(values) > 1:
        raise Invalid("a request takes one Idempotency-Key")
    value = values[0]
    if value.startswith('"'):
        quoted = re.fullmatch(r'"((?:[^"\\]|\\["\\])*)"', value)
        value = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else ""
    return _digest(_KEY_BYTES, f"{client} {_checked(value, 'Idempotency-Key')}".encode())


def frame_key(client: str, producer: str, frame_id: int | str) -> bytes:
    """The key of a frame that teaches, on a stream with a checked producer."""
    return _digest(_KEY_BYTES, f"{client} {producer} {json.dumps(frame_id)}".encode())


def read_producer(given: str | None) -> str | None:
    """The producer that a stream's query names. Raises Invalid."""
    return None if given is None else _checked(given, "producer")


def body_digest(head: HeadName, samples: Samples) -> bytes:
    """What makes two requests the same: the head and, in whatever format, the samples."""
    return _digest(_BODY_BYTES, head.encode() + b" " + to_record(samples))


def _checked(key: str, what: str) -> str:
    if not _VISIBLE.fullmatch(key):
        raise Invalid(f"{what} must have 1 to 255 visible ASCII characters, without spaces")
    return key


def _digest(size: int, data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=size).digest()


class Keys:
    """The keys that are remembered of all models. Used by the writer's thread.

    most: keys that are kept of each model at least; an eighth more are, so that they need not
        be forgotten one by one.
    """

    def __init__(self, log: Log, most: int) -> None:
        self._log = log
        self._most = most
        # By model and key, in the order of the sequences.
        self._sequences: dict[int, dict[bytes, int]] = {}
        self._unanswered: dict[tuple[int, int], Keyed] = {}
        self._unwritten: dict[tuple[int, int], Keyed] = {}

    def load(self) -> None:
        """Remember what is in the log. Raises StartupError."""
        for model, sequence, key in self._log.all_keys():
            self._sequences.setdefault(model, {})[key] = sequence

    def find(self, model: int, key: bytes) -> Keyed | None:
        """What was committed under a key. Raises StorageFailed."""
        sequence = self._sequences.get(model, {}).get(key)
        if sequence is None:
            return None
        return self._unwritten.get((model, sequence)) or self._log.keyed(model, sequence)

    def with_answers(self, new: list[Keyed]) -> list[Keyed]:
        """What to commit with new keys: also the answers that wait for it. Nothing for none."""
        return [*self._unwritten.values(), *new] if new else new

    def committed(self, new: list[Keyed]) -> None:
        """Note that `with_answers` of these is in the log."""
        if new:
            self._unwritten.clear()
        self._unanswered = {(row.model, row.sequence): row for row in new}
        for row in new:
            self._sequences.setdefault(row.model, {})[row.key] = row.sequence

    def answer(self, model: int, sequence: int, answer: dict[str, Any]) -> None:
        """Remember the answer to an entry that has a key."""
        row = self._unanswered.pop((model, sequence))
        self._unwritten[model, sequence] = answered(row, answer)

    def write(self) -> None:
        """Bring all answers into the log. Raises StorageFailed."""
        if self._unwritten:
            self._log.append((), list(self._unwritten.values()))
            self._unwritten.clear()

    def forget_unlearned(self, model: int, learned: int) -> None:
        """Forget the keys that a rollback took from the log: those behind what was learned."""
        sequences = self._sequences.get(model, {})
        for key in [key for key, sequence in sequences.items() if sequence > learned]:
            self._unanswered.pop((model, sequences.pop(key)), None)

    def forget_oldest(self, model: int) -> None:
        """Forget what is too much of a model's keys; no matter if it fails."""
        sequences = self._sequences.get(model, {})
        surplus = len(sequences) - self._most
        if surplus <= self._most // 8:
            return
        oldest = list(islice(sequences.items(), surplus))
        try:
            self._log.drop_keys(model, oldest[-1][1])
        except StorageFailed as error:
            logger.error("model %d: its oldest keys are kept: %s", model, error)
            return
        for key, sequence in oldest:
            del sequences[key]
            self._unwritten.pop((model, sequence), None)

    def forget(self, model: int) -> None:
        """Forget all keys of a model that was deleted."""
        self._sequences.pop(model, None)
        self._unwritten = {at: row for at, row in self._unwritten.items() if at[0] != model}


def answered(row: Keyed, answer: dict[str, Any]) -> Keyed:
    """The key with its answer, as the log has it."""
    return row._replace(answer=MSGPACK.encode(answer))


class _Repeat(NamedTuple):
    waiter: Future[Any]
    first: Future[Any]
    same: bool


class KeyedGroup:
    """The keys in one group of requests: new ones, and those that are there already.

    new: keys of requests that will be logged.
    """

    def __init__(self, keys: Keys) -> None:
        self.new: list[Keyed] = []
        self._keys = keys
        self._firsts: dict[tuple[int, bytes], tuple[bytes, Future[Any]]] = {}
        self._repeats: list[_Repeat] = []
        self._told: list[tuple[Future[Any], Any]] = []

    def recognise(self, model: int, key: bytes, digest: bytes, waiter: Future[Any]) -> bool:
        """Whether a request is a duplicate, to be answered and not learned.

        This is the one place where duplicates are recognised. Raises StorageFailed.
        """
        if first := self._firsts.get((model, key)):
            self._repeats.append(_Repeat(waiter, first[1], first[0] == digest))
            return True
        row = self._keys.find(model, key)
        if row is None:
            return False
        self._told.append((waiter, _again(row) if row.digest == digest else _reused()))
        return True

    def add(
        self, model: int, sequence: int, key: bytes, digest: bytes, waiter: Future[Any]
    ) -> None:
        """Take the key of a request that will be logged."""
        self._firsts[model, key] = digest, waiter
        self.new.append(Keyed(model, sequence, key, digest, None))

    def replies(self, given: list[tuple[Future[Any], Any]]) -> list[tuple[Future[Any], Any]]:
        """The replies to all duplicates, once those to the group's other requests are known.

        What repeats a request that could not be logged has its error.
        """
        results = dict(given) if self._repeats else {}
        return [
            *self._told,
            *(
                (again.waiter, _repeated(results[again.first], again.same))
                for again in self._repeats
            ),
        ]


def _repeated(result: Any, same: bool) -> Any:
    """What a request is told that came with the one that has this result."""
    if isinstance(result, StorageFailed):
        return result
    if not same:
        return _reused()
    return result if isinstance(result, Refusal) else _marked(result)


def _again(row: Keyed) -> Any:
    """What a request is told whose key is in the log."""
    if row.answer is None:
        return StorageFailed(
            f"these samples were learned, up to sequence {row.sequence}, but the log has lost "
            "their answer; send what is new under another key"
        )
    return _marked(MSGPACK.decode(row.answer))


def _marked(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "replayed": True}


def _reused() -> KeyReused:
    return KeyReused("another request came under this key; send what is new under a key of its own")
