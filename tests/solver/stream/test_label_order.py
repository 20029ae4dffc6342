"""Whether the labels just before a row are known, by the order in which rows were seen."""

import numpy as np
import pytest

from wolfstream.solver.adaptive.label_past import LabelPast
from wolfstream.solver.rows.answers import Values
from wolfstream.solver.rows.head_rows import HeadRows, RawRows
from wolfstream.solver.rows.matrix import SparseRows
from wolfstream.solver.rows.recent_rows import KEPT, RecentRows, RecentView, last_hashes
from wolfstream.solver.stream.label_order import LabelOrder


class Process:
    """A model whose rows are numbers, and the process that predicts with it."""

    def __init__(self) -> None:
        self.past = LabelPast(regression=True, always=False)
        self.order = LabelOrder()
        self.learn(-2.0, -1.0)

    def learn(self, *rows: float) -> None:
        X = np.array(rows)[:, None]
        n = np.ones(len(rows))
        self.past.absorb(X, RawRows(X), n, n, Values(n))

    def recent(self) -> RecentView:
        view = self.past.view()
        assert view is not None
        return view.recent

    def knows(self, *rows: float) -> bool:
        X = np.array(rows)[:, None]
        return self.order.marked(self.recent(), HeadRows(X, raw=RawRows(X))).in_turn

    def knows_each(self, *rows: float) -> list[bool]:
        X = np.array(rows)[:, None]
        return self.order.marked_singly(self.recent(), HeadRows(X, raw=RawRows(X)))


@pytest.mark.parametrize("seed", range(20))
def test_rows_asked_for_together_are_placed_as_one_after_another(seed: int) -> None:
    random = np.random.default_rng(seed)
    together, singly = Process(), Process()
    kinds = int(random.choice([2, 5, 1000]))
    for _ in range(100):
        rows = random.integers(0, kinds, random.integers(1, 6)).astype(float).tolist()
        assert together.knows_each(*rows) == [singly.knows(row) for row in rows]
        for process in (together, singly):
            process.learn(*rows[: 1 + seed % len(rows)])
    assert together.order.counts == singly.order.counts
    assert together.order.delay == singly.order.delay


def test_immediate_labels_are_known_from_row_two():
    process = Process()
    for i in range(200):
        assert process.knows(i) is (i > 0)
        process.learn(i)
    assert process.order.delay == 0
    assert process.order.counts == [1, 199]


@pytest.mark.parametrize("delay", [1, 5, 63, 64, 65, 500])
@pytest.mark.parametrize("kinds", [1, 24, 10_000])
def test_late_labels_are_never_taken_for_known_ones(delay, kinds):
    process = Process()
    for i in range(1500):
        assert not process.knows(i % kinds)
        if i >= delay:
            process.learn((i - delay) % kinds)
    assert process.order.delay is None or process.order.delay > 0


def test_rows_of_a_batch_and_those_predicted_ahead_do_without():
    process = Process()
    assert not process.knows(*range(100))
    for i in range(100):
        assert not process.knows(i + 100)
    process.learn(*range(40, 200))  # more than are kept: nothing is known of the others
    assert not process.knows(200)
    process.learn(200)
    assert process.knows(201)
    assert not process.knows(1, 2, 3)


def test_small_batches_make_labels_known():
    process = Process()
    known = []
    for start in range(0, 40, 4):
        known += [process.knows(i) for i in range(start, start + 4)]
        process.learn(*range(start, start + 4))
    assert known == [False] * 4 + [True, False, False, False] * 9


def test_a_question_that_is_asked_again_has_the_same_answer():
    process = Process()
    process.knows(1)
    process.learn(1)
    assert [process.knows(2) for _ in range(3)] == [True] * 3
    process.learn(2)
    assert [process.knows(3) for _ in range(2)] == [True] * 2
    assert not process.knows(4)
    process.learn(3)
    assert not process.knows(5)


def test_a_model_that_goes_back_is_met_anew():
    process = Process()
    process.knows(1)
    process.learn(1)
    other = Process()
    other.order = process.order
    assert process.knows(2)
    assert not other.knows(3)
    other.learn(3)
    assert other.knows(4)


def test_a_model_without_use_for_labels_is_not_asked():
    order, seen = LabelOrder(), HeadRows(np.zeros((1, 1)))
    assert order.marked(None, seen) is seen
    assert order.counts == [0, 0]


def test_hashes_are_of_raw_rows_alone():
    random = np.random.default_rng(0)
    raw = random.normal(size=(300, 3))
    raw[5, 1] = np.nan
    found = last_hashes(random.normal(size=(300, 3)), RawRows(raw))
    assert len(found) == KEPT
    assert len(set(found.tolist())) == KEPT
    again = [
        last_hashes(raw[i : i + 1], RawRows(raw[i : i + 1]))[0] for i in range(300 - KEPT, 300)
    ]
    assert found.tolist() == again
    assert last_hashes(raw[:1, ::-1], None)[0] != last_hashes(raw[:1], None)[0]


def test_hashes_of_sparse_rows_are_of_places_and_values():
    heap = np.array([0, 2, 0, 3], np.int32), np.array([1.0, 2.0, 1.0, 2.0])
    X = SparseRows(np.array([0, 2]), np.array([2, 4]), *heap, 5)
    one, other = last_hashes(X, None).tolist()
    assert one != other
    wider = X._replace(width=9)
    assert last_hashes(wider, None).tolist() == [one, other]


def test_rings_are_those_of_single_rows():
    rows = np.arange(500.0)[:, None]
    whole, single, restored = RecentRows(), RecentRows(), RecentRows()
    whole.add(rows, None)
    for i in range(500):
        single.add(rows[i : i + 1], None)
    restored.restore(single.state())
    assert whole.view().last(64) == single.view().last(64) == restored.view().last(64)
    assert whole.total == restored.total == 500
