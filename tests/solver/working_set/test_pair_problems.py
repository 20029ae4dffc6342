"""The common arrays of all pairs, and the loop over them against one problem at a time."""

import numpy as np
import pytest

from tests.solver.streams import FLOAT64, clusters, members
from wolfstream.solver.frank_wolfe.pairs import pair_classes
from wolfstream.solver.frank_wolfe.problem import empty_problem
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.pair_problems import PairProblems

RBF = Kernel("rbf", 0.3)


def problem_of(random, n):
    problem = empty_problem(n + 3)
    problem.size[0], problem.q[0], problem.steps[0] = n, random.random(), n
    for field in (problem.alpha, problem.gradient, problem.sign, problem.diagonal):
        field[:n] = random.random(n)
    problem.column[:n] = random.integers(0, 100, n)
    return problem


class TestPairProblems:
    @pytest.fixture
    def given(self):
        random = np.random.default_rng(0)
        return [problem_of(random, n) for n in (5, 0, 200)]

    def test_hold_copies_of_what_they_are_given(self, given):
        pairs = PairProblems(given)
        pairs.append(given[:1])
        given[0].alpha[0] = 7.0
        for problem, other in zip(pairs, [*given, given[0]], strict=True):
            assert members(problem).alpha[1:].tolist() == members(other).alpha[1:].tolist()
            assert members(problem).column.tolist() == members(other).column.tolist()
            assert problem.q[0] == other.q[0]
        assert pairs[0].alpha[0] != 7.0

    def test_room_is_made_without_a_change(self, given):
        pairs = PairProblems(given)
        pairs.arrays.indefinite[2] = True
        pairs.reserve(np.array([1000, 0, 1]))
        assert len(pairs[0].alpha) >= 1005
        for problem, other in zip(pairs, given, strict=True):
            for name in ("alpha", "gradient", "sign", "column", "diagonal"):
                n = other.size[0]
                of_one, of_other = getattr(problem, name)[:n], getattr(other, name)[:n]
                np.testing.assert_array_equal(of_one, of_other)
            assert (problem.size[0], problem.steps[0]) == (other.size[0], other.steps[0])
        assert [bool(problem.indefinite[0]) for problem in pairs] == [False, False, True]

    def test_a_problem_is_part_of_the_arrays(self, given):
        pairs = PairProblems(given)
        pairs[2].alpha[1] = -5.0
        assert pairs[2].alpha[1] == pairs[-1].alpha[1] == -5.0
        with pytest.raises(IndexError):
            pairs[3]


@pytest.mark.parametrize("n_classes", [3, 7])
def test_decisions_of_all_pairs_are_those_of_their_weights(n_classes):
    """Runs of samples of other classes are summed together: in long blocks, not in short ones."""
    X, codes = clusters(11, 400, n_classes=n_classes)
    runs, single = (WorkingSet(RBF, 2.0, dtype=FLOAT64) for _ in range(2))
    said = runs.absorb(X, codes)
    parts = [single.absorb(X[i : i + 1], codes[i : i + 1]) for i in range(len(X))]
    np.testing.assert_array_equal(said.prediction, np.concatenate([p.prediction for p in parts]))
    of_single = np.array([p.decision[0] for p in parts[50:]])
    np.testing.assert_allclose(said.decision[50:], of_single, rtol=0, atol=1e-9)


def test_work_per_sample_counts_every_pair():
    X, codes = clusters(11, 300, n_classes=4)
    learner = WorkingSet(RBF, corrective_steps=3)
    learner.absorb(X, codes)
    sizes = learner.problems.arrays.size
    own = max(
        sum(n for n, pair in zip(sizes, pair_classes(4), strict=True) if code in pair)
        for code in range(4)
    )
    work = learner.summary(learner.view()).work_per_sample
    assert work == learner.store.used * 4 + sizes.sum() + (1 + 3 * 3) * own
