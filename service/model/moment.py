"""A moment of a model's life, as requests name it: `EPOCH:SEQUENCE`.

A sequence alone names a state only within one epoch: after a rollback, or where a model was deleted
and created again, it is another one.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

from wolfstream.service.errors import AnotherState, Invalid

_MOST_DIGITS = 18
_SEQUENCE = re.compile(rf"[0-9]{{1,{_MOST_DIGITS}}}")
_EPOCH = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LONGEST_SHOWN = 90


class Moment(NamedTuple):
    """An epoch and a sequence; None if a request leaves one of them open."""

    epoch: str | None
    sequence: int | None

    def __str__(self) -> str:
        return ":".join(str(part) for part in self if part is not None)


def read_awaited(given: object) -> Moment | None:
    """Read the moment in `min_sequence`: a number, or `EPOCH:SEQUENCE`. Raises Invalid."""
    if given is None:
        return None
    if type(given) is int and 0 <= given < 10**_MOST_DIGITS:
        return Moment(None, given)
    epoch, colon, sequence = given.partition(":") if isinstance(given, str) else ("", "", "")
    if not colon or not _EPOCH.fullmatch(epoch) or not _SEQUENCE.fullmatch(sequence):
        raise Invalid(
            "min_sequence must be a whole number, zero or more, or EPOCH:SEQUENCE, not "
            f"{str(given)[:_LONGEST_SHOWN]!r}"
        )
    return Moment(epoch, int(sequence))


def read_tag(tag: str) -> Moment:
    """Read the moment in an entity tag, `"EPOCH:SEQUENCE"` or `"EPOCH"`. Raises Invalid.

    Anything else that is a tag names a moment that no model ever has.
    """
    if not re.fullmatch(r'(W/)?"[!#-~]*"', tag):
        raise Invalid(
            'If-Match takes entity tags in double quotes, "EPOCH:SEQUENCE" or "EPOCH", or *'
        )
    epoch, colon, sequence = tag.strip('"').partition(":")
    if colon and not _SEQUENCE.fullmatch(sequence):
        return Moment(tag, None)
    return Moment(epoch, int(sequence) if colon else None)


def read_expected(given: object) -> tuple[Moment, ...]:
    """The state that `if_match` of a frame names, as a request's header does; nothing for any.

    Raises Invalid.
    """
    if given is None:
        return ()
    epoch, colon, sequence = given.partition(":") if isinstance(given, str) else ("", "", "")
    if not _EPOCH.fullmatch(epoch) or (colon and not _SEQUENCE.fullmatch(sequence)):
        raise Invalid(
            f"if_match must be EPOCH:SEQUENCE or EPOCH, not {str(given)[:_LONGEST_SHOWN]!r}"
        )
    return (Moment(epoch, int(sequence) if colon else None),)


def check_moment(name: str, epoch: str, sequence: int, wanted: Collection[Moment]) -> None:
    """Raise AnotherState unless a model is in one of the states that a request is for.

    wanted: nothing where the request is for any state.
    """
    if not wanted or any(one.epoch == epoch and one.sequence in (None, sequence) for one in wanted):
        return
    asked = " or ".join(map(str, wanted))[:_LONGEST_SHOWN]
    raise AnotherState(
        f"model {name!r} is at {Moment(epoch, sequence)}, the request is for {asked}; look at the "
        "model before you go on"
    )
