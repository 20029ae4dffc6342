"""Models that are recovered at the same time."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.specs import read_papers_spec
from wolfstream.service.engine.recovery_order import Room, SharedResources, recover
from wolfstream.service.errors import NotReady
from wolfstream.service.model.learner import Learner
from wolfstream.service.recovery import replay
from wolfstream.service.samples.record import to_record
from wolfstream.service.samples.validation import Samples
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.service.storage.entries import Entry
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.snapshot_format import State
from wolfstream.service.storage.term import Part

SPEC = read_papers_spec({"working_set": None, "asset": {"dimension": 8}})
NAMES = "abc"
PLENTY = 1 << 40
SOON = 60.0


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Storage]:
    """Three models, whose samples are in the journal alone."""
    with closing(open_storage(tmp_path)) as storage:
        random = np.random.default_rng(0)
        for name in NAMES:
            with storage.catalogue.creating(name, SPEC.plain(), name) as term:
                pass
            for block in range(5):
                samples = Samples(random.standard_normal((4, 2)), ["u", "v"] * 2)
                end = 4 * (block + 1)
                entry = Entry(term.model, end, 4, end, "asset", 1, to_record(samples))
                assert not storage.journal.append({term: Part([entry])})
        yield storage


class Watched:
    """Replays of blocks: how many models were computing at once, and which."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, together: int = 1) -> None:
        self.groups: set[str] = set()
        self._inside: set[str] = set()
        self._barrier = threading.Barrier(together)
        self._replay = replay._replay_block
        monkeypatch.setattr(replay, "_replay_block", self._watch)

    def _watch(self, learner: Learner, *given: Any) -> Any:
        name = learner.model.name
        self._inside.add(name)
        if not learner.sequence:
            self._barrier.wait(SOON)
        self.groups.add("".join(sorted(self._inside)))
        found = self._replay(learner, *given)
        self._inside.discard(name)
        return found


def recovered(storage: Storage, room: Room) -> dict[str, Learner]:
    return {one.model.name: one for one, _ in recover(storage, lambda _: None, room)}


def states(learners: dict[str, Learner]) -> dict[str, Any]:
    return {name: learners[name].state() for name in NAMES}


def test_they_compute_at_the_same_time(left: Storage, monkeypatch: pytest.MonkeyPatch):
    watched = Watched(monkeypatch, together=3)
    assert {one.sequence for one in recovered(left, Room(3, PLENTY)).values()} == {20}
    assert "abc" in watched.groups


def test_their_snapshots_are_loaded_at_the_same_time(
    left: Storage, monkeypatch: pytest.MonkeyPatch
):
    for learner in recovered(left, Room(3, PLENTY)).values():
        left.snapshots.save(learner.model.id, State(*learner.state()))
    all_load, load = threading.Barrier(3), left.snapshots.load

    def loaded(*which: int) -> State:
        all_load.wait(SOON)
        return load(*which)

    monkeypatch.setattr(left.snapshots, "load", loaded)
    assert {one.sequence for one in recovered(left, Room(3, PLENTY)).values()} == {20}


def test_each_is_what_it_is_alone(left: Storage):
    beside = states(recovered(left, Room(3, PLENTY)))
    for name, (plain, arrays) in states(recovered(left, Room(1, PLENTY))).items():
        assert beside[name][0] == plain
        assert beside[name][1].keys() == arrays.keys()
        for key, array in arrays.items():
            np.testing.assert_array_equal(beside[name][1][key], array)


@pytest.mark.parametrize("room", [Room(1, PLENTY), Room(3, 1)])
def test_without_room_they_come_one_by_one(
    left: Storage, monkeypatch: pytest.MonkeyPatch, room: Room
):
    watched = Watched(monkeypatch)
    assert list(recovered(left, room)) == list(NAMES)
    assert watched.groups == set(NAMES)


def test_one_whose_replay_has_ended_a_process_comes_last_and_alone(
    left: Storage, monkeypatch: pytest.MonkeyPatch
):
    watched = Watched(monkeypatch)
    left.journal.replays.leave_out(left.catalogue.models()[0].number, 8, 1)
    assert list(recovered(left, Room(3, PLENTY)))[-1] == "a"
    assert [group for group in watched.groups if "a" in group] == ["a"]


class TestThreads:
    """The process has one number of threads of a product."""

    def test_who_uses_another_number_waits(self):
        used: list[int] = []
        sharing, inside = SharedResources(used.append), threading.Event()
        with ThreadPoolExecutor() as pool:

            def other() -> None:
                with sharing.using_storage(), sharing.computing(2):
                    inside.set()

            with sharing.using_storage(), sharing.computing(1):
                waiting = pool.submit(other)
                assert not inside.wait(0.05)
                assert used == [1]
            waiting.result(SOON)
        assert used == [1, 2]

    def test_one_reads_while_another_computes(self):
        sharing, done = SharedResources(lambda _: None), threading.Event()

        def read() -> None:
            with sharing.using_storage():
                done.set()

        with ThreadPoolExecutor() as pool, sharing.using_storage():
            reading = pool.submit(read)
            assert not done.wait(0.05)
            with sharing.computing(1):
                reading.result(SOON)


def test_stop_ends_each_replay_before_its_next_block(
    left: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, replayed = list[str](), replay._replay_block

    def stopping(learner: Learner, *given: Any) -> Any:
        begun.append(learner.model.name)
        left.journal.replays.stop()
        return replayed(learner, *given)

    monkeypatch.setattr(replay, "_replay_block", stopping)
    with pytest.raises(NotReady):
        recovered(left, Room(1, PLENTY))
    assert len(begun) == 1


def test_none_uses_the_storage_after_the_end(left: Storage, monkeypatch: pytest.MonkeyPatch):
    """One fails for good while another computes: it is waited for, and then the storage closes."""
    begun, ended, over = threading.Event(), threading.Event(), threading.Event()
    of_recovery, of_sharing = replay._replay_block, SharedResources.using_storage
    of_ending, finished = SharedResources.end, list[int]()

    def replay_block(learner: Learner, *given: Any) -> Any:
        if learner.model.name == "a":
            assert begun.wait(SOON)
            raise KeyboardInterrupt
        begun.set()
        assert ended.wait(SOON)
        return of_recovery(learner, *given)

    def end(sharing: SharedResources) -> None:
        of_ending(sharing)
        ended.set()

    @contextmanager
    def using(sharing: SharedResources) -> Iterator[None]:
        try:
            with of_sharing(sharing):
                yield
        except BaseException:
            if ended.is_set():
                over.set()
            raise

    monkeypatch.setattr(replay, "_replay_block", replay_block)
    monkeypatch.setattr(SharedResources, "using_storage", using)
    monkeypatch.setattr(SharedResources, "end", end)
    monkeypatch.setattr(left.journal.replays, "end", finished.append)
    with pytest.raises(KeyboardInterrupt):
        recovered(left, Room(2, PLENTY))
    assert over.is_set()
    assert not finished
