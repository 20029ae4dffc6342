"""The kernel values of three and more classes, each pair's in a square of its own."""

import numpy as np
import pytest

from tests.solver.oracle_sfw import kernel_matrix
from tests.solver.streams import (
    FLOAT64,
    KERNELS,
    blocks,
    clusters,
    dense,
    direct_hessian,
    members,
    sparse,
    started,
    thin_clusters,
)
from wolfstream.solver.rows.matrix import n_rows, take_rows
from wolfstream.solver.working_set.gram import Gram, NoGram
from wolfstream.solver.working_set.gram_rows import GramRows
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.pair_values import OwnSquares, SharedValues
from wolfstream.solver.working_set.squares import PairSquares, squares_bytes

RBF = KERNELS["rbf"]
FLOAT32 = np.dtype(np.float32)


def learned(X, codes, length=64, passes=1, **parameters):
    """A set that has learned rows in so many passes, and its answers."""
    learner = WorkingSet(parameters.pop("kernel", RBF), 5.0, **({"dtype": FLOAT64} | parameters))
    entered, answers = np.full(n_rows(X), -1, np.int64), []
    for _ in range(passes):
        for part in blocks(n_rows(X), length):
            answers.append(learner.absorb(take_rows(X, part), codes[part], entered[part]))
            entered[part] = answers[-1].entered
    return learner, answers


def shared(X, codes, **parameters):
    """The same with the matrix of all samples: as if the squares had outgrown their bound."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wolfstream.solver.working_set.class_pairs.squares_bytes", lambda *_: 0)
        learner, answers = learned(X, codes, **parameters)
    assert isinstance(learner.store.gram, Gram)
    return learner, answers


def assert_squares_are_of_the_members(learner, rows_of=lambda rows: rows):
    squares = learner.pairs.values.squares
    for i, problem in enumerate(learner.problems):
        column = members(problem).column
        X = rows_of(take_rows(learner.store.rows.exact, column))
        n = len(column)
        np.testing.assert_allclose(
            squares.square(i)[:n, :n], kernel_matrix(learner.kernel, X, X), rtol=0, atol=1e-12
        )


STREAMS = {
    "five classes": {},
    "one by one": {"length": 1},
    "samples leave": {"max_size": 96},
    "SFW": {"algorithm": "sfw", "corrective_steps": 0},
    "three passes": {"passes": 3, "corrective_steps": 2},
    "three passes, samples leave": {"passes": 3, "max_size": 150},
    "polynomial": {"kernel": KERNELS["cubic"], "max_size": 120},
}


@pytest.mark.parametrize("how", STREAMS.values(), ids=STREAMS)
def test_the_steps_are_those_with_one_matrix_of_all_samples(how):
    X, codes = clusters(5, 600, n_classes=5, noise=0.2)
    ours, of_ours = learned(X, codes, **how)
    theirs, of_theirs = shared(X, codes, **how)
    assert isinstance(ours.store.gram, NoGram)
    for one, other in zip(of_ours, of_theirs, strict=True):
        np.testing.assert_array_equal(one.admitted, other.admitted)
        np.testing.assert_array_equal(one.step, other.step)
        np.testing.assert_allclose(one.margin, other.margin, rtol=1e-7, atol=1e-9)
        np.testing.assert_array_equal(one.prediction, other.prediction)
    for mine, its in zip(ours.problems, theirs.problems, strict=True):
        a, b = members(mine), members(its)
        here, there = np.argsort(a.column), np.argsort(b.column)
        np.testing.assert_array_equal(a.column[here], b.column[there])
        np.testing.assert_allclose(a.alpha[here], b.alpha[there], rtol=0, atol=1e-9)


@pytest.mark.parametrize("max_size", [None, 96])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_squares_q_and_g_are_what_they_are_by_definition(kernel, max_size):
    X, codes = clusters(6, 500, n_classes=4, noise=0.2)
    learner, _ = learned(X, codes, kernel=kernel, max_size=max_size)
    assert_squares_are_of_the_members(learner)
    for problem in filter(started, learner.problems):
        held, A = members(problem), direct_hessian(learner, problem)
        np.testing.assert_allclose(held.gradient, -2.0 * A @ held.alpha, rtol=0, atol=1e-8)
        assert held.q == pytest.approx(held.alpha @ A @ held.alpha, rel=1e-8)


def test_sparse_rows_have_squares_as_well():
    X, codes = thin_clusters(6, 400, n_classes=4, noise=0.2)
    learner, of_sparse = learned(sparse(X), codes, max_size=120)
    _, of_dense = learned(X, codes, max_size=120)
    assert_squares_are_of_the_members(learner, dense)
    for one, other in zip(of_sparse, of_dense, strict=True):
        np.testing.assert_array_equal(one.step, other.step)


def test_a_class_that_comes_late_has_squares_with_all_before_it():
    X, codes = clusters(7, 500, n_classes=4, noise=0.2)
    order = np.argsort(codes >= 2, kind="stable")
    order = np.concatenate([order[: np.count_nonzero(codes < 2)], np.flatnonzero(codes == 2)])
    learner, _ = learned(X[order], codes[order])
    assert isinstance(learner.store.gram, NoGram)
    assert_squares_are_of_the_members(learner)
    first = codes == 3
    learner.absorb(X[first], codes[first])
    assert_squares_are_of_the_members(learner)


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
@pytest.mark.parametrize("max_size", [None, 96])
def test_a_restored_set_goes_on_bit_for_bit_with_squares(max_size, dtype):
    X, codes = clusters(8, 700, n_classes=5, noise=0.2)
    live, _ = learned(X[:300], codes[:300], max_size=max_size, dtype=dtype)
    restored = WorkingSet(RBF, 5.0, max_size=max_size, dtype=dtype)
    state = live.state()
    for learner in (live, restored):  # as at a checkpoint
        learner.restore(state)
        assert isinstance(learner.store.gram, NoGram)
    for part in (slice(300, 301), slice(301, 700)):
        ours, theirs = (each.absorb(X[part], codes[part]) for each in (live, restored))
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)
    for a, b in zip(live.problems, restored.problems, strict=True):
        np.testing.assert_array_equal(members(a).alpha, members(b).alpha)


def test_many_steps_are_followed_by_a_refresh(monkeypatch):
    monkeypatch.setattr("wolfstream.solver.working_set.class_pairs._REFRESH_STEPS", 20)
    monkeypatch.setattr("wolfstream.solver.working_set.class_pairs._REFRESH_STEPS_PER_MEMBER", 0)
    X, codes = clusters(9, 400, n_classes=3, noise=0.2)
    learner, _ = learned(X, codes)
    assert learner.problems.arrays.steps.max() < 400
    for problem in learner.problems:
        held, A = members(problem), direct_hessian(learner, problem)
        np.testing.assert_allclose(held.gradient, -2.0 * A @ held.alpha, rtol=0, atol=1e-12)


class TestBytes:
    def test_of_a_bounded_set_are_twice_its_matrix(self):
        assert squares_bytes(5000, 1 << 30, 4) == 8 * 5000**2
        assert squares_bytes(50_000, 1 << 30, 4) == 1 << 30
        assert squares_bytes(None, 1 << 30, 4) == 1 << 30
        assert squares_bytes(64, 1 << 30, 4) == 1 << 20

    def test_are_counted(self):
        X, codes = clusters(10, 500, n_classes=4)
        learner, _ = learned(X, codes)
        held = sum(8 * int(n) ** 2 for n in learner.problems.arrays.size)
        assert held <= learner.pairs.values.nbytes < 4 * held
        assert learner.nbytes > learner.store.nbytes + learner.pairs.values.nbytes

    @pytest.mark.parametrize("bound", [200_000, 1_000_000])
    def test_beyond_the_bound_the_set_keeps_rows_that_all_pairs_share(self, bound):
        X, codes = clusters(11, 900, n_classes=4, noise=0.3)
        few, of_few = learned(X, codes, gram_bytes_max=bound)
        _, of_many = learned(X, codes)
        assert isinstance(few.pairs.values, SharedValues)
        assert isinstance(few.store.gram, GramRows)
        for one, other in zip(of_few, of_many, strict=True):
            np.testing.assert_array_equal(one.step, other.step)

    def test_stay_below_the_bound_at_every_moment(self):
        X, codes = clusters(11, 900, n_classes=4, noise=0.3)
        bound, learner = 1_000_000, WorkingSet(RBF, 5.0, gram_bytes_max=1_000_000, dtype=FLOAT64)
        for part in blocks(900, 30):
            learner.absorb(X[part], codes[part])
            if isinstance(learner.pairs.values, OwnSquares):
                assert learner.pairs.values.squares.arrays.values.nbytes <= bound
        assert isinstance(learner.pairs.values, SharedValues)


class TestRoom:
    def squares_with(self, needed, most=1 << 20):
        squares = PairSquares(RBF, FLOAT64, most)
        assert squares.reserve(np.array(needed))
        for i, n in enumerate(needed):
            squares.square(i)[:n, :n] = 1000.0 * i + np.arange(n * n).reshape(n, n)
        return squares

    def test_is_made_without_a_change(self):
        squares = self.squares_with([20, 3, 40])
        for needed in ([20, 90, 40], [100, 90, 40], [100, 90, 200, 5]):
            assert squares.reserve(np.array(needed))
        for i, n in enumerate([20, 3, 40]):
            expected = 1000.0 * i + np.arange(n * n).reshape(n, n)
            np.testing.assert_array_equal(squares.square(i)[:n, :n], expected)
        assert (squares.arrays.width >= [100, 90, 200, 5]).all()

    def test_squares_do_not_overlap(self):
        squares = self.squares_with([20, 3, 40])
        for needed in ([60, 3, 40], [60, 70, 90], [200, 70, 90]):
            squares.reserve(np.array(needed))
            start, width = squares.arrays.start, squares.arrays.width
            order = np.argsort(start)
            ends = (start + width**2)[order]
            assert (ends[:-1] <= start[order][1:]).all()
            assert ends[-1] <= len(squares.arrays.values)

    def test_ends_at_the_bound(self):
        squares = self.squares_with([20, 3, 40], most=8 * 6000)
        assert not squares.reserve(np.array([20, 3, 80]))
