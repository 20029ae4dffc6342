"""SFW and MSFW, sample by sample, against the papers' algorithms on the whole matrix A."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.solver.oracle_sfw import Sfw, hessian, kernel_matrix
from tests.solver.streams import (
    FLOAT64,
    KERNELS,
    blocks,
    clusters,
    direct_hessian,
    kernel_values,
    members,
    small_streams,
)
from wolfstream.solver.frank_wolfe.problem import empty_problem
from wolfstream.solver.frank_wolfe.steps import AWAY, DROP, INITIAL, NONE, STEP_NAMES, TOWARD
from wolfstream.solver.working_set.decisions import Trace
from wolfstream.solver.working_set.hessian import Ridge
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.sfw import PROGRESS_SIZE, Arrivals, Rule, Scratch, walk
from wolfstream.solver.working_set.sweep import STRETCH

ALGORITHMS = ("sfw", "msfw")
C = 5.0


def kinds(step):
    """The names of the step kinds in a bit field."""
    return [name for kind, name in enumerate(STEP_NAMES) if kind and step >> kind & 1]


def one_by_one(learner, X, codes):
    """Absorb samples singly; yields (answer, members of the first problem) after each."""
    for i in range(len(codes)):
        answer = learner.absorb(X[i : i + 1], codes[i : i + 1])
        yield answer, members(learner.problems[0])


def oracle_run(kernel, X, codes, algorithm, corrective_steps):
    A = hessian(kernel, X, 2.0 * codes - 1.0, C)
    return Sfw(A, algorithm == "msfw", corrective_steps).run()


def assert_moves_as_in_the_papers(kernel, algorithm, corrective_steps, X, codes):
    """Admission, kind of step, alpha, q and g after every sample."""
    expected = oracle_run(kernel, X, codes, algorithm, corrective_steps)
    learner = WorkingSet(kernel, C, algorithm, corrective_steps, dtype=FLOAT64)
    for moment, (answer, held) in zip(expected, one_by_one(learner, X, codes), strict=True):
        assert answer.admitted.tolist() == [moment.admitted]
        assert kinds(answer.step[0]) == [moment.kind]
        tolerance = {"rtol": 1e-9, "atol": 1e-9}
        np.testing.assert_allclose(held.alpha, moment.alpha, **tolerance)
        np.testing.assert_allclose(held.q, moment.q, **tolerance)
        np.testing.assert_allclose(held.gradient, moment.g, **tolerance)


@pytest.mark.sweep
@pytest.mark.parametrize("corrective_steps", [0, 1, 3])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_every_sample_moves_the_problem_as_in_the_papers(kernel, algorithm, corrective_steps):
    X, codes = clusters(seed=11, n=150)
    assert_moves_as_in_the_papers(kernel, algorithm, corrective_steps, X, codes)


@pytest.mark.sweep
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@given(stream=small_streams(max_classes=2), corrective_steps=st.integers(0, 3))
def test_also_where_samples_are_equal(kernel, algorithm, stream, corrective_steps):
    assert_moves_as_in_the_papers(kernel, algorithm, corrective_steps, *stream)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_the_compared_streams_show_every_kind_of_step(kernel):
    moments = oracle_run(kernel, *clusters(seed=11, n=150), "msfw", 0)
    assert {moment.kind for moment in moments} == {"initial", "toward", "away", "drop"}
    assert {moment.admitted for moment in moments} == {True, False}


@pytest.mark.sweep
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@given(stream=small_streams(max_classes=2), corrective_steps=st.integers(0, 3))
def test_q_and_g_are_what_they_are_by_definition(kernel, algorithm, stream, corrective_steps):
    X, codes = stream
    learner = WorkingSet(kernel, C, algorithm, corrective_steps, dtype=FLOAT64)
    for _, held in one_by_one(learner, X, codes):
        A = direct_hessian(learner, learner.problems[0])
        tolerance = {"rtol": 0, "atol": 1e-9 * max(1.0, np.abs(A).max())}
        np.testing.assert_allclose(held.gradient, -2.0 * A @ held.alpha, **tolerance)
        np.testing.assert_allclose(held.q, held.alpha @ A @ held.alpha, **tolerance)
        assert held.alpha.min() >= 0.0
        assert held.alpha.sum() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("corrective_steps", [0, 1, 3])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_sample_worsens_the_objective(algorithm, corrective_steps):
    learner = WorkingSet(KERNELS["rbf"], C, algorithm, corrective_steps, dtype=FLOAT64)
    q = [held.q for _, held in one_by_one(learner, *clusters(seed=3, n=300))]
    assert np.all(np.diff(q) <= 1e-12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_corrective_steps_bring_the_set_to_its_optimum(algorithm):
    X, codes = clusters(seed=4, n=60)
    learner = WorkingSet(KERNELS["rbf"], C, algorithm, corrective_steps=2, dtype=FLOAT64)
    entered = learner.absorb(X, codes).entered
    for _ in range(100):
        entered = learner.absorb(X, codes, entered).entered
    held = members(learner.problems[0])
    assert held.gradient.max() + 2.0 * held.q < 1e-8
    assert held.gradient[held.alpha > 0.0].min() + 2.0 * held.q > -1e-8


def test_sfw_never_takes_weight_from_one_vertex_alone():
    learner = WorkingSet(KERNELS["rbf"], C, "sfw", 0, dtype=FLOAT64)
    answer = learner.absorb(*clusters(seed=11, n=200))
    assert {kind for step in answer.step for kind in kinds(step)} == {"initial", "toward"}


def test_corrective_steps_beyond_two_are_taken_while_the_gap_is_large():
    X, codes = clusters(seed=14, n=300, noise=0.4)
    learner = WorkingSet(KERNELS["rbf"], C, corrective_steps=1000, dtype=FLOAT64)
    taken = []
    for i in range(300):
        before = int(learner.problems[0].steps[0]) if i else 0
        learner.absorb(X[i : i + 1], codes[i : i + 1])
        held = members(learner.problems[0])
        taken.append(int(learner.problems[0].steps[0]) - before - 1)
        assert taken[-1] <= 2 or held.gradient.max() + 2.0 * held.q <= 0.5 * held.q
    assert max(taken) > 5


class TestAwaySteps:
    @pytest.fixture(scope="class")
    @staticmethod
    def history():
        learner = WorkingSet(KERNELS["rbf"], 100.0, "msfw", 0, dtype=FLOAT64)
        return list(one_by_one(learner, *clusters(seed=6, n=300, noise=0.0)))

    def test_the_vertex_that_gives_weight_away_had_some(self, history):
        seen = 0
        for (_, before), (answer, after) in pairwise(history):
            if kinds(answer.step[0])[0] in ("away", "drop"):
                held = len(before.alpha)
                lighter = np.flatnonzero(after.alpha[:held] < before.alpha)
                assert len(lighter) == 1
                assert before.alpha[lighter[0]] > 0.0
                weighted = before.alpha > 0.0
                assert before.gradient[lighter[0]] == before.gradient[weighted].min()
                seen += 1
        assert seen > 20

    def test_some_weightless_member_had_a_lower_gradient(self, history):
        """Otherwise the test above would hold for a plain minimum too."""
        assert any(
            held.gradient.min() < held.gradient[held.alpha > 0.0].min() for _, held in history
        )

    def test_a_drop_leaves_exact_zero(self, history):
        drops = 0
        for (_, before), (answer, after) in pairwise(history):
            held = len(before.alpha)
            emptied = np.count_nonzero((before.alpha > 0.0) & (after.alpha[:held] == 0.0))
            assert emptied == (kinds(answer.step[0]) == ["drop"])
            drops += emptied
        assert drops > 5

    def test_a_dropped_member_stays_and_can_come_back(self, history):
        came_back = 0
        for (_, before), (_, after) in pairwise(history):
            held = len(before.alpha)
            np.testing.assert_array_equal(after.column[:held], before.column)
            came_back += np.count_nonzero((before.alpha == 0.0) & (after.alpha[:held] > 0.0))
        assert came_back > 0


def values_among(K):
    """Kernel values of a block against an empty set and itself."""
    return kernel_values(np.empty((0, 0)), np.ascontiguousarray(K))


def walk_over(K, sign, rule):
    n = len(K)
    problem = empty_problem(n)
    trace = Trace(np.zeros(n), np.zeros(n), np.zeros(n, np.bool_), np.zeros(n, np.int8))
    arrivals = Arrivals(sign, np.arange(n), np.full(n, -1), np.ones(n), np.empty((0, 0)))
    scratch = Scratch(sign, np.empty(n), np.empty(n), np.empty((2, STRETCH)))
    progress = np.zeros(PROGRESS_SIZE, np.int64)
    assert walk(problem, values_among(K), arrivals, rule, trace, scratch, progress) == -1
    return problem, trace


class TestWalk:
    rule = Rule(Ridge(0.5 / C, 0.5 / C), away_steps=True, corrective_steps=0)

    @pytest.fixture
    def block(self):
        X, codes = clusters(seed=8, n=120, n_classes=3)
        sign = np.array([-1.0, 1.0, 0.0])[codes]
        return kernel_matrix(KERNELS["rbf"], X, X), sign

    def test_samples_of_other_classes_change_nothing(self, block):
        K, sign = block
        inside = np.flatnonzero(sign)
        with_others, trace = walk_over(K, sign, self.rule)
        alone, trace_alone = walk_over(K[np.ix_(inside, inside)], sign[inside], self.rule)
        np.testing.assert_allclose(
            members(with_others).alpha, members(alone).alpha, rtol=0, atol=1e-12
        )
        np.testing.assert_array_equal(trace.admitted[inside], trace_alone.admitted)
        np.testing.assert_array_equal(trace.step[inside], trace_alone.step)
        assert not trace.admitted[sign == 0.0].any()
        assert np.all(trace.step[sign == 0.0] == NONE)

    def test_every_sample_is_judged_by_the_weights_of_that_moment(self, block):
        K, sign = block
        _, trace = walk_over(K, sign, self.rule)
        for k in range(len(sign)):
            held = members(walk_over(K[:k, :k], sign[:k], self.rule)[0])
            decision = np.sum(held.alpha * held.sign * (K[k, held.column] + 1.0))
            assert trace.decision[k] == pytest.approx(decision, abs=1e-12)
            assert trace.margin[k] == pytest.approx(decision / held.q if held.q else 0.0)

    def test_the_gradient_test_is_the_decision(self, block):
        """g_k = -2 y_k decision(x_k): a sample is admitted for what was said of it."""
        K, sign = block
        _, trace = walk_over(K, sign, self.rule)
        first = np.flatnonzero(sign)[0]
        for k in np.flatnonzero(sign)[1:]:
            held = members(walk_over(K[:k, :k], sign[:k], self.rule)[0])
            better = -2.0 * sign[k] * trace.decision[k] >= held.gradient.max()
            assert trace.admitted[k] == better
        assert trace.admitted[first]

    def test_the_first_sample_takes_all_the_weight(self):
        problem, trace = walk_over(np.array([[1.0]]), np.array([-1.0]), self.rule)
        assert members(problem).alpha.tolist() == [1.0]
        assert problem.q[0] == 2.0 + 0.5 / C
        assert members(problem).gradient.tolist() == [-2.0 * problem.q[0]]
        assert trace.step.tolist() == [INITIAL]
        assert trace.admitted.tolist() == [True]
        assert trace.decision.tolist() == [0.0]

    def test_step_kinds_have_names(self):
        assert [STEP_NAMES[kind] for kind in (NONE, INITIAL, TOWARD, AWAY, DROP)] == [
            "none",
            "initial",
            "toward",
            "away",
            "drop",
        ]


def test_q_and_g_are_computed_afresh_after_thousands_of_steps():
    X, codes = clusters(seed=9, n=1500, noise=0.4)
    learner = WorkingSet(KERNELS["rbf"], C, "msfw", corrective_steps=60, dtype=FLOAT64)
    learner.absorb(X[:100], codes[:100])
    problem = learner.problems[0]
    problem.gradient[:] += 1e-6  # Rounding that has added up.
    problem.q[0] *= 1.0 + 1e-6
    steps = []
    for part in blocks(1400, 100):
        learner.absorb(X[100:][part], codes[100:][part])
        steps.append(int(learner.problems[0].steps[0]))
    assert min(np.diff(steps)) < 0
    held, A = members(learner.problems[0]), direct_hessian(learner, learner.problems[0])
    np.testing.assert_allclose(held.gradient, -2.0 * A @ held.alpha, rtol=0, atol=1e-11)
    assert held.q == pytest.approx(held.alpha @ A @ held.alpha, abs=1e-12)
    assert held.alpha.sum() == pytest.approx(1.0, abs=1e-12)
