"""Eviction from a full set: which samples are evicted, what stays, and what does not change."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.solver.oracle_sfw import hessian, kernel_matrix
from tests.solver.streams import (
    FLOAT64,
    KERNELS,
    blocks,
    clusters,
    direct_hessian,
    kernel_values,
    members,
    small_streams,
    started,
)
from wolfstream.solver.frank_wolfe.problem import empty_problem
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set import eviction
from wolfstream.solver.working_set.eviction import (
    class_floor,
    close_gaps,
    eviction_period,
    give_weight,
    slots_to_evict,
    take_weight,
)
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.pair_problems import PairProblems
from wolfstream.solver.working_set.predictions import predict

RBF = KERNELS["rbf"]
C = 5.0


def held_samples(learner):
    """Slots in use, ordered by the time at which their samples entered."""
    store = learner.store
    slots = np.flatnonzero(store.code[: store.used] >= 0)
    return slots[np.argsort(store.entered[slots])]


def with_weight(learner):
    """Slots of the samples that carry weight in some problem."""
    slots = [held.column[held.alpha > 0.0] for held in map(members, learner.problems)]
    return set(np.concatenate(slots).tolist())


class TestBound:
    @given(
        stream=small_streams(max_classes=4, max_length=80),
        max_size=st.integers(2, 40),
        cut=st.integers(1, 40),
        corrective_steps=st.integers(0, 2),
    )
    def test_is_never_exceeded(self, stream, max_size, cut, corrective_steps):
        X, codes = stream
        learner = WorkingSet(RBF, C, "msfw", corrective_steps, max_size)
        for part in blocks(len(codes), cut):
            learner.absorb(X[part], codes[part])
            assert learner.store.size <= max_size
            assert len(learner.store.gram.kept.values) <= max_size
            for problem in learner.problems:
                assert problem.size[0] <= learner.store.size

    @pytest.mark.parametrize("max_size", [2, 31, 32, 33, 64, 100])
    def test_is_reached_on_a_long_stream(self, max_size):
        X, codes = clusters(seed=51, n=800, n_classes=3, noise=0.3)
        learner = WorkingSet(RBF, C, max_size=max_size)
        sizes = []
        for part in blocks(800, 50):
            learner.absorb(X[part], codes[part])
            sizes.append(learner.store.size)
        assert max(sizes) <= max_size
        assert max(sizes) >= 0.9 * max_size - 1

    def test_is_not_felt_by_a_set_that_stays_below_it(self):
        X, codes = clusters(seed=52, n=200, n_classes=3)
        bounded = WorkingSet(RBF, C, max_size=240, dtype=FLOAT64)
        unbounded = WorkingSet(RBF, C, dtype=FLOAT64)
        for learner in (bounded, unbounded):
            # Eviction points cut the blocks of the bounded set, and products of other shapes are
            # rounded in other ways.
            for start in range(0, 200, eviction_period(240)):
                part = slice(start, start + eviction_period(240))
                learner.absorb(X[part], codes[part])
        assert bounded.store.size == unbounded.store.size
        for a, b in zip(bounded.problems, unbounded.problems, strict=True):
            np.testing.assert_array_equal(members(a).alpha, members(b).alpha)


class TestWhoLeaves:
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_the_weightless_first_and_then_the_oldest(self, n_classes, monkeypatch):
        monkeypatch.setattr(eviction, "class_floor", lambda *_: 0)
        X, codes = clusters(seed=53, n=400, n_classes=n_classes, noise=0.3)
        max_size = 30  # Below 32 a set makes room for one sample, before each sample.
        learner = WorkingSet(RBF, 100.0, "msfw", max_size=max_size)
        left = {"weightless": 0, "oldest": 0}
        for i in range(400):
            before = held_samples(learner) if i else np.empty(0, np.int64)
            weighted = with_weight(learner) if i else set()
            entered = learner.store.entered.copy() if i else np.empty(0)
            learner.absorb(X[i : i + 1], codes[i : i + 1])
            after = {int(learner.store.entered[slot]) for slot in held_samples(learner)}
            gone = [slot for slot in before if int(entered[slot]) not in after]
            if len(before) < max_size:
                assert gone == []
                continue
            weightless = [slot for slot in before if slot not in weighted]
            assert gone == (weightless or list(before))[:1]
            left["weightless" if weightless else "oldest"] += 1
        assert min(left.values()) > 0

    @pytest.mark.parametrize(
        ("max_size", "at_once"), [(31, 1), (64, 4), (320, 20), (512, 32), (600, 32), (1120, 35)]
    )
    def test_of_small_bounds_a_larger_share_leaves_at_a_time(self, max_size, at_once):
        X, codes = clusters(seed=54, n=3 * max_size, noise=0.5)
        learner = WorkingSet(RBF, C, max_size=max_size)
        for i in range(len(codes)):
            before = learner.store.size if i else 0
            admitted = learner.absorb(X[i : i + 1], codes[i : i + 1]).admitted.sum()
            gone = before + admitted - learner.store.size
            assert gone == 0 or i % at_once == 0
            assert gone <= at_once
            if i % at_once == 0:
                assert learner.store.size - admitted <= max_size - at_once


class TestWhatIsLeft:
    @pytest.mark.sweep
    @pytest.mark.parametrize("algorithm", ["sfw", "msfw"])
    @pytest.mark.parametrize("max_size", [20, 60, 100])
    def test_is_consistent(self, algorithm, max_size):
        X, codes = clusters(seed=55, n=600, n_classes=4, noise=0.2)
        learner = WorkingSet(RBF, C, algorithm, 1, max_size, FLOAT64)
        for part in blocks(600, 9):
            learner.absorb(X[part], codes[part])
            for problem in filter(started, learner.problems):
                held, A = members(problem), direct_hessian(learner, problem)
                assert held.alpha.min() >= 0.0
                assert held.alpha.sum() == pytest.approx(1.0, abs=1e-9)
                np.testing.assert_allclose(held.gradient, -2.0 * A @ held.alpha, rtol=0, atol=1e-9)
                assert held.q == pytest.approx(held.alpha @ A @ held.alpha, abs=1e-9)

    def test_accuracy_does_not_collapse_on_a_noisy_stream(self):
        """A fifth of the labels is wrong, and most samples that enter the set are among them."""
        correct = []
        for seed in range(3):
            random = np.random.default_rng(seed)
            X = random.standard_normal((3300, 2))
            truth = (X[:, 0] * X[:, 1] > 0.0).astype(np.int64)
            codes = np.where(random.random(3300) < 0.2, 1 - truth, truth)
            codes[:2] = [0, 1]
            learner = WorkingSet(Kernel("rbf", 0.5), 1.0, "msfw", corrective_steps=30, max_size=400)
            learner.absorb(X[:3000], codes[:3000])
            assert learner.store.added > 4 * 400
            said, _ = predict(learner.view(), X[3000:])
            correct.append(np.mean(said == truth[3000:]))
        assert np.mean(correct) > 0.85

    def test_nothing_collapses_or_grows_on_a_long_stream(self):
        """30,000 samples, a tenth of them mislabelled, through a set of 200."""
        random = np.random.default_rng(1)
        centres = 2.0 * random.standard_normal((2, 3, 5))
        learner = WorkingSet(Kernel("rbf", 0.1), 1.0, max_size=200)
        correct, q, nbytes = [], [], []
        for _ in range(12):
            truth = random.integers(0, 2, 2500)
            truth[:2] = [0, 1]
            X = centres[truth, random.integers(0, 3, 2500)] + random.standard_normal((2500, 5))
            codes = np.where(random.random(2500) < 0.1, 1 - truth, truth)
            codes[:2] = [0, 1]
            correct.append(np.mean(learner.absorb(X, codes).prediction == truth))
            q.append(members(learner.problems[0]).q)
            nbytes.append(learner.nbytes)
        assert learner.store.added > 20 * 200
        assert min(correct[6:]) > 0.75
        assert np.mean(correct[6:]) > np.mean(correct[:6]) - 0.02
        assert max(q[6:]) < 2.0 * min(q[:6])
        assert len(set(nbytes[1:])) == 1

    def test_views_published_before_still_give_the_same_answers(self):
        X, codes = clusters(seed=57, n=900, n_classes=3, noise=0.3)
        learner = WorkingSet(RBF, C, max_size=64)
        published = []
        for part in blocks(900, 45):
            learner.absorb(X[part], codes[part])
            view = learner.view()
            if view.n_classes > 1:
                published.append((view, predict(view, X)))
        assert learner.store.added > 3 * 64
        for view, (said, decision) in published:
            said_now, decision_now = predict(view, X)
            np.testing.assert_array_equal(said_now, said)
            np.testing.assert_array_equal(decision_now, decision)


def problem_with(alpha, seed=60):
    """A consistent problem with these weights, its kernel values and its matrix A."""
    n = len(alpha)
    random = np.random.default_rng(seed)
    X, sign = random.standard_normal((n, 3)), random.choice([-1.0, 1.0], n)
    A = hessian(RBF, X, sign, C)
    problem = empty_problem(n)
    problem.alpha[:] = alpha
    problem.sign[:] = sign
    problem.column[:] = np.arange(n)
    problem.gradient[:] = -2.0 * A @ problem.alpha
    problem.q[0] = problem.alpha @ A @ problem.alpha
    problem.size[0] = n
    values = kernel_values(kernel_matrix(RBF, X, X), np.empty((0, n)), n)
    return problem, values, A


def evict_columns(problem, values, columns):
    """Returns the problem without the members in these columns."""
    evicted = np.zeros(values.stored, np.bool_)
    evicted[columns] = True
    problems = PairProblems([problem])
    pairs, row = problems.arrays, np.empty(values.stored)
    heir = np.full(len(pairs.alpha), -1)
    of_pair = np.array([[0, 1]]), np.full(2, 0.5 / C), values
    take_weight(pairs, *of_pair, evicted, heir, row)
    give_weight(pairs, *of_pair, heir, row)
    close_gaps(pairs, evicted)
    return problems[0]


class TestEvictMembers:
    @pytest.mark.parametrize("columns", [[0], [3], [7], [0, 3, 5], [1, 2, 4, 6]])
    def test_evicted_weight_goes_to_nearest(self, columns):
        alpha = np.array([0.05, 0.2, 0.0, 0.25, 0.1, 0.0, 0.1, 0.3])
        problem, values, A = problem_with(alpha)
        sign = problem.sign.copy()
        stay = np.setdiff1d(np.arange(8), columns)
        expected = alpha.copy()
        for p in columns:
            heir = max(stay, key=lambda m: sign[p] * sign[m] * (values.kept.values[p, m] + 1.0))
            expected[heir] += alpha[p]
        expected = expected[stay]
        problem = evict_columns(problem, values, columns)
        held = members(problem)
        np.testing.assert_array_equal(held.column, stay)
        np.testing.assert_allclose(held.alpha, expected, rtol=0, atol=1e-12)
        left = A[np.ix_(stay, stay)]
        np.testing.assert_allclose(held.gradient, -2.0 * left @ expected, rtol=0, atol=1e-11)
        assert held.q == pytest.approx(expected @ left @ expected, abs=1e-11)

    def test_members_without_weight_leave_nothing_to_do(self):
        problem, values, _ = problem_with(np.array([0.5, 0.0, 0.5, 0.0]))
        before = members(problem)
        problem = evict_columns(problem, values, [1, 3])
        held = members(problem)
        np.testing.assert_array_equal(held.column, [0, 2])
        np.testing.assert_array_equal(held.alpha, [0.5, 0.5])
        np.testing.assert_array_equal(held.gradient, before.gradient[[0, 2]])
        assert held.q == before.q

    def test_signs_stay_with_their_members(self):
        problem, values, _ = problem_with(np.full(8, 0.125))
        sign = members(problem).sign
        problem = evict_columns(problem, values, [0, 4])
        np.testing.assert_array_equal(members(problem).sign, np.delete(sign, [0, 4]))

    def test_problem_without_its_weight_restarts(self):
        problem, values, _ = problem_with(np.array([0.0, 1.0, 0.0]))
        problem = evict_columns(problem, values, [1])
        held = members(problem)
        assert not started(problem)
        assert held.alpha.tolist() == [0.0, 0.0]
        assert held.column.tolist() == [0, 2]

    @given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6))
    def test_problem_without_weights_restarts(self, weights):
        alpha = np.array([*weights, 0.0, 0.0])
        problem, values, _ = problem_with(alpha / alpha.sum())
        problem = evict_columns(problem, values, np.flatnonzero(alpha))
        held = members(problem)
        assert not started(problem)
        assert held.alpha.tolist() == [0.0, 0.0]

    @given(
        weights=st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6),
        little=st.floats(1e-7, 1e-2),
    )
    def test_a_small_remainder_becomes_the_whole(self, weights, little):
        alpha = np.array([*weights, little * sum(weights), little * sum(weights)])
        problem, values, A = problem_with(alpha / alpha.sum())
        problem = evict_columns(problem, values, np.arange(len(weights)))
        held, left = members(problem), A[-2:, -2:]
        assert held.alpha.sum() == pytest.approx(1.0, abs=1e-9)
        np.testing.assert_allclose(held.gradient, -2.0 * left @ held.alpha, rtol=0, atol=1e-9)
        assert held.q == pytest.approx(held.alpha @ left @ held.alpha, abs=1e-9)


class TestEmptiedProblem:
    @pytest.fixture
    def learner(self):
        """The samples of classes 0 and 1 have all left a set too small for floors of classes."""
        X, _ = clusters(seed=61, n=300)
        codes = np.concatenate([[0, 1, 2, 3], 2 + np.arange(296) % 2])
        learner = WorkingSet(RBF, C, max_size=7)
        learner.absorb(X, codes)
        assert learner.problems[0].size[0] == 0
        return learner

    def test_has_no_say_and_starts_anew(self, learner):
        X, _ = clusters(seed=62, n=40)
        before, _ = predict(learner.view(), X)
        assert set(before.tolist()) <= {2, 3}
        learner.absorb(X, np.arange(40) % 2)
        held, A = members(learner.problems[0]), direct_hessian(learner, learner.problems[0])
        assert held.alpha.sum() == pytest.approx(1.0, abs=1e-9)
        assert held.q == pytest.approx(held.alpha @ A @ held.alpha, abs=1e-5)

    def test_survives_a_restart(self, learner):
        X, _ = clusters(seed=63, n=40)
        restored = WorkingSet(RBF, C, max_size=7)
        restored.restore(learner.state())
        np.testing.assert_array_equal(predict(restored.view(), X)[1], predict(learner.view(), X)[1])

    def test_claims_no_duality_gap(self, learner):
        assert np.isnan(learner.view().gap[0])


class TestFloor:
    """Each class keeps some samples, however long it pauses."""

    def test_a_class_that_pauses_is_not_forgotten(self):
        X, codes = clusters(71, 3000, n_classes=3, noise=0.0, apart=3.0)
        pauses = codes[500:] == 2
        X, codes = (np.concatenate([a[:500], a[500:][~pauses]]) for a in (X, codes))
        learner = WorkingSet(RBF, C, max_size=240)
        learner.absorb(X, codes)
        assert np.count_nonzero(learner.store.code == 2) >= class_floor(240, 3) == 40
        Z, labels = clusters(71, 3000, n_classes=3, noise=0.0, apart=3.0)
        of_class = labels == 2
        assert np.mean(predict(learner.view(), Z[of_class])[0] == 2) > 0.5

    def test_eviction_keeps_last_of_each_class(self):
        code = np.array([0, 0, 0, 1, 1, 1, 0, 0])
        entered = np.arange(8)
        weighted = np.array([True, True, False, True, False, True, True, True])
        chosen = slots_to_evict(np.arange(8), code, entered, weighted, 4, floor=2)
        # Without weight: 2, 4; then 0, 1, 3, 5, 6, 7; 6 and 7, 3 and 5 are the last of their class.
        assert chosen.tolist() == [2, 4, 0, 1]

    def test_it_gives_way_where_too_few_others_are_left(self):
        code = np.array([0, 0, 1, 1])
        chosen = slots_to_evict(np.arange(4), code, np.arange(4), np.ones(4, bool), 3, floor=2)
        assert chosen.tolist() == [0, 1, 2]

    def test_a_class_above_its_floor_is_evicted_as_before(self):
        random = np.random.default_rng(0)
        code, entered = random.integers(0, 2, 60), random.permutation(60)
        weighted = random.random(60) < 0.7
        arguments = np.arange(60), code, entered, weighted, 10
        assert slots_to_evict(*arguments, floor=5).tolist() == slots_to_evict(*arguments).tolist()
