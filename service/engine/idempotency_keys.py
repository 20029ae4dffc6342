"""The idempotency keys that a server knows, and when their answers are written and dropped.

Keys are in memory; answers are in the logs, so that memory does not grow with their size. See
`engine.idempotency` for the life of a key.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgpack

from wolfstream.service.errors import AnswerMissing, InDoubt, StorageFailed
from wolfstream.service.storage.entries import KeyedRequest
from wolfstream.service.storage.log import LogReader
from wolfstream.service.storage.term import Term

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
        sequences = {key: sequence for sequence, key in log.keys()}  # noqa: SIM118
        if sequences:
            self._sequences[model] = sequences
        for sequence, n_bytes in log.sizes(_SMALL_BYTES):
            self._add_size(model, sequence, n_bytes)

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
        row = answered(self._unanswered.pop((model, sequence)), answer)
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


def answered(row: KeyedRequest, answer: dict[str, Any]) -> KeyedRequest:
    """Return a request with its answer, encoded."""
    return row._replace(answer=msgpack.packb(answer))
