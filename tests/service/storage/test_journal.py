"""The journal: what was appended is there, in its blocks and in its order, or it was refused."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.errors import StartupError, StorageFailed
from service.spec.heads import HeadName
from service.storage.data_directory import open_storage
from service.storage.entries import Entry, EntryKind, KeyedRequest, Rollback
from service.storage.interfaces import Storage
from service.storage.sqlite_file import SqliteFile
from service.storage.sqlite_point import Cut, cut_at_time
from tests.service.storage.writing import append, create


def entry(
    model: int,
    sequence: int,
    samples: int = 1,
    block: int | None = None,
    head: HeadName = "working_set",
    record: bytes = b"record",
) -> Entry:
    kind: EntryKind = "samples" if samples else "fit"
    return Entry(model, sequence, samples, block or sequence, head, 1, record, kind)


def sequences(storage: Storage, model: int, after: int = 0) -> list[list[int]]:
    """Sequences of a model's entries, block by block."""
    return [[item.sequence for item in block] for block in storage.journal.blocks(model, after)]


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Storage]:
    storage = open_storage(path.parent)
    try:
        yield storage
    finally:
        storage.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


@pytest.fixture(scope="module")
def shared_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file for many examples, each with a model of its own."""
    return tmp_path_factory.mktemp("journal") / "log.sqlite"


@pytest.fixture
def storage(path: Path) -> Iterator[Storage]:
    with opened(path) as storage:
        yield storage


@pytest.fixture
def model(storage: Storage) -> int:
    return create(storage, "m", {})


def pragma(storage: Storage, text: str) -> int:
    row = storage.journal._file.db.execute(f"PRAGMA {text}").fetchone()
    return int(row[0]) if row else 0


def fill_disk(storage: Storage) -> None:
    """From now on the database may grow by two pages only."""
    pragma(storage, f"max_page_count = {pragma(storage, 'page_count') + 2}")


class TestModels:
    def test_a_new_log_has_none(self, storage: Storage):
        assert storage.catalogue.models() == []

    def test_are_listed_oldest_first_with_their_specs(self, storage: Storage):
        spec = {"seed": 2**53 - 1, "kernel": {"gamma": 0.1}, "asset": None, "x": "é\0"}
        second, first = create(storage, "b", spec), create(storage, "a", {})
        assert [item[:3] for item in storage.catalogue.models()] == [
            (second, "b", spec),
            (first, "a", {}),
        ]

    def test_a_name_is_taken_once(self, storage: Storage, model: int):
        with pytest.raises(StorageFailed):
            create(storage, "m", {})
        assert [item[0] for item in storage.catalogue.models()] == [model]

    def test_names_differ_in_their_case(self, storage: Storage, model: int):
        assert create(storage, "M", {}) != model

    def test_the_id_of_a_deleted_model_is_never_given_again(self, storage: Storage, model: int):
        storage.catalogue.delete(model)
        again = create(storage, "m", {})
        assert again > model
        storage.catalogue.delete(again)
        assert create(storage, "other", {}) > again

    def test_not_even_after_a_restart(self, path: Path):
        with opened(path) as storage:
            deleted = create(storage, "m", {})
            storage.catalogue.delete(deleted)
        with opened(path) as storage:
            assert create(storage, "m", {}) > deleted

    def test_entries_go_with_their_model(self, storage: Storage, model: int):
        other = create(storage, "other", {})
        append(storage, [entry(model, 1), entry(other, 1), entry(model, 2)])
        storage.catalogue.delete(model)
        assert sequences(storage, model) == []
        assert sequences(storage, other) == [[1]]
        count = "SELECT count(*) FROM log WHERE kind = 'samples'"
        assert storage.journal._file.db.execute(count).fetchone() == (1,)

    def test_deleting_what_is_not_there_is_nothing(self, storage: Storage, model: int):
        storage.catalogue.delete(model + 1)
        assert len(storage.catalogue.models()) == 1

    def test_a_deletion_is_an_entry_and_the_spec_goes(self, storage: Storage, model: int):
        storage.catalogue.delete(model)
        rows = storage.journal._file.db.execute("SELECT kind FROM log").fetchall()
        assert rows == [("deleted",)]

    def test_a_deleted_name_may_be_taken_again(self, storage: Storage, model: int):
        storage.catalogue.delete(model)
        again = create(storage, "m", {})
        assert [item[:2] for item in storage.catalogue.models()] == [(again, "m")]


class TestEntries:
    def test_come_back_as_they_were(self, storage: Storage, model: int):
        written = [
            Entry(model, 3, 3, 5, "working_set", 1, b""),
            Entry(model, 5, 2, 5, "working_set", 1, bytes(range(256))),
            Entry(model, 6, 1, 6, "asset", 8, b"\0" * 100_000),
        ]
        append(storage, written)
        assert list(storage.journal.blocks(model, 0)) == [written[:2], written[2:]]

    def test_the_log_of_a_new_model_is_empty(self, storage: Storage, model: int):
        assert sequences(storage, model) == []

    def test_appending_nothing_is_nothing(self, storage: Storage, model: int):
        append(storage, [])
        assert sequences(storage, model) == []

    @pytest.mark.parametrize("size", [1, 1024, 1025, 5000])
    def test_a_group_of_any_size_is_durable_on_return(
        self, storage: Storage, model: int, path: Path, size: int
    ):
        storage.journal._file.db.setlimit(
            sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 32_766
        )  # what is built in
        written = [entry(model, n, block=size, record=b"%d" % n) for n in range(1, size + 1)]
        append(storage, written)
        with opened(path) as another:
            assert list(another.journal.blocks(model, 0)) == [written]

    def test_entries_of_one_block_stay_together(self, storage: Storage, model: int):
        append(storage, [entry(model, 1, block=3), entry(model, 2, block=3), entry(model, 3)])
        append(storage, [entry(model, 4), entry(model, 5, block=6), entry(model, 6)])
        assert sequences(storage, model) == [[1, 2, 3], [4], [5, 6]]

    def test_models_have_logs_of_their_own(self, storage: Storage, model: int):
        other = create(storage, "other", {})
        append(
            storage, [entry(model, 1), entry(other, 1, block=2), entry(model, 2), entry(other, 2)]
        )
        assert sequences(storage, model) == [[1], [2]]
        assert sequences(storage, other) == [[1, 2]]

    def test_can_be_read_from_a_sequence_on(self, storage: Storage, model: int):
        append(storage, [entry(model, 2, 2, 3), entry(model, 3, 1, 3), entry(model, 7, 4, 7)])
        assert sequences(storage, model, after=1) == [[2, 3], [7]]
        assert sequences(storage, model, after=3) == [[7]]
        assert sequences(storage, model, after=7) == []

    def test_can_be_dropped_up_to_a_sequence(self, storage: Storage, model: int):
        other = create(storage, "other", {})
        append(storage, [entry(model, n) for n in (1, 2, 3)] + [entry(other, 1)])
        storage.journal.drop(model, 2)
        assert sequences(storage, model) == [[3]]
        assert sequences(storage, other) == [[1]]
        storage.journal.drop(model, 2)
        storage.journal.drop(model, 10)
        assert sequences(storage, model) == []

    def test_the_log_goes_on_behind_what_was_dropped(self, storage: Storage, model: int):
        append(storage, [entry(model, 1), entry(model, 2)])
        storage.journal.drop(model, 2)
        append(storage, [entry(model, 3)])
        assert sequences(storage, model) == [[3]]

    @settings(max_examples=20)
    @given(
        requests=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=8),
        restarts=st.sets(st.integers(0, 3), max_size=1),
    )
    def test_whatever_is_appended_is_read_back_across_restarts(
        self, shared_path: Path, requests: list[tuple[int, int]], restarts: set[int]
    ):
        """requests: samples and the number of the block; restarts: before which blocks."""
        blocks: list[list[Entry]] = []
        with contextlib.ExitStack() as stack:
            storage = stack.enter_context(opened(shared_path))
            model = create(storage, f"m{len(storage.catalogue.models())}", {})
            sequence = 0
            for _, group in groupby(requests, key=lambda request: request[1]):
                if len(blocks) in restarts:
                    storage.close()
                    storage = stack.enter_context(opened(shared_path))
                entries = []
                for samples, block in group:
                    sequence += samples
                    entries.append(entry(model, sequence, samples, record=bytes([block])))
                blocks.append([item._replace(block=sequence) for item in entries])
                append(storage, blocks[-1])
            for first in range(len(blocks) + 1):
                after = blocks[first - 1][-1].sequence if first else 0
                assert list(storage.journal.blocks(model, after)) == blocks[first:]


class TestRestart:
    def test_everything_is_there_and_the_log_goes_on(self, path: Path):
        with opened(path) as storage:
            model = create(storage, "m", {"seed": 1})
            append(storage, [entry(model, 1, block=2), entry(model, 2)])
        with opened(path) as storage:
            assert [item[:3] for item in storage.catalogue.models()] == [(model, "m", {"seed": 1})]
            append(storage, [entry(model, 3)])
            assert sequences(storage, model) == [[1, 2], [3]]

    def test_without_closing_too(self, path: Path):
        with opened(path) as killed:
            model = create(killed, "m", {})
            append(killed, [entry(model, 1)])
            with opened(path) as storage:
                assert sequences(storage, model) == [[1]]

    def test_every_commit_is_flushed(self, storage: Storage):
        full = 2
        assert pragma(storage, "synchronous") == full
        assert storage.journal._file.db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


class TestStorageFails:
    calls = pytest.mark.parametrize(
        "call",
        [
            lambda storage, model: append(storage, [entry(model, 10)]),
            lambda storage, model: append(storage, [entry(model, 10 + n) for n in range(1500)]),
            lambda storage, _: create(storage, "other", {}),
            lambda storage, model: storage.catalogue.delete(model),
            lambda storage, model: storage.journal.drop(model, 10),
        ],
        ids=["append", "append many", "create", "delete", "drop"],
    )

    @calls
    def test_on_a_closed_database(
        self, storage: Storage, model: int, call: Callable[[Storage, int], None]
    ):
        storage.close()
        with pytest.raises(StorageFailed):
            call(storage, model)

    @calls
    def test_on_a_database_that_may_only_be_read(
        self, storage: Storage, model: int, call: Callable[[Storage, int], None]
    ):
        append(storage, [entry(model, 1)])
        pragma(storage, "query_only = 1")
        with pytest.raises(StorageFailed, match="readonly"):
            call(storage, model)
        pragma(storage, "query_only = 0")
        assert [item.name for item in storage.catalogue.models()] == ["m"]
        assert sequences(storage, model) == [[1]]

    @calls
    def test_while_another_process_writes(
        self, storage: Storage, model: int, path: Path, call: Callable[[Storage, int], None]
    ):
        pragma(storage, "busy_timeout = 1")
        append(storage, [entry(model, 1)])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageFailed, match="locked"):
            call(storage, model)
        other.execute("ROLLBACK")
        other.close()
        assert sequences(storage, model) == [[1]]
        call(storage, model)

    def test_on_a_full_disk(self, storage: Storage, model: int):
        append(storage, [entry(model, 1)])
        fill_disk(storage)
        with pytest.raises(StorageFailed, match="full"):
            append(storage, [entry(model, 2, record=bytes(100_000))])
        assert sequences(storage, model) == [[1]]

    def test_a_failed_append_leaves_nothing_of_its_group(self, storage: Storage, model: int):
        other = create(storage, "other", {})
        fill_disk(storage)
        group = [entry(model, 1), entry(other, 1), entry(model, 2, record=bytes(100_000))]
        with pytest.raises(StorageFailed):
            append(storage, group)
        assert sequences(storage, model) == sequences(storage, other) == []

    def test_a_sequence_is_given_once(self, storage: Storage, model: int):
        append(storage, [entry(model, 2)])
        with pytest.raises(StorageFailed):
            append(storage, [entry(model, 1), entry(model, 2, record=b"another")])
        assert sequences(storage, model) == [[2]]

    @pytest.mark.parametrize("again", [1, 1500, 2500])
    def test_a_large_group_is_written_whole_or_not_at_all(
        self, storage: Storage, model: int, again: int
    ):
        append(storage, [entry(model, again)])
        with pytest.raises(StorageFailed):
            append(storage, [entry(model, n) for n in range(1, 2501)])
        assert sequences(storage, model) == [[again]]
        append(storage, [entry(model, 2501)])
        assert sequences(storage, model) == [[again], [2501]]

    def test_the_log_goes_on_once_there_is_room(self, storage: Storage, model: int):
        fill_disk(storage)
        large = [entry(model, 1, record=bytes(100_000))]
        with pytest.raises(StorageFailed):
            append(storage, large)
        pragma(storage, "max_page_count = 1000000")
        append(storage, large)
        append(storage, [entry(model, 2)])
        assert sequences(storage, model) == [[1], [2]]

    def test_dropping_makes_room(self, storage: Storage, model: int):
        append(storage, [entry(model, 1, record=bytes(100_000))])
        fill_disk(storage)
        with pytest.raises(StorageFailed):
            append(storage, [entry(model, 2, record=bytes(100_000))])
        storage.journal.drop(model, 1)
        append(storage, [entry(model, 2, record=bytes(100_000))])
        assert sequences(storage, model) == [[2]]


class TestFits:
    @staticmethod
    def fit(model: int, sequence: int, record: bytes = b"fit") -> Entry:
        return entry(model, sequence, samples=0, head="asset", record=record)

    @staticmethod
    def records(storage: Storage, model: int, after: int = 0) -> list[list[bytes]]:
        return [[item.record for item in block] for block in storage.journal.blocks(model, after)]

    def test_stand_behind_the_entries_of_their_sequence_in_blocks_of_their_own(
        self, storage: Storage, model: int
    ):
        append(storage, [self.fit(model, 0, b"f0")])
        append(
            storage, [entry(model, 1, block=2, record=b"1"), entry(model, 2, block=2, record=b"2")]
        )
        append(storage, [self.fit(model, 2, b"f2")])
        append(storage, [entry(model, 3, record=b"3")])
        assert self.records(storage, model) == [[b"f0"], [b"1", b"2"], [b"f2"], [b"3"]]

    def test_of_one_sequence_stand_in_their_order(self, storage: Storage, model: int):
        append(storage, [entry(model, 1, record=b"1")])
        for record in (b"first", b"second"):
            append(storage, [self.fit(model, 1, record)])
        assert self.records(storage, model) == [[b"1"], [b"first"], [b"second"]]

    def test_are_read_from_the_sequence_of_a_snapshot_on(self, storage: Storage, model: int):
        append(storage, [entry(model, 1), entry(model, 2)])
        for sequence in (1, 2):
            append(storage, [self.fit(model, sequence, b"f%d" % sequence)])
        assert self.records(storage, model, after=2) == [[b"f2"]]
        storage.journal.drop(model, 2)
        assert self.records(storage, model) == [[b"f2"]]
        append(storage, [entry(model, 3)])
        storage.journal.drop(model, 3)
        assert self.records(storage, model) == []

    def test_outlive_the_process_and_go_with_their_model(self, path: Path):
        with opened(path) as storage:
            model = create(storage, "m", {})
            append(storage, [self.fit(model, 0)])
        with opened(path) as storage:
            assert self.records(storage, model) == [[b"fit"]]
            storage.catalogue.delete(model)
            count = "SELECT count(*) FROM log WHERE kind = 'fit'"
            assert storage.journal._file.db.execute(count).fetchone() == (0,)

    def test_that_cannot_be_written_leave_the_one_before(self, storage: Storage, model: int):
        append(storage, [self.fit(model, 0, b"small")])
        fill_disk(storage)
        with pytest.raises(StorageFailed):
            append(storage, [self.fit(model, 0, bytes(100_000))])
        assert self.records(storage, model) == [[b"small"]]


class TestKeys:
    @staticmethod
    def keyed(
        model: int, sequence: int, answer: bytes | None = None, key: bytes = b""
    ) -> KeyedRequest:
        return KeyedRequest(model, sequence, key or b"k%d" % sequence, b"digest", answer)

    @staticmethod
    def listed(storage: Storage) -> list[tuple[int, int]]:
        models = [model.number for model in storage.catalogue.models()]
        return [(model, at) for model in models for at, _ in storage.answers.keys(model)]

    def test_are_there_with_their_entries_after_a_restart(self, path: Path):
        with opened(path) as storage:
            model, other = create(storage, "m", {}), create(storage, "other", {})
            append(
                storage,
                [entry(other, 7), entry(model, 2, 2), entry(model, 5, 3)],
                [self.keyed(model, 5), self.keyed(other, 7), self.keyed(model, 2)],
            )
        with opened(path) as storage:
            assert list(storage.answers.keys(model)) == [(2, b"k2"), (5, b"k5")]
            assert list(storage.answers.keys(other)) == [(7, b"k7")]
            assert storage.answers.find(model, 5) == self.keyed(model, 5)
            assert storage.answers.find(model, 7) is None
            assert storage.answers.unanswered(model, 2) == [self.keyed(model, 5)]

    def test_have_their_answers_later(self, storage: Storage, model: int):
        append(storage, [entry(model, 1), entry(model, 2)], [self.keyed(model, n) for n in (1, 2)])
        append(storage, [entry(model, 3)], [self.keyed(model, 1, b"one"), self.keyed(model, 3)])
        append(storage, [], [self.keyed(model, 3, b"three")])
        assert storage.answers.unanswered(model, 0) == [self.keyed(model, 2)]
        assert storage.answers.find(model, 1) == self.keyed(model, 1, b"one")
        assert storage.answers.find(model, 3) == self.keyed(model, 3, b"three")

    def test_the_first_answer_stays_until_it_is_replaced(self, storage: Storage, model: int):
        append(storage, [entry(model, 1)], [self.keyed(model, 1)])
        for answer in (b"first", b"second"):
            storage.answers.write([self.keyed(model, 1, answer)])
            assert storage.answers.find(model, 1) == self.keyed(model, 1, b"first")
        storage.answers.replace([self.keyed(model, 1, b"short")])
        assert storage.answers.find(model, 1) == self.keyed(model, 1, b"short")

    @pytest.mark.parametrize("size", [1024, 1025, 3000])
    def test_a_group_may_have_any_number_of_them(self, storage: Storage, model: int, size: int):
        storage.journal._file.db.setlimit(
            sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 32_766
        )  # what is built in
        entries = [entry(model, n) for n in range(1, size + 1)]
        append(storage, entries, [self.keyed(model, n) for n in range(1, size + 1)])
        assert self.listed(storage) == [(model, n) for n in range(1, size + 1)]

    def test_outlive_their_entries_and_go_with_their_model(self, storage: Storage, model: int):
        other = create(storage, "other", {})
        entries = [entry(model, 1), entry(model, 2), entry(other, 1)]
        append(storage, entries, [self.keyed(e.model, e.sequence) for e in entries])
        storage.journal.drop(model, 2)
        assert self.listed(storage) == [(model, 1), (model, 2), (other, 1)]
        storage.answers.drop(model, 1)
        assert self.listed(storage) == [(model, 2), (other, 1)]
        storage.catalogue.delete(model)
        assert self.listed(storage) == [(other, 1)]

    def test_are_written_with_their_entries_or_neither_is(self, storage: Storage, model: int):
        fill_disk(storage)
        group = [entry(model, 1), entry(model, 2)]
        with pytest.raises(StorageFailed):
            append(storage, group, [self.keyed(model, 1, bytes(100_000)), self.keyed(model, 2)])
        assert sequences(storage, model) == self.listed(storage) == []
        append(storage, [entry(model, 3)])
        assert sequences(storage, model) == [[3]]

    def test_cannot_be_read_from_a_closed_database(self, storage: Storage, model: int):
        storage.close()
        with pytest.raises(StorageFailed):
            storage.answers.find(model, 1)
        with pytest.raises(StartupError):
            storage.answers.unanswered(model, 0)
        with pytest.raises(StartupError):
            list(storage.answers.keys(model))


class TestRollbacks:
    def told(self, at: int) -> dict[str, object]:
        return {"to": 1, "at": at, "time": "2026-01-01T00:00:00Z"}

    def back(self, storage: Storage, model: int, at: int, digest: str = "d1") -> Rollback:
        rollback = Rollback(self.told(at), digest, f"epoch of {digest}")
        storage.journal.append_rollback(model, rollback, at)
        return rollback

    def test_there_is_none_at_first(self, storage: Storage, model: int):
        assert storage.journal.rolled_back_at(model) is None

    def test_an_exchange_is_written_for_all_of_its_models_or_for_none(
        self, storage: Storage, model: int
    ):
        other = create(storage, "other", {})
        pair = {model: Rollback(self.told(3), "d", "e"), other: Rollback(self.told(3), "f", "g")}
        storage.journal.append_exchange(pair)
        assert [storage.journal.rollbacks(one) for one in pair] == [[one] for one in pair.values()]
        unwritable = Rollback(self.told(5) | {"of": object()}, "d", "e")
        with pytest.raises(TypeError):
            storage.journal.append_exchange({model: pair[model], other: unwritable})
        assert [len(storage.journal.rollbacks(one)) for one in pair] == [1, 1]

    def test_the_last_one_comes_first_of_each_model(self, storage: Storage, model: int):
        other = create(storage, "other", {})
        written = list[Rollback]()
        for at, digest in ((3, "d1"), (3, "d2"), (7, "d3")):
            written.insert(0, self.back(storage, model, at, digest))
            assert storage.journal.rolled_back_at(model) == at
            assert storage.journal.rollbacks(model) == written
            assert storage.journal.epoch_since(model, at) == f"epoch of {digest}"
        assert storage.journal.epoch_since(model, 8) is None
        assert storage.journal.rolled_back_at(other) is None
        storage.catalogue.delete(model)
        assert storage.journal.rolled_back_at(model) is None

    def test_an_epoch_may_begin_without_one(self, storage: Storage, model: int):
        self.back(storage, model, 3)
        storage.journal.append_epoch(model, 3, "another")
        assert storage.journal.epoch_since(model, 3) == "another"
        assert storage.journal.rolled_back_at(model) == 3
        storage.journal.drop(model, 4)
        assert storage.journal.epoch_since(model, 0) is None

    def test_the_fits_of_its_sequence_are_those_after_it(self, storage: Storage, model: int):
        append(storage, [entry(model, 1), entry(model, 2)])
        for sequence in (1, 2):
            append(storage, [entry(model, sequence, samples=0, head="semiparametric")])
        self.back(storage, model, 2)
        assert [block[0].samples for block in storage.journal.blocks(model, 2)] == []
        append(storage, [entry(model, 2, samples=0, head="semiparametric", record=b"later")])
        assert [block[0].record for block in storage.journal.blocks(model, 2)] == [b"later"]

    def test_keys_of_what_was_never_learned_are_forgotten_with_it(
        self, storage: Storage, model: int
    ):
        other = create(storage, "other", {})
        entries = [entry(model, 1), entry(model, 2), entry(other, 2)]
        keys = [KeyedRequest(e.model, e.sequence, b"k%d" % e.sequence, b"d", None) for e in entries]
        append(storage, entries, keys)
        storage.journal.append_rollback(model, Rollback(self.told(2), "d", "e"), 1)
        assert [list(storage.answers.keys(one)) for one in (model, other)] == [
            [(1, b"k1")],
            [(2, b"k2")],
        ]

    def test_it_is_dropped_with_what_is_before_a_later_snapshot(self, storage: Storage, model: int):
        self.back(storage, model, 5)
        storage.journal.drop(model, 5)
        assert storage.journal.rolled_back_at(model) == 5
        storage.journal.drop(model, 6)
        assert storage.journal.rolled_back_at(model) is None

    def test_one_that_cannot_be_written_leaves_all_as_it_was(self, storage: Storage, model: int):
        append(storage, [entry(model, 1, samples=0, head="semiparametric")])
        fill_disk(storage)
        with pytest.raises(StorageFailed):
            self.back(storage, model, 1, "d" * 100_000)
        assert storage.journal.rolled_back_at(model) is None
        assert len(list(storage.journal.blocks(model, 0))) == 1

    def test_it_is_there_for_the_next_process(self, path: Path):
        with opened(path) as storage:
            model = create(storage, "m", {})
            written = self.back(storage, model, 4)
        with opened(path) as storage:
            assert storage.journal.rollbacks(model) == [written]

    def test_the_end_is_the_last_sample(self, storage: Storage, model: int):
        assert storage.journal.end(model) == 0
        append(storage, [entry(model, 3, samples=3), entry(model, 5, samples=2)])
        assert storage.journal.end(model) == 5


class TestReadOnly:
    def test_it_shows_the_moment_at_which_it_was_opened(self, path: Path):
        with opened(path) as storage:
            model = create(storage, "m", {})
            append(storage, [entry(model, 1)])
            looking = open_storage(path.parent, read_only=True)
            assert [item.name for item in looking.catalogue.models()] == ["m"]
            append(storage, [entry(model, 2)])
            storage.journal.drop(model, 1)
            assert sequences(looking, model) == [[1]]
            assert sequences(storage, model) == [[2]]
            looking.close()

    def test_nothing_can_be_written(self, path: Path):
        with opened(path) as storage:
            model = create(storage, "m", {})
        looking = open_storage(path.parent, read_only=True)
        with pytest.raises(StorageFailed):
            looking.catalogue.delete(model)
        looking.close()

    def test_an_older_format_is_left_alone(self, path: Path):
        with opened(path) as storage:
            pragma(storage, "user_version = 3")
        with pytest.raises(StartupError, match="start `wolfstream serve` on the directory once"):
            open_storage(path.parent, read_only=True)
        with contextlib.closing(sqlite3.connect(path)) as database:
            assert database.execute("PRAGMA user_version").fetchone() == (3,)

    def test_a_missing_log_is_not_made(self, path: Path):
        with pytest.raises(StartupError):
            open_storage(path.parent, read_only=True)
        assert not path.exists()


class TestStartFails:
    def refused(self, path: Path) -> str:
        with pytest.raises(StartupError) as caught:
            SqliteFile(path)
        assert str(path) in str(caught.value)
        return str(caught.value)

    def test_on_a_file_that_is_no_database(self, path: Path):
        garbage = b"this is not a journal\n" * 1000
        path.write_bytes(garbage)
        assert "restore it from a backup" in self.refused(path)
        assert path.read_bytes() == garbage

    def test_on_a_database_whose_header_is_damaged(self, path: Path):
        with opened(path) as storage:
            create(storage, "m", {})
        content = path.read_bytes()
        path.write_bytes(b"\xff" * 16 + content[16:])
        self.refused(path)

    @pytest.mark.parametrize("version", [5, 99, -1])
    def test_on_a_log_of_another_format(self, path: Path, version: int):
        with opened(path) as storage:
            create(storage, "m", {})
            pragma(storage, f"user_version = {version}")
        said = self.refused(path)
        assert f"journal format {version}" in said
        assert "start the version that wrote it" in said

    def test_on_an_entry_of_an_unknown_kind(self, path: Path):
        with opened(path) as storage:
            model = create(storage, "m", {})
            append(storage, [entry(model, 1)])
            storage.journal._file.db.execute("UPDATE log SET kind = 'term' WHERE sequence = 1")
        assert "entries of the kind 'term'" in self.refused(path)

    def test_without_a_directory(self, tmp_path: Path):
        self.refused(tmp_path / "missing" / "log.sqlite")

    def test_on_a_directory(self, tmp_path: Path):
        self.refused(tmp_path)

    def test_an_empty_file_is_a_new_log(self, path: Path):
        path.touch()
        with opened(path) as storage:
            assert storage.catalogue.models() == []


class TestPredictions:
    """Rows that wait for their labels stand behind the sample before them, as they came."""

    def prediction(self, model: int, sequence: int, up_to: int, record: bytes = b"p") -> Entry:
        return Entry(model, sequence, 0, up_to, "adaptive", 1, record, "prediction")

    def labels(self, model: int, sequence: int, samples: int = 1) -> Entry:
        return Entry(model, sequence, samples, sequence, "adaptive", 1, b"labels", "labels")

    def test_each_is_a_block_at_the_sequence_before_it(self, storage: Storage) -> None:
        model = create(storage, "m", {})
        first = [entry(model, 2, 2), self.prediction(model, 2, 3)]
        append(storage, first)
        later = [self.prediction(model, 2, 4), self.labels(model, 3), entry(model, 4)]
        append(storage, later)
        assert list(storage.journal.blocks(model, 0)) == [[one] for one in (*first, *later)]

    def test_those_at_a_snapshots_sequence_are_replayed(self, storage: Storage) -> None:
        model = create(storage, "m", {})
        append(storage, [entry(model, 1), self.prediction(model, 1, 1), self.labels(model, 2)])
        found = [block[0].kind for block in storage.journal.blocks(model, 1)]
        assert found == ["prediction", "labels"]

    def test_labels_count_as_samples_where_the_journal_begins_and_ends(
        self, storage: Storage
    ) -> None:
        model = create(storage, "m", {})
        append(storage, [self.prediction(model, 0, 5), self.labels(model, 5, 3)])
        assert (storage.journal.begin(model), storage.journal.end(model)) == (2, 5)

    def test_a_snapshot_drops_those_before_it(self, storage: Storage) -> None:
        model = create(storage, "m", {})
        entries = [self.prediction(model, 0, 1), self.labels(model, 1), entry(model, 2)]
        append(storage, [*entries, self.prediction(model, 2, 2), self.labels(model, 3)])
        storage.journal.drop(model, 2)
        found = [block[0].kind for block in storage.journal.blocks(model, 2)]
        assert found == ["prediction", "labels"]
        assert storage.journal.begin(model) == 2

    def test_those_whose_rows_have_left_are_dropped_at_any_sequence(self, storage: Storage) -> None:
        model = create(storage, "m", {})
        append(storage, [self.prediction(model, 0, up_to) for up_to in (10, 20, 30)])
        storage.journal.drop_predictions(model, 25)
        assert [block[0].block for block in storage.journal.blocks(model, 0)] == [30]

    def test_places_go_on_behind_a_fit_a_rollback_and_a_restart(self, path: Path) -> None:
        with opened(path) as storage:
            model = create(storage, "m", {})
            append(storage, [self.prediction(model, 0, 1, b"forgotten")])
            storage.journal.append_rollback(model, Rollback({"at": 0}, "digest", "next"), 0)
            append(storage, [self.prediction(model, 0, 1, b"a")])
            append(storage, [Entry(model, 0, 0, 0, "asset", 1, b"b", "fit")])
        with opened(path) as storage:
            append(storage, [self.prediction(model, 0, 2, b"c")])
            append(storage, [self.prediction(model, 0, 3, b"d")])
            found = [block[0].record for block in storage.journal.blocks(model, 0)]
        assert found == [b"a", b"b", b"c", b"d"]

    def test_those_after_a_point_in_time_are_cut_off(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with opened(path) as storage:
            model = create(storage, "m", {})
            monkeypatch.setattr("service.storage.sqlite_journal.now", lambda: 10**13)
            append(storage, [self.labels(model, 1), self.prediction(model, 1, 1, b"kept")])
            monkeypatch.setattr("service.storage.sqlite_journal.now", lambda: 10**13 + 1)
            append(storage, [self.prediction(model, 1, 2), self.labels(model, 2)])
        with closing(SqliteFile(path)) as file:
            assert cut_at_time(file, model, 10**13) == Cut(1, dated=True, events=True)
        with opened(path) as storage:
            found = [block[0].record for block in storage.journal.blocks(model, 0)]
        assert found == [b"labels", b"kept"]


class TestCheckpoints:
    @staticmethod
    def checkpoint(model: int, sequence: int) -> Entry:
        return Entry(model, sequence, 0, sequence, "working_set", 1, b"", "checkpoint")

    @staticmethod
    def kinds(storage: Storage, model: int, after: int = 0) -> list[list[str]]:
        return [[item.kind for item in block] for block in storage.journal.blocks(model, after)]

    def test_stand_behind_the_samples_of_their_sequence_among_the_fits(
        self, storage: Storage, model: int
    ):
        append(storage, [entry(model, 1, block=2), entry(model, 2, block=2)])
        append(storage, [TestFits.fit(model, 2)])
        append(storage, [self.checkpoint(model, 2)])
        append(storage, [entry(model, 3)])
        kinds = [["samples", "samples"], ["fit"], ["checkpoint"], ["samples"]]
        assert self.kinds(storage, model) == kinds
        assert self.kinds(storage, model, after=2) == kinds[1:]

    def test_are_forgotten_behind_a_later_snapshot(self, storage: Storage, model: int):
        append(storage, [entry(model, 1)])
        append(storage, [self.checkpoint(model, 1)])
        append(storage, [entry(model, 2)])
        append(storage, [self.checkpoint(model, 2)])
        storage.journal.drop(model, 2)
        assert self.kinds(storage, model) == [["checkpoint"]]
