"""What the journal holds for a model: entries, keyed requests, rollbacks and epochs.

The sequence counts samples, so only samples and labels raise it. Every other record shares the
sequence of the sample before it.

**Samples**: an accepted request, or a part of a large one. Entries with the same `block` were
learned together. Replay keeps these boundaries and the number of threads, because the rounding of a
matrix product depends on both.

**Labels**: predicted rows with the labels that came for them, and the ids of these rows, which stop
waiting. The entry repeats the rows, so it is learned like samples, even after the predictions were
dropped from the log.

**Prediction**: rows that wait for their labels. Its `block` is the number of its last row among all
rows that ever waited for labels: replay skips those that a snapshot has counted.

**Fit**: the result of a refit, which predicts from here on. A later fit at the same sequence
replaces it, and applying it twice changes nothing. So replay may start with the fits at a
snapshot's own sequence, whether they came before or after the snapshot.

**Checkpoint**: the live model was put into the state that restoring a snapshot gives, by computing
the kernel values again that snapshots leave out. Applying it twice changes nothing.

**Rollback**: names, by digest, the state that the model went back to, which is pinned among the
snapshots. Nothing before the last rollback matters any more: recovery starts there, unless there is
a snapshot of a later sequence. Fits may precede and follow it at its sequence.

**Epoch**: the history of a model that a sequence belongs to. After a rollback, or after a part of
the journal was given up, the same sequence is a different state, so a new epoch begins. A new term
of the same history has an epoch of the same lineage.

A challenger learns the samples in its champion's log, and its sequence is its position there; its
own log has its fits, checkpoints and rollbacks.
"""

import secrets
import time
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import msgpack

from wolfstream.service.spec.heads import HeadName

# A request with more samples or bytes is learned in parts, so other requests can come between.
# Parts of slow samples are smaller, but have at least this many unless their bytes forbid it.
PART_SAMPLES, PART_BYTES, LEAST_PART_SAMPLES = 1024, 4 << 20, 16
_EPOCH_BYTES = 6

EntryKind: TypeAlias = Literal["samples", "labels", "prediction", "fit", "checkpoint"]


class Entry(NamedTuple):
    """One accepted request of one model, a part of one, a prediction, a fit or a checkpoint."""

    model: int
    sequence: int  # of its last sample, or of the sample before it if it has none
    samples: int  # number of samples; 0 for a prediction, fit or checkpoint
    block: int  # sequence of the block's last sample; for a prediction see above
    head: HeadName
    threads: int  # threads of matrix products when it was learned
    record: bytes  # the content; empty for a checkpoint
    kind: EntryKind = "samples"


class KeyedRequest(NamedTuple):
    """A request with an idempotency key, whose entries end at a sequence."""

    model: int
    sequence: int
    key: bytes
    digest: bytes  # of the request's content: the same key with other content is refused
    answer: bytes | None  # the encoded response; None until it is known
    samples: int  # number of samples in the request

    def with_answer(self, answer: Mapping[str, Any]) -> "KeyedRequest":
        """Return the request with its response."""
        return self._replace(answer=msgpack.packb(answer))


class Rollback(NamedTuple):
    """A rollback of a model.

    Attributes:
        description: the fields of the model's description. `to`: sequence of the snapshot; `at`:
            sequence of the rollback; `time`; `of`: the other model whose state it is, if any.
        digest: the name of the pinned state.
        epoch: the epoch that begins with the rollback.
    """

    description: dict[str, Any]
    digest: str
    epoch: str


class CatalogueEntry(NamedTuple):
    """A model that exists."""

    number: int
    name: str
    spec: dict[str, Any]  # at its creation; snapshots and rollbacks have later specs
    epoch: str  # the first epoch
    follows: int | None = None  # number of its champion, which may have been deleted


def now() -> int:
    """Return the time of an entry, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def new_epoch() -> str:
    """Return an epoch that no model had before: it begins a lineage."""
    return secrets.token_hex(_EPOCH_BYTES)


def next_term(epoch: str) -> str:
    """Return the epoch of the next term of the same lineage.

    Its leader continues where the log ends. Everything that earlier terms acknowledged is in the
    log, so their sequences still denote the same states.
    """
    lineage, _, term = epoch.partition(".")
    return f"{lineage}.{int(term or 0) + 1}"


def is_same_lineage(earlier: str, later: str) -> bool:
    """Return whether a sequence of an epoch is the same state in an equal or later epoch.

    Epochs come from `new_epoch` and `next_term`. Any other text is a lineage of its own.
    """
    (lineage, _, term), (later_lineage, _, later_term) = (
        earlier.partition("."),
        later.partition("."),
    )
    if earlier == later:
        return True
    terms = term or "0", later_term or "0"
    are_numbers = all(text.isdecimal() and len(text) < 10 for text in terms)
    return lineage == later_lineage and are_numbers and int(terms[0]) < int(terms[1])
