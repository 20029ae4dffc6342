"""How a replica knows that it is not cut off: most NATS servers hear each other where it is."""

import asyncio
import json
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.service.nats import MISSING

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from wolfstream.service.cluster import members, quorum
from wolfstream.service.cluster.members import Members, Replica
from wolfstream.service.cluster.quorum import StreamState, majority_heard_ago, stream_state
from wolfstream.service.fleet.connection import NatsTimeout


def info(*ages: float, leader: str = "n0") -> dict[str, Any]:
    """What a stream's server says, of copies that were heard so many seconds ago."""
    copies = [
        {"name": f"n{i}", "active": int(age * 1e9), "current": age < 10}
        for i, age in enumerate(ages, 1)
    ]
    return {
        "config": {"num_replicas": 1 + len(ages), "max_bytes": 1000},
        "state": {"bytes": 10},
        "cluster": {"leader": leader, "replicas": copies},
    }


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ({}, 0.0),
        ({"cluster": {"leader": "n0"}}, 0.0),
        (info(0.5, 70.0), 0.5),
        (info(70.0, 0.25), 0.25),
        (info(1.0, 2.0, 3.0, 4.0), 2.0),
        (info(30.0, 40.0), 30.0),
        (info(0.0, 0.5, leader=""), None),
    ],
)
def test_leader_tells_when_most_copies_were_heard(told: dict[str, Any], seconds: float | None):
    assert majority_heard_ago(told) == seconds


@pytest.mark.parametrize(
    ("told", "missing"),
    [
        (info(), 0),
        (info(0.1, 0.2), 0),
        (info(0.1, 70.0), 1),
        (
            {
                **info(0.1, 0.2),
                "cluster": {"leader": "n0", "replicas": info(0.1)["cluster"]["replicas"]},
            },
            1,
        ),
        ({**info(), "cluster": None}, 0),
    ],
)
def test_copies_that_lag_or_are_gone_are_missing(told: dict[str, Any], missing: int):
    assert stream_state(told) == StreamState(missing, 10, 1000)


def test_offline_copy_is_missing():
    told = info(0.1, 0.2)
    told["cluster"]["replicas"][1]["offline"] = True
    assert stream_state(told).missing_copies == 1


def test_bound_of_a_stream_is_the_one_without_a_reserve():
    told = info()
    told["config"] |= {"max_bytes": 5000, "metadata": {"wolfstream-bytes": "1000"}}
    assert stream_state(told).most_bytes == 1000


class Servers:
    """The NATS servers of one replica, of which one is connected. info: what it says of streams."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop, self.connected, self.client = loop, True, self
        self.info: dict[str, Any] | None = info(0.1, 0.1)

    async def call(self, _: str, __: Any) -> dict[str, Any]:
        if self.info is None:
            raise NatsTimeout("no answer from NATS")
        return self.info

    async def subscribe(self, _: str, cb: Any) -> None:
        self.hear = cb

    async def publish(self, _: str, __: bytes) -> None:
        pass


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything that takes seconds take hundredths of seconds."""
    monkeypatch.setattr(members, "BEAT_SECONDS", 0.02)
    monkeypatch.setattr(members, "_LISTEN_SECONDS", 0.02)
    monkeypatch.setattr(members, "_SILENT_SECONDS", 0.1)
    monkeypatch.setattr(members, "_SUSPECTED_SECONDS", 0.05)
    monkeypatch.setattr(quorum, "_ASK_SECONDS", 0.01)


def heartbeat(url: str) -> bytes:
    """What a replica announces."""
    return json.dumps(Replica(url, True, {}, {}, "secret")).encode()


async def until(look: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not look():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def run(work: Callable[[Servers, Members], Any], max_lag_seconds: float = 0.3) -> None:
    """Run a test with a replica and its servers."""

    async def live() -> None:
        servers: Any = Servers(asyncio.get_running_loop())
        own = Replica("http://own", True, {}, {}, "secret")
        replica = Members(servers, own.url, lambda: own, max_lag_seconds)
        await until(lambda: replica.settled)
        await work(servers, replica)

    asyncio.run(live())


@pytest.mark.usefixtures("quick")
class TestMembers:
    @pytest.mark.parametrize("cut_off", [None, info(40.0, 50.0), info(0.0, 0.0, leader="")])
    def test_knows_too_little_where_its_server_is_cut_off(self, cut_off: dict[str, Any] | None):
        """It is connected all the while."""

        async def work(servers: Servers, replica: Members) -> None:
            assert not replica.outdated
            assert replica.lag_seconds == 0.0
            servers.info = cut_off
            await until(lambda: replica.outdated)
            assert replica.lag_seconds > 0.3

        run(work)

    def test_listens_again_before_it_knows_enough(self):
        async def work(servers: Servers, replica: Members) -> None:
            servers.info = None
            await until(lambda: replica.outdated)
            servers.info = info(0.0, 0.0)
            await until(lambda: not replica.outdated)
            assert not replica.settled
            await until(lambda: replica.settled)

        run(work)

    def test_knows_too_little_after_it_was_stopped(self):
        """Until it has heard what the others did meanwhile."""

        async def work(_: Servers, replica: Members) -> None:
            time.sleep(0.5)  # noqa: ASYNC251 - as by SIGSTOP
            assert replica.outdated
            await until(lambda: not replica.outdated)
            assert not replica.settled
            await until(lambda: replica.settled)

        run(work)

    def test_keeps_a_replica_that_is_heard_though_no_call_reaches_it(self):
        """Its models are not moved: only this replica cannot connect to it."""

        async def work(servers: Servers, replica: Members) -> None:
            for _ in range(20):
                await servers.hear(SimpleNamespace(data=heartbeat("http://other")))
                replica.suspect("http://other")
                await asyncio.sleep(0.01)
                assert [one.url for one in replica.others()] == ["http://other"]

        run(work)

    def test_misses_a_suspected_replica_sooner(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(members, "_SILENT_SECONDS", 60.0)

        async def work(servers: Servers, replica: Members) -> None:
            for url in ("http://suspected", "http://other"):
                await servers.hear(SimpleNamespace(data=heartbeat(url)))
            replica.suspect("http://suspected")
            assert len(replica.others()) == 2
            await until(lambda: len(replica.others()) == 1)
            assert replica.others()[0].url == "http://other"

        run(work)

    def test_goes_on_while_one_copy_is_away(self):
        async def work(servers: Servers, replica: Members) -> None:
            servers.info = info(0.0, 100.0)
            await asyncio.sleep(0.5)
            assert {one.missing_copies for one in replica.streams.values()} == {1}
            assert not replica.outdated
            assert replica.settled

        run(work)
