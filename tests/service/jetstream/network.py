"""The fate of each message between clients and the server.

A `Network` decides about each one: the base class delivers everything, `ScriptedNetwork` does what
a test has said, and `RandomNetwork` draws from a seed. None of them looks at a clock.
"""

import enum
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


class Kind(enum.Enum):
    """What a message is, for those who decide about its fate."""

    APPEND = "a message for a stream, or the last one of a batch"
    PART = "a message of a batch that goes on"
    READ = "a direct get, which any copy of a stream answers"
    CALL = "a call of JetStream's interface, which the leader answers"
    PUBLISH = "a message that no stream stores, such as a heartbeat of a replica"
    PUSH = "a message from the server to one subscription"


class Call(NamedTuple):
    """A message whose fate is asked for.

    client: that sends it, or that is to get it if it is a push.
    number: of the client's messages of this kind, from 1.
    """

    kind: Kind
    client: str
    number: int
    subject: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Delivered:
    """It arrives, and so does the answer."""


@dataclass(frozen=True)
class Unheard:
    """It arrives, and the answer is lost.

    timed: whether the client waits on its loop for as long as it would; else it does not wait.
    """

    timed: bool = False


@dataclass(frozen=True)
class Lost:
    """It never arrives. timed: see `Unheard`."""

    timed: bool = False


@dataclass(frozen=True)
class Held:
    """It arrives after later messages.

    past: the number of later appends and calls, of any client, that arrive first; None to hold it
    until `Wire.release`.
    heard: whether the client waits for the answer; else it gets a time-out now.
    """

    past: int | None = None
    heard: bool = False


@dataclass(frozen=True)
class Late:
    """It arrives after some seconds on the client's loop.

    there: until it arrives.
    back: from then until the answer does.
    """

    there: float = 0.0
    back: float = 0.0


@dataclass(frozen=True)
class RefusedWith:
    """The server refuses it without a look at it: an append or a call.

    code: JetStream's number of the error.
    status: like that of HTTP.
    """

    code: int
    status: int = 400
    description: str = "refused by the network"


@dataclass(frozen=True)
class Behind:
    """A copy answers the read that lacks the last changes; None for a copy that has nothing."""

    changes: int | None = None


@dataclass(frozen=True)
class Unserved:
    """No server holds the stream now, which the client learns at once."""


Fate: TypeAlias = Delivered | Unheard | Lost | Held | Late | RefusedWith | Behind | Unserved

_ANY = (Delivered, Late, Lost)
_ANSWERED = (Delivered, Unheard, Lost, Late, RefusedWith, Unserved)
_POSSIBLE: dict[Kind, tuple[type, ...]] = {
    Kind.APPEND: (*_ANSWERED, Held),
    Kind.PART: (*_ANY, Held),
    Kind.READ: (Delivered, Unheard, Lost, Late, Behind, Unserved),
    Kind.CALL: (*_ANSWERED, Held),
    Kind.PUBLISH: (*_ANY, Held),
    Kind.PUSH: _ANY,
}


def is_possible(kind: Kind, fate: Fate) -> bool:
    """Return whether a message of a kind can have a fate."""
    return isinstance(fate, _POSSIBLE[kind])


class Network:
    """A network that delivers everything, and the base of others."""

    def fate(self, call: Call) -> Fate:  # noqa: ARG002 - others look at it
        """Return what happens to a message. Called for each one, in the order of sending."""
        return Delivered()


class _Line(NamedTuple):
    """What a test has said about the next messages of a kind, client and subject."""

    fates: list[Fate]
    client: str
    kind: Kind | None
    subject: str

    def covers(self, call: Call) -> bool:
        return (
            bool(self.fates)
            and self.client in ("", call.client)
            and self.kind in (None, call.kind)
            and call.subject.startswith(self.subject)
            and is_possible(call.kind, self.fates[0])
        )


class ScriptedNetwork(Network):
    """A network that does what a test has said, and delivers everything else."""

    def __init__(self) -> None:
        self._lines: list[_Line] = []

    def next(
        self, *fates: Fate, client: str = "", kind: Kind | None = None, subject: str = ""
    ) -> None:
        """Give the next messages that fit these fates, one after another.

        client, kind: of the messages; without them, of any.
        subject: how it begins.
        """
        self._lines.append(_Line(list(fates), client, kind, subject))

    @property
    def left(self) -> list[Fate]:
        """Return the fates that no message has had yet."""
        return [fate for line in self._lines for fate in line.fates]

    def fate(self, call: Call) -> Fate:
        """Return what the test has said first about such messages."""
        for line in self._lines:
            if line.covers(call):
                return line.fates.pop(0)
        return Delivered()


# For each kind, fates and how often one of a hundred messages has them.
Odds: TypeAlias = Mapping[Kind, Sequence[tuple[Fate, float]]]


class RandomNetwork(Network):
    """A network that draws each fate from a seed.

    The n-th message of a kind from a client always has the same fate, in whatever order the clients
    send.

    odds: of each fate in percent; the rest is delivered.
    """

    def __init__(self, seed: int, odds: Odds) -> None:
        for kind, fates in odds.items():
            if impossible := [fate for fate, _ in fates if not is_possible(kind, fate)]:
                raise ValueError(f"no {kind.name} can be {impossible}")
        self._seed, self._odds = seed, odds
        self._sources: dict[tuple[str, Kind], random.Random] = {}

    def fate(self, call: Call) -> Fate:
        """Return the fate that the client's next random number stands for."""
        key = call.client, call.kind
        if key not in self._sources:
            self._sources[key] = random.Random(f"{self._seed} {call.client} {call.kind.name}")
        drawn = 100 * self._sources[key].random()
        for fate, percent in self._odds.get(call.kind, ()):
            drawn -= percent
            if drawn < 0:
                return fate
        return Delivered()
