"""What the journal holds for a model: entries, keyed requests, rollbacks and epochs.

The sequence counts samples, so only samples and labels raise it. Every other record shares the
sequence of the sample before it.

**Samples**: one accepted request, or one of the parts of a large request. Entries with the same
`block` were absorbed together. Replay keeps these boundaries and the number of threads, because the
rounding of a matrix product depends on both.

**Labels**: the samples that labels made of predicted rows, and the ids of these rows, which stop
waiting. The entry repeats the rows, so it is learned like samples, and a log whose old predictions
were dropped still teaches everything.

**Prediction**: rows that wait for their labels. Its `block` numbers its last row among all rows
that the model was ever asked to remember: replay skips the ones that a snapshot has counted.

**Fit**: the result of a refit, served from here on. A later fit at the same sequence replaces it,
and to apply one twice is to apply it once. So replay may start with the fits at a snapshot's own
sequence, whether they came before the snapshot or after it.

**Checkpoint**: the live model was brought into the state that restoring a snapshot gives, by
computing the kernel values anew that snapshots leave out. To apply it twice is to apply it once.

**Rollback**: names by its digest the state that the model went back to, which is pinned among the
snapshots. Nothing before the last rollback matters any more: recovery begins with it, unless there
is a snapshot of a later sequence. Fits may come before and after it at its sequence.

**Epoch**: which history of a model a sequence belongs to. After a rollback, or after a part of the
journal was given up, the same sequence is another state, so another epoch begins. A new term of the
same history has an epoch of the same lineage.

A model that follows another learns the samples in the log of that champion, and its sequence is its
place there; its own log has its fits, checkpoints and rollbacks.
"""

import secrets
import time
from typing import Any, Literal, NamedTuple, TypeAlias

from wolfstream.service.spec.heads import HeadName

# A request with more samples or bytes is learned in parts, so that other requests come between.
# Where samples take long, a part has fewer; below this minimum only because of their bytes.
PART_SAMPLES, PART_BYTES, LEAST_PART_SAMPLES = 1024, 4 << 20, 16
_EPOCH_BYTES = 6

EntryKind: TypeAlias = Literal["samples", "labels", "prediction", "fit", "checkpoint"]


class Entry(NamedTuple):
    """One accepted request of one model, a part of one, a prediction, a fit or a checkpoint."""

    model: int
    sequence: int  # of its last sample, or of the sample before it if it has none
    samples: int  # how many it has; 0 for a prediction, fit or checkpoint
    block: int  # sequence of the block's last sample; for a prediction see above
    head: HeadName
    threads: int  # of a matrix product when it was learned
    record: bytes  # its content; empty for a checkpoint
    kind: EntryKind = "samples"


class KeyedRequest(NamedTuple):
    """A request with an idempotency key, whose entries end at a sequence."""

    model: int
    sequence: int
    key: bytes
    digest: bytes  # of the request's content: the same key with another content is refused
    answer: bytes | None  # the encoded response; None until it is known
    samples: int  # of the request


class Rollback(NamedTuple):
    """A rollback of a model.

    Attributes:
        description: as the model's description shows it. `to`: sequence of the snapshot; `at`:
            sequence of the rollback; `time`; `of`: the other model whose state it is, if any.
        digest: name of the pinned state.
        epoch: begins with the rollback.
    """

    description: dict[str, Any]
    digest: str
    epoch: str


class CatalogueEntry(NamedTuple):
    """A model that exists."""

    number: int
    name: str
    spec: dict[str, Any]  # at its creation; snapshots and rollbacks have the later ones
    epoch: str  # its first
    follows: int | None = None  # number of its champion, which may be deleted by now


def now() -> int:
    """Return the time of an entry, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def new_epoch() -> str:
    """Return an epoch that no model had before: it begins a lineage."""
    return secrets.token_hex(_EPOCH_BYTES)


def next_term(epoch: str) -> str:
    """Return the epoch of the next term of the same lineage.

    Its leader goes on where the log ends. Everything that earlier terms acknowledged is in the
    log, so their sequences stay the same states.
    """
    lineage, _, term = epoch.partition(".")
    return f"{lineage}.{int(term or 0) + 1}"


def is_same_lineage(earlier: str, later: str) -> bool:
    """Return whether a sequence of one epoch is the same state in another, equal or later one.

    Epochs are as `new_epoch` and `next_term` make them. Any other text has only itself in its
    lineage.
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
