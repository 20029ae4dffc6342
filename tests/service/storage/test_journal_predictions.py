"""Rows in the journal that were predicted and wait for their labels."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.service.storage.journals import entry, opened
from tests.service.storage.writing import append, create, log_of, term_of
from wolfstream.service.storage.entries import Entry, Rollback
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.restore import CutPoint, cut_at_time
from wolfstream.service.storage.sqlite_file import SqliteFile


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
        assert list(log_of(storage, model).blocks(0)) == [[one] for one in (*first, *later)]

    def test_those_at_a_snapshots_sequence_are_replayed(self, storage: Storage) -> None:
        model = create(storage, "m", {})
        append(storage, [entry(model, 1), self.prediction(model, 1, 1), self.labels(model, 2)])
        found = [block[0].kind for block in log_of(storage, model).blocks(1)]
        assert found == ["prediction", "labels"]

    def test_labels_count_as_samples_where_the_journal_begins_and_ends(
        self, storage: Storage
    ) -> None:
        model = create(storage, "m", {})
        append(storage, [self.prediction(model, 0, 5), self.labels(model, 5, 3)])
        assert (log_of(storage, model).begin(), log_of(storage, model).end()) == (2, 5)

    def test_a_snapshot_drops_those_before_it(self, storage: Storage) -> None:
        model = create(storage, "m", {})
        entries = [self.prediction(model, 0, 1), self.labels(model, 1), entry(model, 2)]
        append(storage, [*entries, self.prediction(model, 2, 2), self.labels(model, 3)])
        term_of(storage, model).drop(2)
        found = [block[0].kind for block in log_of(storage, model).blocks(2)]
        assert found == ["prediction", "labels"]
        assert log_of(storage, model).begin() == 2

    def test_those_whose_rows_have_left_are_dropped_at_any_sequence(self, storage: Storage) -> None:
        model = create(storage, "m", {})
        append(storage, [self.prediction(model, 0, up_to) for up_to in (10, 20, 30)])
        term_of(storage, model).drop_predictions(25)
        assert [block[0].block for block in log_of(storage, model).blocks(0)] == [30]

    def test_places_go_on_behind_a_fit_a_rollback_and_a_restart(self, path: Path) -> None:
        with opened(path) as storage:
            model = create(storage, "m", {})
            append(storage, [self.prediction(model, 0, 1, b"forgotten")])
            term_of(storage, model).roll_back(Rollback({"at": 0}, "digest", "next"), 0, [], 4)
            append(storage, [self.prediction(model, 0, 1, b"a")])
            append(storage, [Entry(model, 0, 0, 0, "asset", 1, b"b", "fit")])
        with opened(path) as storage:
            append(storage, [self.prediction(model, 0, 2, b"c")])
            append(storage, [self.prediction(model, 0, 3, b"d")])
            found = [block[0].record for block in log_of(storage, model).blocks(0)]
        assert found == [b"a", b"b", b"c", b"d"]

    def test_those_after_a_point_in_time_are_cut_off(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with opened(path) as storage:
            model = create(storage, "m", {})
            monkeypatch.setattr("wolfstream.service.storage.sqlite_journal.now", lambda: 10**13)
            append(storage, [self.labels(model, 1), self.prediction(model, 1, 1, b"kept")])
            monkeypatch.setattr("wolfstream.service.storage.sqlite_journal.now", lambda: 10**13 + 1)
            append(storage, [self.prediction(model, 1, 2), self.labels(model, 2)])
        with closing(SqliteFile(path)) as file:
            assert cut_at_time(file, model, 10**13) == CutPoint(1, dated=True, events=True)
        with opened(path) as storage:
            found = [block[0].record for block in log_of(storage, model).blocks(0)]
        assert found == [b"labels", b"kept"]
