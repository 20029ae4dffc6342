"""The roles that a replica gives itself, while what it does for some models does not end."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.service.nats import MISSING
from wolfstream.service.errors import StorageFailed
from wolfstream.service.settings import Settings

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from wolfstream.service.fleet.members import Led, Replica
from wolfstream.service.web import roles as module
from wolfstream.service.web.roles import Roles

OWN, OTHER = "http://own", "http://other"
_PATIENCE_SECONDS = 60.0


class FakeLeading:
    """Models that are led and followed at once.

    But `slow` is never followed to its end, and `away` only at the second attempt.
    """

    def __init__(self) -> None:
        self.led, self.followed = list[str](), dict[str, int]()
        self.begun = list[str]()

    def leads(self, name: str) -> bool:
        return name in self.led

    async def lead(self, name: str) -> bool:
        self.followed.pop(name, None)
        if name not in self.led:
            self.led.append(name)
        return True

    async def follow(self, name: str) -> None:
        self.begun.append(name)
        if name == "slow":
            await asyncio.Event().wait()
        if name == "away" and self.begun.count(name) == 1:
            raise StorageFailed("the catalogue could not be read")
        self.followed[name] = 7

    async def release(self, name: str) -> None:
        self.led.remove(name)

    def unfollow(self, name: str) -> None:
        self.followed.pop(name, None)


class FakeMembers:
    """Other replicas, as a test has them."""

    settled, url = True, OWN

    def __init__(self, _nats: Any, _url: str, report: Callable[[], Replica], _lag: float) -> None:
        self._report = report
        self.there = list[Replica]()

    def others(self) -> list[Replica]:
        return self.there

    def living(self) -> list[Replica]:
        return [self._report(), *self.there]

    def tell(self) -> None:
        pass


class Roled:
    """The roles of a replica with fakes around them.

    champions: whom models follow. learners: of models with several. numbers: of all models.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "Members", FakeMembers)
        self.leading, self.champions = FakeLeading(), dict[str, str]()
        self.learners, self.numbers = dict[str, int](), {1}

        async def ready() -> None:
            pass

        engine: Any = SimpleNamespace(
            leading=self.leading,
            readiness=SimpleNamespace(reached=True, wait=ready),
            term_of=lambda _: 9,
            recovered=lambda: [
                SimpleNamespace(name=n, id=1, published=P) for n in self.leading.led
            ],
        )
        fleet: Any = SimpleNamespace(
            nats=None,
            catalogue=SimpleNamespace(
                champions=self.champions,
                learners=self.learners,
                numbers=self.numbers,
                find=lambda _: None,
            ),
            note_acknowledged=lambda *_: None,
        )
        self.roles = Roles(engine, fleet, Settings(advertise=OWN))

    @property
    def members(self) -> FakeMembers:
        members: Any = self.roles.members
        assert isinstance(members, FakeMembers)
        return members


P = SimpleNamespace(sequence=7)


async def until(look: Callable[[], Any]) -> None:
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while not look():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def test_a_follow_without_end_delays_no_takeover(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it keep another model from being followed."""

    async def live() -> None:
        one = Roled(monkeypatch)
        leads = {"slow": Led(3, 7), "quick": Led(3, 7)}
        one.members.there = [Replica(OTHER, True, leads, {})]
        await until(lambda: "slow" in one.leading.begun and "quick" in one.leading.followed)
        one.members.there = []
        await until(lambda: one.leading.led == ["quick"])
        assert one.leading.begun.count("slow") == 1
        one.roles.stop()

    asyncio.run(live())


def test_refused_follow_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """That NATS is away is no internal error; the next look tries again."""

    async def live() -> None:
        one = Roled(monkeypatch)
        one.members.there = [Replica(OTHER, True, {"away": Led(3, 7)}, {})]
        await until(lambda: "away" in one.leading.followed)
        one.roles.stop()

    asyncio.run(live())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "the catalogue could not be read" in caplog.text


def test_challengers_are_led_with_their_champion_and_nobody_stands_by_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def live() -> None:
        one = Roled(monkeypatch)
        one.champions["below"] = "above"
        leads = {"above": Led(3, 7), "below": Led(3, 7)}
        one.members.there = [Replica(OTHER, True, leads, {})]
        await until(lambda: "above" in one.leading.followed)
        one.members.there = []
        await until(lambda: one.leading.led == ["above", "below"])
        assert one.leading.begun == ["above"]
        one.roles.stop()

    asyncio.run(live())


def test_partitions_are_led_as_soon_as_their_model_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async def live() -> None:
        one = Roled(monkeypatch)
        one.learners |= {"hot": 2, "cold": 2}
        one.members.there = [Replica(OTHER, False, {"hot": Led(3, 7)}, {})]
        await until(lambda: one.leading.led == ["hot:0", "hot:1"])
        one.roles.stop()

    asyncio.run(live())


def test_a_model_that_another_replica_has_deleted_is_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def live() -> None:
        one = Roled(monkeypatch)
        await one.leading.lead("m")
        one.numbers.clear()
        await until(lambda: one.leading.led == [])
        one.roles.stop()

    asyncio.run(live())
