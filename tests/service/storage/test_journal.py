"""The journal: what was appended is there, in its blocks and in its order."""

import contextlib
import sqlite3
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.service.storage.journals import entry, fill_disk, opened, pragma, sequences
from tests.service.storage.writing import append, create, delete, log_of, term_of
from wolfstream.service.errors import StorageFailed
from wolfstream.service.storage.entries import Entry
from wolfstream.service.storage.interfaces import Storage


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
        delete(storage, model)
        again = create(storage, "m", {})
        assert again > model
        delete(storage, again)
        assert create(storage, "other", {}) > again

    def test_not_even_after_a_restart(self, path: Path):
        with opened(path) as storage:
            deleted = create(storage, "m", {})
            delete(storage, deleted)
        with opened(path) as storage:
            assert create(storage, "m", {}) > deleted

    def test_entries_go_with_their_model(self, storage: Storage, model: int):
        other = create(storage, "other", {})
        append(storage, [entry(model, 1), entry(other, 1), entry(model, 2)])
        delete(storage, model)
        assert sequences(storage, model) == []
        assert sequences(storage, other) == [[1]]
        count = "SELECT count(*) FROM log WHERE kind = 'samples'"
        assert storage.journal._file.db.execute(count).fetchone() == (1,)

    def test_deleting_what_is_not_there_is_nothing(self, storage: Storage, model: int):
        delete(storage, model + 1)
        assert len(storage.catalogue.models()) == 1

    def test_a_deletion_is_an_entry_and_the_spec_goes(self, storage: Storage, model: int):
        delete(storage, model)
        rows = storage.journal._file.db.execute("SELECT kind FROM log").fetchall()
        assert rows == [("deleted",)]

    def test_a_deleted_name_may_be_taken_again(self, storage: Storage, model: int):
        delete(storage, model)
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
        assert list(log_of(storage, model).blocks(0)) == [written[:2], written[2:]]

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
            assert list(log_of(another, model).blocks(0)) == [written]

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
        term_of(storage, model).drop(2)
        assert sequences(storage, model) == [[3]]
        assert sequences(storage, other) == [[1]]
        term_of(storage, model).drop(2)
        term_of(storage, model).drop(10)
        assert sequences(storage, model) == []

    def test_the_log_goes_on_behind_what_was_dropped(self, storage: Storage, model: int):
        append(storage, [entry(model, 1), entry(model, 2)])
        term_of(storage, model).drop(2)
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
                assert list(log_of(storage, model).blocks(after)) == blocks[first:]


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


class TestFits:
    @staticmethod
    def fit(model: int, sequence: int, record: bytes = b"fit") -> Entry:
        return entry(model, sequence, samples=0, head="asset", record=record)

    @staticmethod
    def records(storage: Storage, model: int, after: int = 0) -> list[list[bytes]]:
        return [[item.record for item in block] for block in log_of(storage, model).blocks(after)]

    def test_follow_entries_of_their_sequence(self, storage: Storage, model: int):
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
        term_of(storage, model).drop(2)
        assert self.records(storage, model) == [[b"f2"]]
        append(storage, [entry(model, 3)])
        term_of(storage, model).drop(3)
        assert self.records(storage, model) == []

    def test_outlive_the_process_and_go_with_their_model(self, path: Path):
        with opened(path) as storage:
            model = create(storage, "m", {})
            append(storage, [self.fit(model, 0)])
        with opened(path) as storage:
            assert self.records(storage, model) == [[b"fit"]]
            delete(storage, model)
            count = "SELECT count(*) FROM log WHERE kind = 'fit'"
            assert storage.journal._file.db.execute(count).fetchone() == (0,)

    def test_that_cannot_be_written_leave_the_one_before(self, storage: Storage, model: int):
        append(storage, [self.fit(model, 0, b"small")])
        fill_disk(storage)
        with pytest.raises(StorageFailed):
            append(storage, [self.fit(model, 0, bytes(100_000))])
        assert self.records(storage, model) == [[b"small"]]


class TestCheckpoints:
    @staticmethod
    def checkpoint(model: int, sequence: int) -> Entry:
        return Entry(model, sequence, 0, sequence, "working_set", 1, b"", "checkpoint")

    @staticmethod
    def kinds(storage: Storage, model: int, after: int = 0) -> list[list[str]]:
        return [[item.kind for item in block] for block in log_of(storage, model).blocks(after)]

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
        term_of(storage, model).drop(2)
        assert self.kinds(storage, model) == [["checkpoint"]]
