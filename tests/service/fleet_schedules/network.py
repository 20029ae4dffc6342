"""The fates of messages in a schedule: calm for some steps, and stormy for others."""

from random import Random

from tests.service.jetstream.network import (
    Behind,
    Call,
    Delivered,
    Fate,
    Held,
    Kind,
    Late,
    Lost,
    Network,
    RefusedWith,
    Unheard,
    Unserved,
    is_possible,
)

CHECKER = "checker"


class StormyNetwork(Network):
    """Draws each fate. odds: of a message to have another one than to be delivered."""

    def __init__(self, random: Random) -> None:
        self._random, self.odds = random, 0.0

    def fate(self, call: Call) -> Fate:
        if call.client == CHECKER or self._random.random() >= self.odds:
            return Delivered()
        if call.kind in (Kind.PUSH, Kind.PUBLISH):
            return Delivered()
        past = self._random.choice((1, 2, 3, 5, 8, 13, 30))
        fates: list[Fate] = [
            *(Unheard(), Unheard(), Lost(), Lost(timed=True), Held(past), Held(past, heard=True)),
            *(Late(0.1, 0.1), Late(1.5, 1.0), Unserved()),
            *(Behind(1), Behind(3), Behind(None), RefusedWith(10164), RefusedWith(10164)),
        ]
        possible = [fate for fate in fates if is_possible(call.kind, fate)]
        if call.kind is Kind.CALL:  # which a server refuses with other codes
            possible = [fate for fate in possible if not isinstance(fate, RefusedWith)]
        return self._random.choice(possible)
