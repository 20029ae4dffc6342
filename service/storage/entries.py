"""What a journal holds of a model: its entries, the keys of requests, and its last rollback.

An entry is one accepted request. Entries with the same `block` were absorbed together; replay
keeps these boundaries and the thread setting, because the rounding of a matrix product depends on
both.

An entry without samples is a fit: the result of a refit, to be served from this place on. It is a
block of its own and shares its sequence with the sample before it. A fit replaces an earlier one
at the same sequence, and applying it twice is the same as applying it once; so replay may begin
with the fit at a snapshot's own sequence, whether it came before the snapshot or after it.

A rollback holds the whole state that a model went back to. Nothing before it matters any longer,
so a model has at most one, the last, and recovery begins with it unless there is a snapshot of a
later sequence. It shares its sequence with the sample before it and with the fits after it; the
fits before it are forgotten with it.
"""

from typing import Any, NamedTuple

from service.spec.heads import HeadName


class Entry(NamedTuple):
    """One accepted request of one model, or a fit.

    sequence: of its last sample. block: sequence of the block's last sample. threads: of a matrix
    product when it was learned. record: the samples or the fit, as bytes.
    """

    model: int
    sequence: int
    samples: int
    block: int
    head: HeadName
    threads: int
    record: bytes


class KeyedRequest(NamedTuple):
    """The idempotency key of the entry at a sequence.

    digest: of the request. answer: its encoded answer; None until it is known.
    """

    model: int
    sequence: int
    key: bytes
    digest: bytes
    answer: bytes | None


class Rollback(NamedTuple):
    """A model's last rollback.

    description: what the model's description says of it: `to` a snapshot's sequence, `at` a
    sequence, at a `time`. content: the snapshot's bytes.
    """

    description: dict[str, Any]
    content: bytes
