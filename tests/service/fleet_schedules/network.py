"""The fates of messages in a schedule: calm for some steps, and stormy for others."""

import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from random import Random

from tests.service.jetstream.network import (
    Call,
    Delivered,
    Fate,
    Kind,
    Network,
    RefusedWith,
    is_possible,
)

CHECKER = "checker"
# The fields of reads and calls that name the subject which they ask for.
_ASKED = ("last_by_subj", "next_by_subj", "filter", "subjects_filter")


class StormyNetwork(Network):
    """Draws each fate.

    odds: of a message to have another one than to be delivered. client: whose messages may have
    one; empty for all.
    """

    def __init__(
        self, random: Random, fates: Sequence[Sequence[Fate]], subjects: Sequence[str]
    ) -> None:
        """Begin calmly; the arguments are those of `Profile`."""
        self._random, self.odds, self.client = random, 0.0, ""
        self._fates, self._subjects = fates, subjects

    def fate(self, call: Call) -> Fate:
        if call.client == CHECKER or self._random.random() >= self.odds:
            return Delivered()
        if call.kind in (Kind.PUSH, Kind.PUBLISH) or not self._is_exposed(call):
            return Delivered()
        drawn = [self._random.choice(fates) for fates in self._fates]
        possible = [fate for fate in drawn if is_possible(call.kind, fate)]
        if call.kind is Kind.CALL:  # which a server refuses with other codes
            possible = [fate for fate in possible if not isinstance(fate, RefusedWith)]
        return self._random.choice(possible) if possible else Delivered()

    def _is_exposed(self, call: Call) -> bool:
        if self.client not in ("", call.client):
            return False
        subject = _subject(call)
        return any(fnmatchcase(subject, pattern) for pattern in self._subjects)


def _subject(call: Call) -> str:
    """Return the subject of a message, or that which a read or a call asks for."""
    if call.kind not in (Kind.READ, Kind.CALL) or not call.body:
        return call.subject
    request = json.loads(call.body)
    return str(next((request[name] for name in _ASKED if name in request), call.subject))
