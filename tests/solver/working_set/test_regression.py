"""Regression in the working set: against plain numpy, its certificate, its bound and its state."""

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.solver.streams import sparse
from wolfstream.solver.frank_wolfe.steps import STEP_NAMES
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import FINEST
from wolfstream.solver.kernels.prepared_rows import prepare_rows
from wolfstream.solver.working_set.predictions import pair_decisions
from wolfstream.solver.working_set.regression import RegressionSet
from wolfstream.solver.working_set.store import Bounds
from wolfstream.solver.working_set.tube import TubeSet
from wolfstream.solver.working_set.tube_steps import TubeRule

RBF = Kernel("rbf", 0.5)
KERNELS = {
    "rbf": RBF,
    "polynomial": Kernel("polynomial", 0.3, 2, 1.0),
    "linear": Kernel("linear"),
}
for_each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def curve(n=120, seed=0, noise=0.1):
    """Rows and targets of a function with noise."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + noise * random.standard_normal(n)


def exact_kernel(kernel, X):
    """k(x, z) + 1 in float64."""
    rows = prepare_rows(kernel, X, X[0], *FINEST)
    return kernel_block(kernel, rows, rows) + 1.0


def tube(kernel=RBF, C=5.0, epsilon=0.1, away=True, steps=10, max_size=None, **bounds):
    rule = TubeRule(epsilon, away, steps)
    return TubeSet(kernel, C, rule, Bounds(max_size, bounds.get("gram_bytes", 1 << 30)))


def held(learner):
    """The rows of the set in float64, with beta, h and y of each."""
    columns = np.flatnonzero(learner.members.is_member)
    rows = learner.store.rows.exact[columns]
    return rows, *(field[columns] for field in learner.members[:3])


def certificate_of(learner, inverse_weight=1.0):
    """The objective and the gap, recomputed in float64 from the weights alone."""
    X, beta, _, y = held(learner)
    K, epsilon = exact_kernel(learner.kernel, X), learner.rule.epsilon
    ridge = 0.5 / learner.ridges.C * inverse_weight
    value = K @ beta
    dual = y @ beta - epsilon * np.abs(beta).sum() - 0.5 * beta @ value
    dual -= 0.5 * (ridge * beta**2).sum()
    slack = np.maximum(np.abs(y - value) - epsilon, 0.0)
    return dual, 0.5 * beta @ value + (0.5 / ridge * slack**2).sum() - dual


def plain_pass(X, y, kernel, C, epsilon, away, steps):
    """The algorithm written down without blocks: values before learning, admitted, beta, kinds."""
    K, ridge = exact_kernel(kernel, X), 0.5 / C
    n = len(y)
    beta, admitted, values = np.zeros(n), np.zeros(n, bool), np.empty(n)
    kinds = ["none"] * n

    def best(m):
        alone = y[m] - K[m] @ beta + K[m, m] * beta[m]
        return np.sign(alone) * max(abs(alone) - epsilon, 0.0) / (K[m, m] + ridge)

    def dual(of):
        return y @ of - epsilon * np.abs(of).sum() - 0.5 * of @ (K @ of + ridge * of)

    def moved(*changes):
        after = beta.copy()
        for m, change in changes:
            after[m] += change
        return after

    def gain(m, toward):
        if toward and abs(best(m)) <= abs(beta[m]):
            return 0.0
        return dual(moved((m, best(m) - beta[m]))) - dual(beta)

    def pair(p, m):
        """The best point of two members on their sides, with m's weight not beyond zero."""
        side = np.sign(best(p) or beta[p])
        A = np.array([[K[p, p] + ridge, K[p, m]], [K[p, m], K[m, m] + ridge]])
        h = K @ beta + ridge * beta
        slopes = np.array([y[p] - h[p] - epsilon * side, y[m] - h[m] - epsilon * np.sign(beta[m])])
        change = np.linalg.solve(A, slopes)
        if np.sign(beta[m]) * (beta[m] + change[1]) < 0.0:
            change[1] = -beta[m]
            change[0] = (slopes[0] - A[0, 1] * change[1]) / A[0, 0]
        single = slopes[0] ** 2 / (2.0 * A[0, 0])
        more = slopes @ change - 0.5 * change @ A @ change - single
        return more, side * (beta[p] + change[0]) >= 0.0, change

    for k in range(n):
        values[k] = K[k] @ beta
        members = np.flatnonzero(admitted)
        own = gain(k, toward=True)
        admitted[k] = own > 0.0 and own >= max([gain(m, toward=True) for m in members], default=0.0)
        members = np.flatnonzero(admitted)
        for taken in range(1 + steps if len(members) else 0):
            gains = [gain(m, toward=taken == 0 and not away) for m in members]
            p = members[np.argmax(gains)]
            if max(gains) <= (0.0 if taken == 0 else 2.5e-5):
                break
            found = [(*pair(p, m), m) for m in members if m != p and beta[m] and taken]
            more, fits, change, m = max(found, key=lambda one: one[0], default=(0.0, False, 0, p))
            if taken == 0:
                grows = abs(best(p)) > abs(beta[p])
                kinds[k] = "toward" if grows else "away" if best(p) else "drop"
            if more > 1e-15 and fits:
                beta = moved((p, change[0]), (m, change[1]))
            else:
                beta = moved((p, best(p) - beta[p]))
    return values, admitted, beta, kinds


@pytest.mark.parametrize("away", [False, True], ids=["sfw", "msfw"])
@pytest.mark.parametrize("steps", [0, 3])
def test_a_pass_is_the_algorithm_written_down_without_blocks(away, steps):
    X, y = curve(60)
    kernel = KERNELS["polynomial"]  # its values are float64
    learner = tube(kernel, away=away, steps=steps)
    found = learner.absorb(X, y)
    values, admitted, beta, kinds = plain_pass(X, y, kernel, 5.0, 0.1, away, steps)
    assert [STEP_NAMES[kind] for kind in found.step] == kinds
    assert ("away" in kinds) == (away and steps > 0)
    np.testing.assert_array_equal(found.admitted, admitted)
    np.testing.assert_allclose(found.value, values, atol=1e-9)
    np.testing.assert_allclose(held(learner)[1], beta[admitted], atol=1e-9)


@for_each_kernel
def test_passes_lead_to_the_optimum_of_the_dual(kernel):
    X, y = curve(60)
    learner = tube(kernel, steps=50)
    entered = None
    for _ in range(30):
        entered = learner.absorb(X, y, entered).entered
    K, n = exact_kernel(kernel, X) + 0.1 * np.eye(60), 60

    def minus_dual(weights):
        beta = weights[:n] - weights[n:]
        slope = K @ beta - y
        value = 0.5 * beta @ K @ beta - y @ beta + 0.1 * weights.sum()
        return value, np.concatenate([slope, -slope]) + 0.1

    best = minimize(
        minus_dual,
        np.zeros(2 * n),
        jac=True,
        bounds=[(0, None)] * (2 * n),
        options={"maxiter": 10_000, "ftol": 1e-14, "gtol": 1e-9, "maxfun": 100_000},
    )
    objective, gap = learner.certificate()
    assert objective == pytest.approx(-best.fun, rel=1e-3)
    assert objective <= -best.fun + 1e-6 <= objective + gap + 2e-6


@for_each_kernel
@pytest.mark.parametrize("max_size", [None, 40])
def test_the_certificate_is_that_of_the_weights_in_float64(kernel, max_size):
    learner = tube(kernel, max_size=max_size, steps=3)
    learner.absorb(*curve(200))
    np.testing.assert_allclose(learner.certificate(), certificate_of(learner), rtol=1e-3)


def test_no_gap_is_claimed_where_rounding_has_turned_the_quadratic_term():
    learner = tube()
    learner.absorb(*curve(30))
    learner.members.value[:] = -learner.members.beta
    assert np.isnan(learner.certificate().gap)


def test_work_per_sample_counts_each_member_in_each_step():
    X, y = curve(60)
    learner = tube(steps=4)
    assert learner.work_per_sample == 0
    learner.absorb(X, y)
    kernel_row, value, steps = 2, 1, 3 * 5
    assert learner.work_per_sample == learner.store.used * (kernel_row + value + steps)


def test_only_what_lies_outside_of_the_tube_is_stored():
    X, y = curve(80, noise=0.0)
    learner = tube(epsilon=0.5)
    found = learner.absorb(X, y)
    inside = np.abs(y - found.value) <= 0.5
    assert inside.any()
    assert not found.admitted[inside].any()
    assert learner.store.size == found.admitted.sum()


def test_parts_of_a_stream_are_learned_as_the_whole():
    X, y = curve(300)
    whole, parts = (tube(KERNELS["polynomial"], max_size=64) for _ in range(2))
    values = whole.absorb(X, y).value
    of_parts = [parts.absorb(X[i : i + 7], y[i : i + 7]).value for i in range(0, 300, 7)]
    np.testing.assert_allclose(np.concatenate(of_parts), values, atol=1e-9)
    np.testing.assert_array_equal(parts.store.entered, whole.store.entered)


def test_some_rows_of_kernel_values_lead_to_the_same_steps():
    X, y = curve(300)
    kernel = KERNELS["polynomial"]
    whole, some = tube(kernel), tube(kernel, gram_bytes=8 * 80**2)
    values = [learner.absorb(X, y).value for learner in (whole, some)]
    assert some.store.some_rows
    np.testing.assert_allclose(*values, atol=1e-8)
    np.testing.assert_allclose(some.certificate(), whole.certificate(), rtol=1e-6)


def test_full_set_keeps_bound_and_values():
    X, y = curve(400)
    learner = tube(max_size=50)
    learner.absorb(X, y)
    assert 40 <= learner.store.size <= 50
    rows, beta, value, _ = held(learner)
    np.testing.assert_allclose(exact_kernel(RBF, rows) @ beta, value, atol=1e-5)
    # The last samples outside of the tube are there.
    assert learner.store.entered[learner.store.occupied_slots()].max() == learner.store.added - 1


def test_evicted_weight_goes_to_nearest_neighbour():
    rows = np.array([[0.0], [3.0], [0.1], [6.0], [9.0], [12.0], [15.0], [18.0]])
    learner = tube(kernel=Kernel("rbf", 1.0), C=1e6, epsilon=0.0, steps=0, max_size=8)
    learner.absorb(rows, np.array([1.0, 20.0, -90.0, 300.0, -900.0, 3e3, -9e3, 3e4]))
    before = learner.members.beta[:3].copy()
    assert learner.store.size == 8
    learner.absorb(np.array([[40.0]]), np.array([1e6]))  # for which one has to leave
    assert learner.members.beta[2] == pytest.approx(before[0] + before[2])
    assert learner.store.rows.exact[0] == 40.0


def test_steps_are_counted_as_many_as_there_may_have_been():
    learner = tube(steps=10)
    learner.absorb(*curve(120))
    assert learner.steps == 120 * 11


def test_h_is_computed_anew_after_many_steps():
    X, y = curve(120)
    learner = tube(steps=100)
    learner.absorb(X, y)
    for _ in range(3):
        learner.steps = 1 << 30
        learner.absorb(X[:1], y[:1])
        assert learner.steps == 0
    rows, beta, value, _ = held(learner)
    np.testing.assert_allclose(exact_kernel(RBF, rows) @ beta, value, atol=1e-5)


def test_a_weight_counts_as_so_many_equal_samples():
    X, y = curve(40)
    weighted, repeated = tube(steps=60), tube(steps=60)
    entered = again = None
    copies = np.repeat(np.arange(40), 3)
    for _ in range(20):
        entered = weighted.absorb(X, y, entered, np.full(40, 3.0)).entered
        again = repeated.absorb(X[copies], y[copies], again).entered
    assert weighted.certificate().objective == pytest.approx(
        repeated.certificate().objective, rel=2e-3
    )
    np.testing.assert_allclose(
        weighted.certificate(), certificate_of(weighted, 1.0 / 3.0), rtol=1e-3, atol=1e-6
    )


def test_values_are_as_exact_as_the_heaviest_sample_asks_for():
    rule, bounds = TubeRule(0.1, True, 3), Bounds(None, 1 << 30)
    small = TubeSet(RBF, 1e3, rule, bounds)
    heavy = TubeSet(RBF, 1e3, rule, bounds, largest_weight=100.0)
    assert small.precision.dtype == np.float32
    assert heavy.precision.dtype == np.float64
    # In float32 a weight counts as far as values bear it.
    X, y = curve(20)
    small.absorb(X, y, weight=np.full(20, 100.0))
    assert 0.5 / 1e3 / 100.0 < small.members.ridge[0] < 0.5 / 1e3


def test_a_further_pass_stores_no_sample_twice():
    X, y = curve(80)
    learner = tube()
    entered = learner.absorb(X, y).entered
    again = learner.absorb(X, y, entered).entered
    known = again[again >= 0]
    assert len(np.unique(known)) == len(known) == learner.store.size
    assert (again[entered >= 0] == entered[entered >= 0]).all()


@pytest.mark.parametrize(("n", "settles"), [(50, True), (300, False)])
def test_second_pass_finds_early_samples(n, settles):
    X, y = curve(n)
    learner = RegressionSet(RBF, C=5.0)
    entered = learner.absorb(X, y).entered
    if settles:
        learner.settle()
    again = learner.absorb(X, y, entered).entered
    store = learner.set.store
    assert learner.seen == 2 * n
    known = again >= 0
    np.testing.assert_array_equal(store.rows.exact[store.slots_of_entered(again[known])], X[known])
    assert known.sum() == store.size


def test_repeated_samples_are_recognised_across_calls():
    X, y = curve(300)
    learner = RegressionSet(RBF, C=5.0)
    learner.absorb(X[:20], y[:20])
    entered = learner.absorb(X[20:], y[20:]).entered
    known, store = entered >= 0, learner.set.store
    np.testing.assert_array_equal(
        store.rows.exact[store.slots_of_entered(entered[known])], X[20:][known]
    )


@pytest.mark.parametrize("cut", [0, 1, 60, 300])
def test_a_restored_learner_goes_on_bit_for_bit(cut):
    X, y = curve(400)
    first = RegressionSet(RBF, max_size=64)
    first.absorb(X[:cut], y[:cut])
    state = {name: array.copy() for name, array in first.state().items()}
    one, two = RegressionSet(RBF, max_size=64), RegressionSet(RBF, max_size=64)
    for learner in (one, two):
        learner.restore(state)
    answers = [learner.absorb(X[cut:], y[cut:]) for learner in (one, two)]
    np.testing.assert_array_equal(answers[0].prediction, answers[1].prediction)
    assert one.state().keys() == two.state().keys()
    rest = first.absorb(X[cut:], y[cut:])
    np.testing.assert_allclose(rest.prediction, answers[0].prediction, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(one.state()["beta"], two.state()["beta"])


def test_targets_of_other_units_give_the_same_model_in_these_units():
    X, y = curve(300)
    plain, moved = RegressionSet(RBF), RegressionSet(RBF)
    found = plain.absorb(X, y).prediction
    other = moved.absorb(X, 1e6 * y + 1e7).prediction
    assert np.isnan(found[0])
    assert np.isnan(other[0])
    np.testing.assert_allclose(other[1:], 1e6 * found[1:] + 1e7, rtol=1e-5)
    assert moved.set.certificate().objective == pytest.approx(
        plain.set.certificate().objective, rel=1e-5
    )


def test_a_member_that_others_explain_loses_its_weight():
    learner = tube(C=1e6, steps=0)
    found = learner.absorb(np.zeros((3, 1)), np.array([0.3, 0.55, 0.45]))
    assert [STEP_NAMES[kind] for kind in found.step] == ["toward", "toward", "drop"]
    assert learner.members.beta[0] == 0.0
    assert learner.store.size == 2


def test_a_view_predicts_what_the_learner_would_say_next():
    X, y = curve(300)
    learner = RegressionSet(RBF)
    learner.absorb(X[:299], 50.0 * y[:299])
    view = learner.view()
    said = learner.absorb(X[299:], y[299:]).prediction
    np.testing.assert_allclose(pair_decisions(view, X[299:])[:, 0], said, rtol=1e-5)
    assert (-view.q[0], view.gap[0]) != learner.set.certificate()
    assert view.gap[0] >= 0.0


def test_it_learns_the_curve():
    X, y = curve(1000)
    learner = RegressionSet(RBF, max_size=300)
    found = learner.absorb(X, y).prediction[500:]
    assert np.mean((found - y[500:]) ** 2) < 0.03 * y.var()


def test_sparse_rows_are_learned_as_dense_ones():
    X, y = curve(200)
    values = [tube().absorb(rows, y).value for rows in (X, sparse(X))]
    np.testing.assert_allclose(*values, atol=1e-4)


def test_equal_targets_are_predicted_and_nothing_is_stored():
    learner = RegressionSet(RBF)
    found = learner.absorb(curve(50)[0], np.full(50, 7.0)).prediction
    assert (found[1:] == 7.0).all()
    assert learner.set.store.size == 0


def test_what_cannot_be_learned_is_refused():
    with pytest.raises(ValueError, match="coef0 >= 0"):
        RegressionSet(Kernel("polynomial", 1.0, 3, -1.0))
    with pytest.raises(ValueError, match="fewer than two"):
        RegressionSet(RBF, max_size=1)
    with pytest.raises(ValueError, match="scale targets"):
        RegressionSet(RBF).absorb(np.ones((1, 2)), np.array([1e101]))
