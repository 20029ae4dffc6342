"""Rollbacks in the journal: what they drop, and what they leave."""

from pathlib import Path

import pytest

from tests.service.storage.journals import entry, fill_disk, opened
from tests.service.storage.writing import append, create, delete, keys_of, log_of, new_term, term_of
from wolfstream.service.errors import StorageFailed
from wolfstream.service.storage.entries import KeyedRequest, Rollback
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.log import rolled_back_at


class TestRollbacks:
    def told(self, at: int) -> dict[str, object]:
        return {"to": 1, "at": at, "time": "2026-01-01T00:00:00Z"}

    def back(self, storage: Storage, model: int, at: int, digest: str = "d1") -> Rollback:
        rollback = Rollback(self.told(at), digest, f"epoch of {digest}")
        term_of(storage, model).roll_back(rollback, at, [], 4)
        return rollback

    def test_there_is_none_at_first(self, storage: Storage, model: int):
        assert rolled_back_at(log_of(storage, model)) is None

    def test_exchange_is_atomic(self, storage: Storage, model: int):
        other = create(storage, "other", {})
        pair = {model: Rollback(self.told(3), "d", "e"), other: Rollback(self.told(3), "f", "g")}
        terms = {term_of(storage, one): rollback for one, rollback in pair.items()}
        storage.journal.exchange(terms)
        assert [log_of(storage, one).rollbacks() for one in pair] == [
            [one] for one in pair.values()
        ]
        unwritable = Rollback(self.told(5) | {"of": object()}, "d", "e")
        with pytest.raises(TypeError):
            storage.journal.exchange(terms | {term_of(storage, other): unwritable})
        assert [len(log_of(storage, one).rollbacks()) for one in pair] == [1, 1]

    def test_the_last_one_comes_first_of_each_model(self, storage: Storage, model: int):
        other = create(storage, "other", {})
        written = list[Rollback]()
        for at, digest in ((3, "d1"), (3, "d2"), (7, "d3")):
            written.insert(0, self.back(storage, model, at, digest))
            assert rolled_back_at(log_of(storage, model)) == at
            assert log_of(storage, model).rollbacks() == written
            assert log_of(storage, model).epoch_since(at) == f"epoch of {digest}"
        assert log_of(storage, model).epoch_since(8) is None
        assert rolled_back_at(log_of(storage, other)) is None
        delete(storage, model)
        assert rolled_back_at(log_of(storage, model)) is None

    def test_an_epoch_may_begin_without_one(self, storage: Storage, model: int):
        self.back(storage, model, 3)
        new_term(storage, model, "another")
        assert log_of(storage, model).epoch_since(3) == "another"
        assert rolled_back_at(log_of(storage, model)) == 3
        term_of(storage, model).drop(4)
        assert log_of(storage, model).epoch_since(0) is None

    def test_the_fits_of_its_sequence_are_those_after_it(self, storage: Storage, model: int):
        append(storage, [entry(model, 1), entry(model, 2)])
        for sequence in (1, 2):
            append(storage, [entry(model, sequence, samples=0, head="semiparametric")])
        self.back(storage, model, 2)
        assert [block[0].samples for block in log_of(storage, model).blocks(2)] == []
        append(storage, [entry(model, 2, samples=0, head="semiparametric", record=b"later")])
        assert [block[0].record for block in log_of(storage, model).blocks(2)] == [b"later"]

    def test_keys_of_what_was_never_learned_are_forgotten_with_it(
        self, storage: Storage, model: int
    ):
        other = create(storage, "other", {})
        entries = [entry(model, 1), entry(model, 2), entry(other, 2)]
        keys = [
            KeyedRequest(e.model, e.sequence, b"k%d" % e.sequence, b"d", None, 1) for e in entries
        ]
        append(storage, entries, keys)
        term_of(storage, model).roll_back(Rollback(self.told(2), "d", "e"), 1, [], 4)
        assert [keys_of(log_of(storage, one)) for one in (model, other)] == [
            [(1, b"k1")],
            [(2, b"k2")],
        ]

    def test_it_is_dropped_with_what_is_before_a_later_snapshot(self, storage: Storage, model: int):
        self.back(storage, model, 5)
        term_of(storage, model).drop(5)
        assert rolled_back_at(log_of(storage, model)) == 5
        term_of(storage, model).drop(6)
        assert rolled_back_at(log_of(storage, model)) is None

    def test_one_that_cannot_be_written_leaves_all_as_it_was(self, storage: Storage, model: int):
        append(storage, [entry(model, 1, samples=0, head="semiparametric")])
        fill_disk(storage)
        with pytest.raises(StorageFailed):
            self.back(storage, model, 1, "d" * 100_000)
        assert rolled_back_at(log_of(storage, model)) is None
        assert len(list(log_of(storage, model).blocks(0))) == 1

    def test_it_is_there_for_the_next_process(self, path: Path):
        with opened(path) as storage:
            model = create(storage, "m", {})
            written = self.back(storage, model, 4)
        with opened(path) as storage:
            assert log_of(storage, model).rollbacks() == [written]

    def test_the_end_is_the_last_sample(self, storage: Storage, model: int):
        assert log_of(storage, model).end() == 0
        append(storage, [entry(model, 3, samples=3), entry(model, 5, samples=2)])
        assert log_of(storage, model).end() == 5
