"""Revisions, as requests name them: `EPOCH:SEQUENCE`.

A sequence names a state only within one epoch: after a rollback, or after a model was deleted and
created again, the same sequence is another state.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

from wolfstream.service.errors import AnotherState, Invalid

# A sequence with more digits than this cannot be reached.
_MOST_DIGITS = 18
_SEQUENCE = re.compile(rf"[0-9]{{1,{_MOST_DIGITS}}}")
_EPOCH = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LONGEST_SHOWN = 90  # characters of a client's text in a message


class Revision(NamedTuple):
    """A state of a model; epoch or sequence is None where a request leaves it open."""

    epoch: str | None
    sequence: int | None

    def __str__(self) -> str:
        return ":".join(str(part) for part in self if part is not None)


def read_awaited(value: object) -> Revision | None:
    """Read `min_sequence`: a number, or `EPOCH:SEQUENCE`; None if absent. Raises Invalid."""
    if value is None:
        return None
    if type(value) is int and 0 <= value < 10**_MOST_DIGITS:
        return Revision(None, value)
    epoch, colon, sequence = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not colon or not _EPOCH.fullmatch(epoch) or not _SEQUENCE.fullmatch(sequence):
        raise Invalid(
            "min_sequence must be a whole number, zero or more, or EPOCH:SEQUENCE, not "
            f"{str(value)[:_LONGEST_SHOWN]!r}"
        )
    return Revision(epoch, int(sequence))


def read_tag(tag: str) -> Revision:
    """Read an entity tag: `"EPOCH:SEQUENCE"` or `"EPOCH"`. Raises Invalid.

    Any other tag is read as a revision that no model ever has, so that it matches nothing.
    """
    if not re.fullmatch(r'(W/)?"[!#-~]*"', tag):
        raise Invalid(
            'If-Match takes entity tags in double quotes, "EPOCH:SEQUENCE" or "EPOCH", or *'
        )
    epoch, colon, sequence = tag.strip('"').partition(":")
    if colon and not _SEQUENCE.fullmatch(sequence):
        return Revision(tag, None)
    return Revision(epoch, int(sequence) if colon else None)


def read_expected(value: object) -> tuple[Revision, ...]:
    """Read `if_match` of a frame: `EPOCH:SEQUENCE` or `EPOCH`; () if absent. Raises Invalid."""
    if value is None:
        return ()
    epoch, colon, sequence = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not _EPOCH.fullmatch(epoch) or (colon and not _SEQUENCE.fullmatch(sequence)):
        raise Invalid(
            f"if_match must be EPOCH:SEQUENCE or EPOCH, not {str(value)[:_LONGEST_SHOWN]!r}"
        )
    return (Revision(epoch, int(sequence) if colon else None),)


def check_revision(name: str, epoch: str, sequence: int, expected: Collection[Revision]) -> None:
    """Raise AnotherState unless a model is at one of the revisions that a request expects.

    Args:
        name: of the model.
        epoch: that it is in.
        sequence: that it has reached.
        expected: revisions; an empty collection expects nothing.
    """
    if not expected:
        return
    for revision in expected:
        if revision.epoch == epoch and revision.sequence in (None, sequence):
            return
    listed = " or ".join(map(str, expected))[:_LONGEST_SHOWN]
    raise AnotherState(
        f"model {name!r} is at {Revision(epoch, sequence)}, the request is for {listed}; look at "
        "the model before you go on"
    )
