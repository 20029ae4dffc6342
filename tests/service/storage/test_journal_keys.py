"""Idempotency keys in the journal."""

import sqlite3
from pathlib import Path

import pytest

from tests.service.storage.journals import entry, fill_disk, opened, sequences
from tests.service.storage.writing import append, create, delete, keys_of, log_of, term_of
from wolfstream.service.errors import StartupError, StorageFailed
from wolfstream.service.storage.entries import KeyedRequest
from wolfstream.service.storage.interfaces import Storage


class TestKeys:
    @staticmethod
    def keyed(
        model: int, sequence: int, answer: bytes | None = None, key: bytes = b""
    ) -> KeyedRequest:
        return KeyedRequest(model, sequence, key or b"k%d" % sequence, b"digest", answer, 1)

    @staticmethod
    def listed(storage: Storage) -> list[tuple[int, int]]:
        models = [model.number for model in storage.catalogue.models()]
        keys = {model: keys_of(log_of(storage, model)) for model in models}
        return [(model, at) for model, of_model in keys.items() for at, _ in of_model]

    def test_are_there_with_their_entries_after_a_restart(self, path: Path):
        with opened(path) as storage:
            model, other = create(storage, "m", {}), create(storage, "other", {})
            append(
                storage,
                [entry(other, 7), entry(model, 2, 2), entry(model, 5, 3)],
                [self.keyed(model, 5), self.keyed(other, 7), self.keyed(model, 2)],
            )
        with opened(path) as storage:
            assert keys_of(log_of(storage, model)) == [(2, b"k2"), (5, b"k5")]
            assert keys_of(log_of(storage, other)) == [(7, b"k7")]
            assert log_of(storage, model).find(5) == self.keyed(model, 5)
            assert log_of(storage, model).find(7) is None
            assert log_of(storage, model).unanswered(2) == [self.keyed(model, 5)]

    def test_have_their_answers_later(self, storage: Storage, model: int):
        append(storage, [entry(model, 1), entry(model, 2)], [self.keyed(model, n) for n in (1, 2)])
        append(storage, [entry(model, 3)], [self.keyed(model, 1, b"one"), self.keyed(model, 3)])
        append(storage, [], [self.keyed(model, 3, b"three")])
        assert log_of(storage, model).unanswered(0) == [self.keyed(model, 2)]
        assert log_of(storage, model).find(1) == self.keyed(model, 1, b"one")
        assert log_of(storage, model).find(3) == self.keyed(model, 3, b"three")

    def test_the_first_answer_stays_until_it_is_replaced(self, storage: Storage, model: int):
        append(storage, [entry(model, 1)], [self.keyed(model, 1)])
        for answer in (b"first", b"second"):
            term_of(storage, model).write_answers([self.keyed(model, 1, answer)])
            assert log_of(storage, model).find(1) == self.keyed(model, 1, b"first")
        term_of(storage, model).shorten_answers([self.keyed(model, 1, b"short")])
        assert log_of(storage, model).find(1) == self.keyed(model, 1, b"short")

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
        term_of(storage, model).drop(2)
        assert self.listed(storage) == [(model, 1), (model, 2), (other, 1)]
        term_of(storage, model).forget_keys(1)
        assert self.listed(storage) == [(model, 2), (other, 1)]
        delete(storage, model)
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
            log_of(storage, model).find(1)
        with pytest.raises(StartupError):
            log_of(storage, model).unanswered(0)
        with pytest.raises(StartupError):
            keys_of(log_of(storage, model))
