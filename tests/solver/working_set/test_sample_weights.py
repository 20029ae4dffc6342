"""Sample weights in a working set: 1/(2 C w) on the diagonal of A, and everything that follows."""

import numpy as np
import pytest

from tests.solver.differences import assert_same_state
from tests.solver.streams import FLOAT64, clusters, direct_hessian, members
from wolfstream.solver.frank_wolfe.one_versus_one import solve_pairs
from wolfstream.solver.frank_wolfe.solve_dual import Settings
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import Precision
from wolfstream.solver.working_set.auto_widths import AutoWidths
from wolfstream.solver.working_set.class_pairs import Ridges
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.predictions import predict

KERNEL = Kernel("rbf", gamma=0.3)
C = 2.0


def weights(n, seed=0, largest=8.0):
    """Weights between 1/8 and 8, as many below 1 as above."""
    return largest ** np.random.default_rng(seed).uniform(-1.0, 1.0, n)


def learned(X, codes, weight=None, calls=(None,), **parameters):
    """A working set that has learned the samples in calls that end at these places."""
    learner = WorkingSet(KERNEL, C, **parameters)
    start = 0
    for end in calls:
        part = slice(start, end)
        learner.absorb(X[part], codes[part], weight=None if weight is None else weight[part])
        start = end
    return learner


def test_coarse_values_keep_weight_one():
    ridges, single = Ridges(1e6), Precision(np.dtype(np.float32), 1e-6)
    given = np.array([0.5, 1.0, 4.0])
    np.testing.assert_array_equal(
        ridges.inverse_weights(np.zeros(3, np.int64), given, single), [2.0, 1.0, 1.0]
    )


@pytest.mark.parametrize("n_classes", [2, 4])
def test_samples_of_weight_one_are_learned_as_without_weights(n_classes):
    X, codes = clusters(1, 400, n_classes=n_classes)
    assert_same_state(learned(X, codes), learned(X, codes, np.ones(len(X))))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("max_size", [None, 64])
def test_q_and_gap_are_those_of_the_weighted_matrix(n_classes, max_size):
    X, codes = clusters(2, 500, n_classes=n_classes)
    learner = learned(X, codes, weights(len(X)), dtype=FLOAT64, max_size=max_size)
    view = learner.view()
    for i, problem in enumerate(learner.problems):
        held, A = members(problem), direct_hessian(learner, problem)
        q = held.alpha @ A @ held.alpha
        assert view.q[i] == pytest.approx(q, rel=1e-9)
        assert view.gap[i] == pytest.approx((-2.0 * A @ held.alpha).max() + 2.0 * q, abs=1e-9)


def test_the_diagonal_is_that_of_the_samples_own_weights():
    X, codes = clusters(3, 200, n_classes=3)
    weight = weights(len(X))
    learner = learned(X, codes, weight, dtype=FLOAT64, class_weight=[1.0, 4.0, 0.5])
    store = learner.store
    given = {X[i].tobytes(): weight[i] for i in range(len(X))}
    for slot in store.occupied_slots():
        own = given[store.rows.exact[slot].tobytes()]
        assert store.inverse_weight[slot] == pytest.approx(1.0 / own)


def test_a_weight_of_two_counts_as_the_sample_twice():
    """At the optimum: the copies share the weight that the one sample has."""
    X, codes = clusters(4, 120)
    twice = np.arange(len(X)) % 3 == 0
    repeated = np.concatenate([X, X[twice]]), np.concatenate([codes, codes[twice]])
    exact = Settings("smo", tol=0.0, absolute_tol=1e-11)
    (copies,) = solve_pairs(
        KERNEL, *repeated, np.full(len(repeated[1]), 0.5 / C), exact, np.random.default_rng(0)
    )
    weight = np.where(twice, 2.0, 1.0)
    (weighted,) = solve_pairs(KERNEL, X, codes, 0.5 / (C * weight), exact, np.random.default_rng(0))
    assert weighted.solution.objective == pytest.approx(copies.solution.objective, abs=1e-9)
    learner = WorkingSet(KERNEL, C, dtype=FLOAT64, corrective_steps=100)
    entered = np.full(len(X), -1)
    for _ in range(30):
        entered = learner.absorb(X, codes, entered, weight).entered
    assert -learner.view().q[0] == pytest.approx(copies.solution.objective, rel=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_division_into_calls_does_not_matter(n_classes):
    X, codes = clusters(5, 400, n_classes=n_classes)
    weight = weights(len(X))
    whole = learned(X, codes, weight, dtype=FLOAT64, max_size=128)
    parts = learned(X, codes, weight, (1, 7, 150, 151, None), dtype=FLOAT64, max_size=128)
    np.testing.assert_array_equal(whole.store.entered, parts.store.entered)
    np.testing.assert_allclose(whole.view().q, parts.view().q, rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_restored_set_goes_on_bit_for_bit(n_classes):
    X, codes = clusters(6, 400, n_classes=n_classes)
    weight = weights(len(X))
    live = learned(X[:250], codes[:250], weight[:250], max_size=64)
    again = WorkingSet(KERNEL, C, max_size=64)
    state = live.state()
    for learner in (live, again):  # as at a checkpoint
        learner.restore(state)
        learner.absorb(X[250:], codes[250:], weight=weight[250:])
    assert_same_state(live, again)


def test_a_state_without_weights_has_no_array_of_them():
    X, codes = clusters(7, 100)
    assert "inverse_weight" not in learned(X, codes).state()
    assert "inverse_weight" in learned(X, codes, weights(len(X))).state()


def test_single_precision_bears_a_weight_up_to_its_bound():
    X, codes = clusters(8, 100)
    learner = learned(X, codes, np.full(len(X), 1e6))
    assert learner.precision.dtype == np.float32
    C_w = C / learner.store.inverse_weight[learner.store.occupied_slots()]
    np.testing.assert_allclose(C_w, 4096.0)
    fine = learned(X, codes, np.full(len(X), 1e6), largest_weight=1e6)
    np.testing.assert_allclose(fine.store.inverse_weight[fine.store.occupied_slots()], 1e-6)


def test_rows_far_away_are_as_exact_as_their_weights_ask():
    """gamma ||x||^2 of 1,000 loses digits in float32: enough for C = 1, not for C w = 1,000."""
    random = np.random.default_rng(9)
    X = random.standard_normal((300, 2)) * 0.5
    X[1:] += 60.0
    codes = (X[:, 0] * X[:, 1] > 3600.0).astype(np.int64)
    codes[0] = 0
    learner = WorkingSet(Kernel("rbf", 0.3), 1.0)
    learner.absorb(X, codes, weight=np.full(len(X), 1000.0))
    (problem,) = learner.problems
    held, A = members(problem), direct_hessian(learner, problem)
    assert np.linalg.eigvalsh(A).min() > 0.0
    assert learner.view().q[0] == pytest.approx(held.alpha @ A @ held.alpha, rel=0.01)
    again = WorkingSet(Kernel("rbf", 0.3), 1.0)
    again.restore(learner.state())
    np.testing.assert_array_equal(again.store.rows.far, learner.store.used_rows().far)


def test_widths_that_follow_the_stream_keep_the_weights():
    X, codes = clusters(10, 600)
    weight = weights(len(X))

    def build(gamma):
        return WorkingSet(Kernel("rbf", gamma), C, max_size=128)

    live, again = AutoWidths(build), AutoWidths(build)
    live.absorb(X[:300], codes[:300], weight[:300])
    state = live.state()
    for one in (live, again):  # as at a checkpoint
        one.restore(state)
        one.absorb(X[300:], codes[300:], weight[300:])
    assert_same_state(live, again)
    rows, store = live.learner.store.rows.exact[:, :-1], live.learner.store
    given = {row.tobytes(): w for row, w in zip(X, weight, strict=True)}
    for slot in store.occupied_slots():
        own = given[np.ascontiguousarray(rows[slot]).tobytes()]
        assert store.inverse_weight[slot] == pytest.approx(1.0 / own)


def test_heavy_class_wins_where_classes_overlap():
    random = np.random.default_rng(11)
    X = random.standard_normal((400, 2))
    codes = random.integers(0, 2, len(X))
    codes[0], codes[1] = 0, 1
    for heavy in (0, 1):
        learner = learned(X, codes, np.where(codes == heavy, 20.0, 1.0))
        assert (predict(learner.view(), X)[0] == heavy).mean() > 0.9
