"""The idempotency keys that a server remembers, and when their answers are written."""

import logging
from collections import Counter
from collections.abc import Collection
from itertools import islice
from typing import Any

import msgpack

from service.errors import StorageFailed
from service.storage.answers import Answers
from service.storage.entries import KeyedRequest

logger = logging.getLogger(__name__)

# A shorter answer cannot be shortened further.
_SMALL_BYTES = 256
# Shrinking takes a tenth of a millisecond for each answer, while nothing is learned.
_SHRUNK_AT_A_TIME = 256


class RememberedKeys:
    """The keys of all models, in memory; their answers are in storage. Used by one thread.

    at_least: how many keys of each model are remembered. Up to an eighth more are, so that they
        need not be forgotten one by one.
    most_bytes: bound on the bytes of each model's answers; beyond it the oldest ones shrink to
        `sequence` and `learned`.
    """

    def __init__(self, answers: Answers, at_least: int, most_bytes: int) -> None:
        self._answers = answers
        self._at_least = at_least
        self._most_bytes = most_bytes
        # The bytes of answers that can shrink, by model and sequence, oldest first.
        self._sizes: dict[int, dict[int, int]] = {}
        self._totals: Counter[int] = Counter()
        # By model and key, in the order of the sequences.
        self._sequences: dict[int, dict[bytes, int]] = {}
        self._unanswered: dict[tuple[int, int], KeyedRequest] = {}
        self._unwritten: dict[tuple[int, int], KeyedRequest] = {}

    def load(self, model: int) -> None:
        """Remember a model's keys in storage. Raises StartupError."""
        self.forget(model)
        sequences = {key: sequence for sequence, key in self._answers.keys(model)}
        if sequences:
            self._sequences[model] = sequences
        for sequence, n_bytes in self._answers.sizes(model, _SMALL_BYTES):
            self._add_size(model, sequence, n_bytes)

    def find(self, model: int, key: bytes) -> KeyedRequest | None:
        """Return the request that was committed under a key. Raises StorageFailed."""
        sequence = self._sequences.get(model, {}).get(key)
        if sequence is None:
            return None
        return self._unwritten.get((model, sequence)) or self._answers.find(model, sequence)

    def holds(self, model: int, key: bytes) -> bool:
        """Return whether a request was committed under a key."""
        return key in self._sequences.get(model, {})

    def with_answers(self, new: list[KeyedRequest]) -> list[KeyedRequest]:
        """What to commit with new keys: also the answers not written yet. Empty without keys."""
        return [*self._unwritten.values(), *new] if new else new

    def committed(self, new: list[KeyedRequest], failed: Collection[int]) -> None:
        """Note that `with_answers(new)` was committed, except what belongs to failed models."""
        if new:
            self._unwritten = {at: row for at, row in self._unwritten.items() if at[0] in failed}
        self.committed_late([row for row in new if row.model not in failed])

    def committed_late(self, new: list[KeyedRequest]) -> None:
        """Note that new keys are committed, whose answers come next."""
        # Others may wait for their answer still: large requests, which other commits come between.
        self._unanswered |= {(row.model, row.sequence): row for row in new}
        for row in new:
            self._sequences.setdefault(row.model, {})[row.key] = row.sequence

    def answer(self, model: int, sequence: int, answer: dict[str, Any]) -> None:
        """Remember the answer to an entry that was committed with a key."""
        row = answered(self._unanswered.pop((model, sequence)), answer)
        self._unwritten[model, sequence] = row
        self._add_size(model, sequence, len(row.answer or b""))

    def add_answered(self, found: list[KeyedRequest]) -> None:
        """Remember keys of entries that a commit in doubt proved to have written."""
        for row in found:
            self._sequences.setdefault(row.model, {})[row.key] = row.sequence
            self._unwritten[row.model, row.sequence] = row
            self._add_size(row.model, row.sequence, len(row.answer or b""))

    def write(self) -> None:
        """Write all answers. Raises StorageFailed."""
        if self._unwritten:
            self._answers.write(list(self._unwritten.values()))
            self._unwritten.clear()

    def forget_unlearned(self, model: int, learned: int) -> None:
        """Forget the keys of a model's entries after the sequence that it has learned."""
        sequences = self._sequences.get(model, {})
        for key in [key for key, sequence in sequences.items() if sequence > learned]:
            sequence = sequences.pop(key)
            self._unanswered.pop((model, sequence), None)
            self._drop_size(model, sequence)

    def forget_oldest(self, model: int) -> None:
        """Forget a model's surplus keys, and shrink its surplus answers.

        A failure is logged, and they are kept.
        """
        self._shrink_oldest(model)
        sequences = self._sequences.get(model, {})
        surplus = len(sequences) - self._at_least
        if surplus <= self._at_least // 8:
            return
        oldest = list(islice(sequences.items(), surplus))
        try:
            self._answers.drop(model, oldest[-1][1])
        except StorageFailed as error:
            logger.error("model %d: its oldest keys are kept: %s", model, error)
            return
        for key, sequence in oldest:
            del sequences[key]
            self._unwritten.pop((model, sequence), None)
            self._drop_size(model, sequence)

    def forget(self, model: int) -> None:
        """Forget all keys of a model that was deleted."""
        self._sequences.pop(model, None)
        self._sizes.pop(model, None)
        del self._totals[model]
        for rows in (self._unanswered, self._unwritten):
            for at in [at for at in rows if at[0] == model]:
                del rows[at]

    def _shrink_oldest(self, model: int) -> None:
        """Shrink the oldest answers until an eighth of the bound is free again, some at a time."""
        if self._totals[model] <= self._most_bytes:
            return
        surplus, rows, sequences = self._totals[model] - self._most_bytes * 7 // 8, [], []
        for sequence, n_bytes in islice(self._sizes[model].items(), _SHRUNK_AT_A_TIME):
            if surplus <= 0:
                break
            surplus -= n_bytes
            sequences.append(sequence)
            row = self._unwritten.get((model, sequence)) or self._answers.find(model, sequence)
            if row is not None and row.answer is not None:
                rows.append(row._replace(answer=_shrunk(row.answer)))
        try:
            self._answers.replace(rows)
        except StorageFailed as error:
            logger.error("model %d: its oldest answers are kept: %s", model, error)
            return
        for sequence in sequences:
            self._unwritten.pop((model, sequence), None)
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
