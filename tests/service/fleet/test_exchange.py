"""An exchange of two models: one batch in two logs of a stream, stored whole or not at all."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.nats import MISSING, NatsServers
from wolfstream.service.errors import InDoubt, NotLeader, StorageFailed
from wolfstream.service.storage.entries import Rollback

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from tests.service.fleet.test_log import Replica, be_patient, bound_of_log
from tests.service.fleet.trio import wait_for
from wolfstream.service.fleet.connection import NatsTimeout
from wolfstream.service.fleet.streams import log_location, shares_stream
from wolfstream.service.storage.interfaces import NameTaken
from wolfstream.service.storage.term import Part

_STREAMS = 8
# Above those that catalogues give.
_numbers = itertools.count(1000)
Pair = tuple[Replica, Replica]


@pytest.fixture
def replicas(servers: NatsServers, tmp_path: Path) -> Iterator[Pair]:
    pair = Replica(servers, tmp_path / "a"), Replica(servers, tmp_path / "b")
    yield pair
    for replica in pair:
        replica.journal.close()


@pytest.fixture
def models(replicas: Pair) -> tuple[int, int]:
    """A champion with one sample, and its challenger, which are led by the first replica."""
    champion = next(_numbers)
    challenger = champion + 10_000 * _STREAMS
    assert replicas[0].append(champion, 1) is None
    replicas[0].make(challenger)
    return champion, challenger


def exchange(replica: Replica, models: tuple[int, int]) -> None:
    told = {"to": 1, "at": 1, "time": "2026-01-01T00:00:00Z"}
    replica.journal.exchange(
        {replica.terms[one]: Rollback(told, f"d{one}", f"e{one}") for one in models}
    )


def exchanged(replica: Replica, models: tuple[int, int]) -> list[bool]:
    """Which of the two logs have it, read anew."""
    return [bool(replica.journal.reader(model).rollbacks()) for model in models]


def test_both_logs_have_it_and_go_on(replicas: Pair, models: tuple[int, int]):
    leader, reader = replicas
    exchange(leader, models)
    assert leader.append(models[0], 2) is None
    checkpoint = leader.entry(models[1], 1)._replace(samples=0, kind="checkpoint")
    assert leader.commit(models[1], Part([checkpoint])) is None
    assert exchanged(reader, models) == [True, True]
    assert reader.told(models[0], 1) == [2]
    assert reader.told(models[1], 1) == [1]


@pytest.mark.parametrize("taken", [0, 1])
def test_neither_has_it_where_another_replica_writes_one_of_them(
    replicas: Pair, models: tuple[int, int], taken: int
):
    old, new = replicas
    new.lead(models[taken])
    with pytest.raises(NotLeader):
        exchange(old, models)
    assert exchanged(new, models) == [False, False]
    assert [old.terms[model].over for model in models] == [taken == 0, taken == 1]
    assert isinstance(old.append(models[taken], 2), NotLeader)
    assert old.append(models[1 - taken], 2) is None


def test_without_an_answer_it_is_sent_again_and_stored_once(
    replicas: Pair, models: tuple[int, int]
):
    leader, reader = replicas
    leader.fate = ["lost", "unheard", "lost"]
    exchange(leader, models)
    assert exchanged(reader, models) == [True, True]
    assert [len(reader.journal.reader(model).rollbacks()) for model in models] == [1, 1]


@pytest.mark.parametrize(("fate", "stored"), [("lost", False), ("unheard", True)])
def test_without_an_answer_in_time_it_ends_both_terms(
    replicas: Pair,
    models: tuple[int, int],
    fate: str,
    stored: bool,
    monkeypatch: pytest.MonkeyPatch,
):
    """Neither model has applied it, so who leads them next reads whether it is there."""
    leader, reader = replicas
    be_patient(monkeypatch, 0.0)
    leader.fate = [fate]
    with pytest.raises(InDoubt):
        exchange(leader, models)
    be_patient(monkeypatch, 60.0)
    assert [leader.terms[model].over for model in models] == [True, True]
    assert isinstance(leader.append(models[0], 2), NotLeader)
    assert exchanged(reader, models) == [stored, stored]
    for model in models:
        reader.lead(model)
    exchange(reader, models)
    assert [len(leader.journal.reader(model).rollbacks()) for model in models] == [1 + stored] * 2


def test_a_full_log_takes_it(replicas: Pair, models: tuple[int, int]):
    leader, reader = replicas
    before = bound_of_log(leader, models[0])
    stream, _ = log_location(models[0])
    found = leader.nats.run(leader.nats.call(f"STREAM.INFO.{stream}", {}), 60)
    full = {**found["config"], "max_bytes": found["state"]["bytes"] + 1}
    leader.nats.run(leader.nats.call(f"STREAM.UPDATE.{stream}", full), 60)
    try:
        assert isinstance(leader.append(models[0], 2), StorageFailed)
        exchange(leader, models)
    finally:
        full["max_bytes"] = before
        leader.nats.run(leader.nats.call(f"STREAM.UPDATE.{stream}", full), 60)
    assert exchanged(reader, models) == [True, True]


class TestCatalogue:
    """The numbers of models decide in which streams their logs are."""

    def test_gives_a_challenger_a_log_in_the_stream_of_its_champion(self, replicas: Pair):
        catalogue = replicas[0].catalogue
        with catalogue.creating("champion", {}, "epoch") as champion:
            pass
        for name in ("one", "another"):
            with catalogue.creating(name, {}, "epoch", champion.model) as made:
                pass
            assert shares_stream(made.model, champion.model)
            assert made.model != champion.model

    def test_of_another_replica_knows_who_follows_whom(self, replicas: Pair):
        own, other = (one.catalogue for one in replicas)
        with own.creating("above", {}, "epoch") as champion:
            pass
        with own.creating("below", {}, "epoch", champion.model) as challenger:
            pass
        assert {"above", "below"} <= {found.name for found in other.models()}
        assert other.champions["below"] == "above"
        assert other.is_followed(champion.model)
        own.delete(champion)
        assert "above" not in {found.name for found in other.models()}
        assert "below" not in other.champions
        own.delete(challenger)
        assert not {"above", "below"} & {found.name for found in other.models()}

    def test_of_another_replica_is_told_of_changes_without_asking(
        self, replicas: Pair, monkeypatch: pytest.MonkeyPatch
    ):
        own, other = (one.catalogue for one in replicas)
        other.watch()

        async def unanswered(*_: Any) -> None:
            raise NatsTimeout("no answer")

        monkeypatch.setattr(replicas[1].nats, "get", unanswered)
        with own.creating("over", {}, "epoch") as champion:
            pass
        with own.creating("under", {}, "epoch", champion.model) as challenger:
            pass
        wait_for(lambda: other.champions.get("under") == "over")
        assert other.is_followed(champion.model)
        own.delete(champion)
        wait_for(lambda: "under" not in other.champions)
        own.delete(challenger)
        wait_for(lambda: not other.is_followed(champion.model))

    def test_says_that_a_name_is_taken(self, replicas: Pair):
        catalogue = replicas[0].catalogue
        with catalogue.creating("taken", {}, "epoch"):
            pass
        with pytest.raises(NameTaken), catalogue.creating("taken", {}, "epoch"):
            pass
