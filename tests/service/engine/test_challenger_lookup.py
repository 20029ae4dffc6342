"""Finding a model's challengers while it, or one of them, changes hands in a fleet."""

import asyncio
from typing import Any

import pytest

from tests.service.memory_storage import MemoryStorage
from wolfstream.service.engine.challenger_lookup import ChallengerLookup
from wolfstream.service.engine.idempotency import IdempotencyKeys
from wolfstream.service.engine.leading import Leadership
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.new_models import NewModels
from wolfstream.service.engine.promotion import Promotion
from wolfstream.service.errors import NotFollowing, NotLeader, UnknownModel
from wolfstream.service.model.live import Model
from wolfstream.service.model.memory import ModelMemory
from wolfstream.service.spec.model import ModelSpec

UNUSED: Any = None


class Replica:
    """A champion `a` that is led here, and its challenger `b` that is in the catalogue only."""

    def __init__(self) -> None:
        storage = MemoryStorage().storage
        keys = IdempotencyKeys(10, 1000)
        self.models = LiveModels(storage, keys, ModelMemory(1 << 40))
        new_models = NewModels(storage, self.models, 10)
        self.leading = Leadership(storage, self.models, keys, UNUSED, UNUSED, UNUSED)
        self.champion = new_models.create("a", ModelSpec())[0]
        new_models.create("other", ModelSpec())
        with storage.catalogue.creating("b", ModelSpec().plain(), "first", self.champion.id):
            pass

    def named(self, name: str) -> Model:
        lookup = ChallengerLookup(self.models, lambda _: self.champion, self.leading)
        return asyncio.run(lookup.named(self.champion, name))


def test_challenger_not_led_yet_asks_again():
    """It does follow: the leader has changed between two looks, and the next leader has both."""
    with pytest.raises(NotLeader, match="'b'"):
        Replica().named("b")


def test_what_follows_nothing_is_refused():
    replica = Replica()
    with pytest.raises(NotFollowing):
        replica.named("other")
    with pytest.raises(UnknownModel):
        replica.named("none")


def test_next_leader_promotes_challenger():
    """On the writer's thread, after the request has waited for its turn."""
    replica = Replica()
    challenger = Model(7, "b", ModelSpec())
    challenger.led = False
    challengers: Any = type("NoneFollow", (), {"followers": lambda *_: []})()
    promotion = Promotion(UNUSED, replica.models, challengers, *[UNUSED] * 4)
    with pytest.raises(NotLeader, match="'b'"):
        promotion.promote(replica.champion, challenger)
