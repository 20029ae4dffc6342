"""The ranks of replicas for a model: even, and when one leaves, only its own models move."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.service.nats import MISSING, NatsServers

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from wolfstream.service.cluster import members
from wolfstream.service.cluster.members import (
    WRITTEN,
    Formats,
    Leadership,
    Members,
    Replica,
    ranked,
    stands_by,
    successor,
    unreadable,
)
from wolfstream.service.fleet.connection import NatsConnection

LIVING = [Replica(f"http://10.0.0.{number}:8000", True, {}, {}) for number in range(1, 4)]
NAMES = [f"model-{number}" for number in range(300)]


def leaders(living: list[Replica]) -> dict[str, str]:
    return {name: ranked(name, living)[0].url for name in NAMES}


def test_models_are_spread_evenly():
    counts = [list(leaders(LIVING).values()).count(one.url) for one in LIVING]
    assert all(75 <= count <= 125 for count in counts)


def test_leaving_replica_hands_to_standbys():
    before, after = leaders(LIVING), leaders(LIVING[1:])
    for name in NAMES:
        first, second, *_ = ranked(name, LIVING)
        stays = before[name] == first.url != LIVING[0].url
        assert after[name] == (first.url if stays else second.url)


def test_one_that_takes_no_models_leads_none():
    leaving = [LIVING[0]._replace(ready=False), *LIVING[1:]]
    assert leaders(leaving) == leaders(LIVING[1:])


class TestSuccessor:
    """Who leads a model that nobody leads any more."""

    def of(self, *followed: int | None) -> str:
        """Which replica, where each has followed the model so far, by the order of their ranks."""
        order = ranked("m", LIVING)
        living = [
            one if at is None else one._replace(follows={"m": at})
            for one, at in zip(order, followed, strict=True)
        ]
        found = successor("m", living[::-1])
        assert found is not None
        return f"number {[one.url for one in order].index(found.url)}"

    def test_is_the_first_where_none_follows(self):
        assert self.of(None, None, None) == "number 0"

    def test_is_who_follows_alone(self):
        assert self.of(None, None, 0) == "number 2"

    def test_is_not_who_has_much_left_to_read(self):
        assert self.of(2000, 10_000, None) == "number 1"

    def test_is_the_first_of_those_who_follow_closely(self):
        assert self.of(None, 9_950, 10_000) == "number 1"

    def test_is_nobody_where_none_takes_models(self):
        assert successor("m", [one._replace(ready=False) for one in LIVING]) is None


class TestStandby:
    """Who follows a model that the last in rank leads: the first, and maybe the second."""

    def of(self, *followed: int | None) -> list[bool]:
        *order, last = ranked("m", LIVING)
        leader = last._replace(leads={"m": Leadership(7, 10_000, 1)})
        others = [
            one if at is None else one._replace(follows={"m": at})
            for one, at in zip(order, followed, strict=True)
        ]
        return [stands_by(one.url, "m", leader, [leader, *others]) for one in others]

    def test_is_the_first_in_rank(self):
        assert self.of(None, None) == [True, False]

    def test_is_the_former_standby_until_first_catches_up(self):
        assert self.of(None, 10_000) == [True, True]
        assert self.of(2_000, 10_000) == [True, True]
        assert self.of(9_950, 10_000) == [True, False]


class TestFormats:
    """While versions are mixed, replicas lead whose formats all living ones can read."""

    @pytest.fixture(autouse=True)
    def nobody_falls_silent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(members, "_SILENT_SECONDS", 3600.0)

    @pytest.fixture(autouse=True)
    def others_are_known_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Members, "settled", True)

    @pytest.fixture
    def nats(self, servers: NatsServers) -> Iterator[NatsConnection]:
        connection = NatsConnection(servers.addresses, "test")
        yield connection
        connection.close()

    def hears(self, nats: NatsConnection, own: Formats, *told: list[Any]) -> Members:
        """Return a replica that has heard others."""
        members = Members(nats, "http://own", lambda: replica("http://own", own), 10.0)
        for one in told:
            nats.run(nats.client.publish("wolfstream.replicas", json.dumps(one).encode()), 10)
        deadline = time.monotonic() + 20
        while len(members.others()) < len(told):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return members

    def test_who_writes_what_another_one_cannot_read_takes_no_models(self, nats: NatsConnection):
        members = self.hears(nats, Formats(2, 1), list(replica("http://older", Formats(1, 1))))
        assert [one.url for one in ranked("m", members.living())] == ["http://older"]

    def test_all_who_write_the_same_take_models(self, nats: NatsConnection):
        newer = Formats(2, 2)
        members = self.hears(nats, newer, list(replica("http://newer", newer)))
        assert {one.url for one in ranked("m", members.living())} == {"http://own", "http://newer"}

    def test_who_does_not_know_the_others_yet_takes_no_models(
        self, nats: NatsConnection, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(Members, "settled", False)
        members = self.hears(nats, WRITTEN, list(replica("http://other", WRITTEN)))
        assert [one.url for one in ranked("m", members.living())] == ["http://other"]

    def test_a_later_version_may_tell_of_more_formats(self, nats: NatsConnection):
        later = [*replica("http://later", WRITTEN), "more"]
        later[5] = [1, 1, 1]
        members = self.hears(nats, WRITTEN, later)
        assert len(ranked("m", members.living())) == 2

    def test_older_version_stays_outside_a_fleet_of_later_ones(self, nats: NatsConnection):
        later = list(replica("http://later", Formats(2, 1)))
        members = self.hears(nats, Formats(1, 1), later)
        deadline = time.monotonic() + 20
        while not members.outside:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert "http://later" in members.outside
        assert [one.url for one in ranked("m", members.living())] == ["http://later"]

    def test_older_version_joins_where_another_one_is_as_old(self):
        old, later = replica("http://old", Formats(1, 1)), replica("http://later", Formats(2, 1))
        assert unreadable(Formats(1, 1), [later]) == ["http://later"]
        assert unreadable(Formats(1, 1), [later, old]) == []
        assert unreadable(Formats(1, 1), []) == []
        assert unreadable(Formats(2, 2), [later, old]) == []


def replica(url: str, formats: Formats) -> Replica:
    return Replica(url, True, {}, {}, "secret", formats)
