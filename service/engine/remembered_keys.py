"""The idempotency keys that a server remembers, and when their answers are written."""

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

# A shorter answer cannot be shortened further.
_SMALL_BYTES = 256
# Shrinking takes a tenth of a millisecond for each answer, while nothing is learned.
_SHRUNK_AT_A_TIME = 256


class RememberedKeys:
    """The keys of all models, in memory; their answers are in the models' logs.

    Used by one thread. A key is known once its commit is durable, and also while that is in doubt:
    the same request must not be learned again then, nor be called unlearned.

    at_least: how many keys of each model are remembered. Up to an eighth more are, so that they
        need not be forgotten one by one.
    most_bytes: bound on the bytes of each model's answers; beyond it the oldest ones shrink to
        `sequence` and `learned`.
    """

    def __init__(self, at_least: int, most_bytes: int) -> None:
        self._logs: dict[int, LogReader] = {}
        self._at_least = at_least
        self._most_bytes = most_bytes
        # The bytes of answers that can shrink, by model and sequence, oldest first.
        self._sizes: dict[int, dict[int, int]] = {}
        self._totals: Counter[int] = Counter()
        # By model and key, in the order of the sequences.
        self._sequences: dict[int, dict[bytes, int]] = {}
        self._unanswered: dict[tuple[int, int], KeyedRequest] = {}
        self._unwritten: dict[int, dict[int, KeyedRequest]] = {}
        # model -> keys of its commit in doubt
        self._doubtful: dict[int, set[bytes]] = {}

    def read_from(self, log: LogReader) -> None:
        """Read the answers of a model from its log."""
        self._logs[log.model] = log

    def load(self, log: LogReader) -> None:
        """Remember the keys in a model's log. Raises StartupError, StorageFailed."""
        model = log.model
        self.forget(model)
        self._logs[model] = log
        sequences = {key: sequence for sequence, key in log.keys()}  # noqa: SIM118
        if sequences:
            self._sequences[model] = sequences
        for sequence, n_bytes in log.sizes(_SMALL_BYTES):
            self._add_size(model, sequence, n_bytes)

    def find(self, model: int, key: bytes) -> KeyedRequest | None:
        """Return the request that was committed under a key.

        Raises InDoubt where it may have been committed, and AnswerMissing where it was, but its
        answer cannot be read now.
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
        """Return a model's keys whose answers are not written yet, with these."""
        return list(self._unwritten.get(model, {}).values())

    def committed(
        self, model: int, new: Sequence[KeyedRequest], error: StorageFailed | None
    ) -> None:
        """Take what became of a commit of new keys, and of the answers that were not written.

        Args:
            model: the number of the model.
            new: the keys that came with the commit; without any it had no answers.
            error: why it failed; None if it is durable.
        """
        if isinstance(error, InDoubt):
            self._doubtful.setdefault(model, set()).update(row.key for row in new)
        if error is not None:
            return
        if new:
            self._unwritten.pop(model, None)
        # Others may wait for their answer still: large requests, which other commits come between.
        self._unanswered |= {(row.model, row.sequence): row for row in new}
        for row in new:
            self._sequences.setdefault(model, {})[row.key] = row.sequence

    def resolved(self, model: int) -> None:
        """Note that nothing of a model is in doubt any more."""
        self._doubtful.pop(model, None)

    def answer(self, model: int, sequence: int, answer: dict[str, Any]) -> None:
        """Remember the answer to an entry that was committed with a key."""
        row = answered(self._unanswered.pop((model, sequence)), answer)
        self._unwritten.setdefault(model, {})[sequence] = row
        self._add_size(model, sequence, len(row.answer or b""))

    def add_answered(self, found: list[KeyedRequest]) -> None:
        """Remember keys of entries that a commit in doubt proved to have written."""
        for row in found:
            self._sequences.setdefault(row.model, {})[row.key] = row.sequence
            self._unwritten.setdefault(row.model, {})[row.sequence] = row
            self._add_size(row.model, row.sequence, len(row.answer or b""))

    def write(self, term: Term) -> None:
        """Write the answers of a term's model that are not written yet. Raises StorageFailed."""
        if answered := self.unwritten(term.model):
            term.write_answers(answered)
            del self._unwritten[term.model]

    def forget_unlearned(self, model: int, learned: int) -> None:
        """Forget the keys of a model's entries after the sequence that it has learned."""
        sequences = self._sequences.get(model, {})
        for key in [key for key, sequence in sequences.items() if sequence > learned]:
            sequence = sequences.pop(key)
            self._unanswered.pop((model, sequence), None)
            self._drop_size(model, sequence)

    def forget_oldest(self, term: Term) -> None:
        """Forget the surplus keys of a term's model, and shrink its surplus answers.

        A failure is logged, and they are kept.
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
            logger.error("model %d: its oldest keys are kept: %s", model, error)
            return
        for key, sequence in oldest:
            del sequences[key]
            self._unwritten.get(model, {}).pop(sequence, None)
            self._drop_size(model, sequence)

    def forget(self, model: int) -> None:
        """Forget all keys of a model that was deleted, or is learned elsewhere."""
        for of_models in (self._sequences, self._sizes, self._unwritten, self._doubtful):
            of_models.pop(model, None)
        self._logs.pop(model, None)
        del self._totals[model]
        for at in [at for at in self._unanswered if at[0] == model]:
            del self._unanswered[at]

    def _shrink_oldest(self, term: Term) -> None:
        """Shrink the oldest answers until an eighth of the bound is free again, some at a time."""
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
            logger.error("model %d: its oldest answers are kept: %s", model, error)
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
    """Return an encoded answer without its results and what it says of the head."""
    whole = msgpack.unpackb(answer)
    named = ("model", "sequence", "epoch", "learned")
    kept = {name: whole[name] for name in named if name in whole}  # an older one has no epoch
    encoded: bytes = msgpack.packb({**kept, "results": {}, "head": {"name": whole["head"]["name"]}})
    return encoded


def answered(row: KeyedRequest, answer: dict[str, Any]) -> KeyedRequest:
    """Return the key with its encoded answer."""
    return row._replace(answer=msgpack.packb(answer))
