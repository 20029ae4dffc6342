"""What a journal holds of a model: its entries, the keys of requests, and its rollbacks.

An entry of samples is one accepted request, or a part of a large one, which has several. Entries
with the same `block` were absorbed together; replay keeps these boundaries and the thread setting,
because the rounding of a matrix product depends on both.

An entry of labels has the samples that labels made of predicted rows, and the rows' ids, by which
they cease to wait. It holds the rows again: so it is learned like samples, whatever became of the
predictions, and a log from which old predictions were dropped still teaches all that was learned.

A prediction has rows that wait for their labels. It shares its sequence with the sample before it,
as a fit does, since it teaches nothing. Its `block` counts all rows that the model has remembered,
up to its last one: what a snapshot has counted already is passed over in a replay.

A fit is the result of a refit, to be served from this place on. It is a block of its own and shares
its sequence with the sample before it. A later fit at the same sequence replaces it, and applying
one twice is the same as applying it once; so replay may begin with the fits at a snapshot's own
sequence, whether they came before the snapshot or after it.

A checkpoint says that the model was brought into the state that a restored snapshot has: kernel
values, which snapshots leave out, were computed again. It shares its sequence with the sample
before it, and applying it twice is the same as applying it once.

A rollback names by its digest the state that a model went back to, which is pinned among the
snapshots. Nothing before the last rollback matters any longer, and recovery begins with it unless
there is a snapshot of a later sequence. It shares its sequence with the sample before it, and with
fits before and after it.

A model may have several learners: then they have logs of their own, and its log has a rollback for
each merge, to the merged state, whose sequence is the sum of theirs.

A model may follow another one: then it learns the samples in the log of that one, and its sequence
is its place there. Its own log has what is its own, which is fits, checkpoints and rollbacks.

An epoch tells which life of a model a sequence belongs to: after a rollback, and after a part of
the journal was given up, the same sequence is another state, and the epoch is another one.
"""

import secrets
import time
from typing import Any, Literal, NamedTuple, TypeAlias

from wolfstream.service.spec.heads import HeadName

# A request with more samples or bytes is learned in parts, which others come between. A part may
# have fewer samples where they take long, but not fewer than these, unless they have many bytes.
PART_SAMPLES, PART_BYTES, LEAST_PART_SAMPLES = 1024, 4 << 20, 16
_EPOCH_BYTES = 6

EntryKind: TypeAlias = Literal["samples", "labels", "prediction", "fit", "checkpoint"]


class Entry(NamedTuple):
    """One accepted request of one model, a part of one, a prediction, a fit or a checkpoint.

    sequence: of its last sample; the latter three have none. block: sequence of the block's last
    sample; of a prediction see above. threads: of a matrix product when it was learned. record:
    what it brings, as bytes; none of a checkpoint.
    """

    model: int
    sequence: int
    samples: int
    block: int
    head: HeadName
    threads: int
    record: bytes
    kind: EntryKind = "samples"


class KeyedRequest(NamedTuple):
    """The idempotency key of the entry at a sequence.

    digest: of the request. answer: its encoded answer; None until it is known. samples: of the
    request, whose entries end at the sequence; 0 of earlier versions, which had one entry for each.
    """

    model: int
    sequence: int
    key: bytes
    digest: bytes
    answer: bytes | None
    samples: int = 0


class Rollback(NamedTuple):
    """A model's last rollback.

    description: what the model's description says of it: `to` a snapshot's sequence, `at` a
    sequence, at a `time`; `of` the model whose state it is, where that is another one. Of a merge
    it has the `partitions` instead of `to`. digest: of the state, which is pinned. epoch: from here
    on.
    """

    description: dict[str, Any]
    digest: str
    epoch: str


class CatalogueEntry(NamedTuple):
    """A model that exists. epoch: the first one that it had.

    spec: that it was made with; its snapshots and rollbacks say which one it has since. follows:
    the number of the model whose log it learns from, which may be gone; None of its own alone.
    """

    number: int
    name: str
    spec: dict[str, Any]
    epoch: str
    follows: int | None = None


def now() -> int:
    """Return the time of an entry, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def new_epoch() -> str:
    """Return a text that no model had before."""
    return secrets.token_hex(_EPOCH_BYTES)


def next_term(epoch: str) -> str:
    """The epoch of the next term of the same life: another leader goes on where the log ends.

    All that was acknowledged in an earlier term is in the log, so its sequences stay the same
    states.
    """
    life, _, term = epoch.partition(".")
    return f"{life}.{int(term or 0) + 1}"


def in_one_life(earlier: str, later: str) -> bool:
    """Whether the sequences of an epoch are the same states in another, which is as late or later.

    Both are as `new_epoch` and `next_term` make them; others are equal or of different lives.
    """
    (life, _, term), (later_life, _, later_term) = earlier.partition("."), later.partition(".")
    if earlier == later:
        return True
    known = all(one.isdecimal() and len(one) < 10 for one in (term or "0", later_term or "0"))
    return life == later_life and known and int(term or 0) < int(later_term or 0)
