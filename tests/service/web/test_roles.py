"""The roles that a replica gives itself, while what it does for some models does not end."""

import asyncio
import itertools
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.service.nats import MISSING
from wolfstream.service.errors import StorageFailed
from wolfstream.service.settings import Settings

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from wolfstream.service.cluster import roles as module
from wolfstream.service.cluster.members import Leadership, Replica
from wolfstream.service.cluster.roles import Roles

OWN, OTHER = "http://own", "http://other"
_PATIENCE_SECONDS = 60.0


class FakeLeading:
    """Models that are led and followed at once.

    But `slow` is never followed to its end, and `away` only at the second attempt.

    failures: how many of the next takeovers fail. attempts: the times of all takeovers.
    """

    def __init__(self) -> None:
        self.led, self.followed = list[str](), dict[str, int]()
        self.begun = list[str]()
        self.failures, self.attempts = 0, list[float]()

    def leads(self, name: str) -> bool:
        return name in self.led

    async def lead(self, name: str) -> bool:
        self.followed.pop(name, None)
        if name not in self.led:
            self.attempts.append(time.monotonic())
            if self.failures:
                self.failures -= 1
                raise StorageFailed("NATS is away")
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
    lag_seconds = 0.0

    def __init__(self, _nats: Any, _url: str, report: Callable[[], Replica], _lag: float) -> None:
        self._report = report
        self.there = list[Replica]()

    def others(self) -> list[Replica]:
        return self.there

    def living(self) -> list[Replica]:
        return [self._report(), *self.there]

    def announce(self) -> None:
        pass


class Roled:
    """The roles of a replica with fakes around them.

    champions: whom models follow. numbers: of all models. names: of those that have been made.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "Members", FakeMembers)
        self.leading, self.champions = FakeLeading(), dict[str, str]()
        self.numbers = {1}
        self.names = ["m", "other"]

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
                numbers=self.numbers,
                names=self.names,
                find=lambda _: None,
            ),
            mark_acknowledged=lambda *_: None,
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
        replica = Roled(monkeypatch)
        leads = {"slow": Leadership(3, 7, 1), "quick": Leadership(3, 7, 1)}
        replica.members.there = [Replica(OTHER, True, leads, {})]
        await until(lambda: "slow" in replica.leading.begun and "quick" in replica.leading.followed)
        replica.members.there = []
        await until(lambda: replica.leading.led == ["quick"])
        assert replica.leading.begun.count("slow") == 1
        replica.roles.stop()

    asyncio.run(live())


def test_refused_follow_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """That NATS is away is no internal error; the next look tries again."""

    async def live() -> None:
        replica = Roled(monkeypatch)
        replica.members.there = [Replica(OTHER, True, {"away": Leadership(3, 7, 1)}, {})]
        await until(lambda: "away" in replica.leading.followed)
        replica.roles.stop()

    asyncio.run(live())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "the catalogue could not be read" in caplog.text


def test_challengers_are_led_with_their_champion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def live() -> None:
        replica = Roled(monkeypatch)
        replica.champions["below"] = "above"
        leads = {"above": Leadership(3, 7, 1), "below": Leadership(3, 7, 1)}
        replica.members.there = [Replica(OTHER, True, leads, {})]
        await until(lambda: "above" in replica.leading.followed)
        replica.members.there = []
        await until(lambda: replica.leading.led == ["above", "below"])
        assert replica.leading.begun == ["above"]
        replica.roles.stop()

    asyncio.run(live())


def test_a_model_that_another_replica_has_deleted_is_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def live() -> None:
        replica = Roled(monkeypatch)
        await replica.leading.lead("m")
        replica.numbers.clear()
        await until(lambda: replica.leading.led == [])
        replica.roles.stop()

    asyncio.run(live())


class TestWithoutLeader:
    """A model that some replica has led has a leader again, whatever its takeover met."""

    PAUSE = 0.05

    @pytest.fixture(autouse=True)
    def quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "BEAT_SECONDS", 0.02)
        monkeypatch.setattr(module, "_WATCH_SECONDS", 0.01)
        monkeypatch.setattr(module, "_FIRST_PAUSE", self.PAUSE)

    async def followed(self, monkeypatch: pytest.MonkeyPatch) -> Roled:
        """Return the roles of a replica that stands by for a model."""
        replica = Roled(monkeypatch)
        replica.members.there = [Replica(OTHER, True, {"m": Leadership(3, 7, 1)}, {})]
        await until(lambda: "m" in replica.leading.followed)
        return replica

    def test_is_taken_over_again_after_longer_and_longer_pauses(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        async def live() -> list[float]:
            replica = await self.followed(monkeypatch)
            replica.leading.failures = 3
            replica.members.there = []
            await until(lambda: replica.leading.led == ["m"])
            replica.roles.stop()
            return replica.leading.attempts

        attempts = asyncio.run(live())
        pauses = [after - before for before, after in itertools.pairwise(attempts)]
        assert len(pauses) == 3
        assert all(pause >= self.PAUSE * 2**n for n, pause in enumerate(pauses))

    def test_is_not_taken_over_while_no_server_is_connected(self, monkeypatch: pytest.MonkeyPatch):
        async def live() -> None:
            replica = await self.followed(monkeypatch)
            replica.members.lag_seconds = 1.0
            replica.members.there = []
            await asyncio.sleep(20 * self.PAUSE)
            assert replica.leading.attempts == []
            replica.members.lag_seconds = 0.0
            await until(lambda: replica.leading.led == ["m"])
            replica.roles.stop()

        asyncio.run(live())

    def test_is_led_again_where_its_term_has_ended(self, monkeypatch: pytest.MonkeyPatch):
        """Without a rival, as after a doubt; nobody has asked for it."""

        async def live() -> None:
            replica = Roled(monkeypatch)
            await replica.leading.lead("m")
            await until(lambda: replica.roles._changes._led_before == {"m"})
            await replica.leading.release("m")
            await until(lambda: replica.leading.led == ["m"])
            replica.roles.stop()

        asyncio.run(live())

    def test_is_forgotten_once_it_is_deleted(self, monkeypatch: pytest.MonkeyPatch):
        async def live() -> None:
            replica = await self.followed(monkeypatch)
            replica.leading.failures = 10**9
            replica.members.there = []
            await until(lambda: replica.leading.attempts)
            replica.names.remove("m")
            await until(lambda: not replica.roles._changes._led_before)
            begun = len(replica.leading.attempts)
            await asyncio.sleep(20 * self.PAUSE)
            assert len(replica.leading.attempts) <= begun + 1
            replica.roles.stop()

        asyncio.run(live())
