"""The bank for regression: blocks, labels, units, views, states."""

import numpy as np
import pytest

from tests.solver.streams import blocks
from wolfstream.solver.adaptive.regressor import AdaptiveRegressor, predict_values
from wolfstream.solver.rows.matrix import sparse_from_csr

LENGTHS = (1, 7, 32, 64)


def waves(seed, n, noise=0.1):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0.0) + noise * random.normal(size=n)
    return X, y


def learned(X, y, length=64, external=None, **parameters):
    learner = AdaptiveRegressor(X.shape[1], **parameters)
    values = [
        learner.absorb(X[part], y[part], None if external is None else external[part])
        for part in blocks(len(y), length)
    ]
    return learner, np.concatenate(values)


@pytest.mark.parametrize("temporal", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_values_do_not_depend_on_the_blocks(length, temporal):
    X, y = waves(1, 400)
    y[200:] *= 1000.0
    _, once = learned(X, y, 400, temporal=temporal)
    _, other = learned(X, y, length, temporal=temporal)
    np.testing.assert_allclose(once, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("at", [1, 20, 150])
def test_values_have_no_bit_of_their_own_or_later_targets(at):
    X, y = waves(2, 200)
    changed = y.copy()
    changed[at:] = y[at:][::-1] + 1.0
    _, given = learned(X, y, 200, temporal=True)
    _, other = learned(X, changed, 200, temporal=True)
    np.testing.assert_array_equal(given[: at + 1], other[: at + 1])


def test_the_first_value_is_unknown():
    X, y = waves(3, 40)
    _, values = learned(X, y)
    assert np.isnan(values[0])
    assert np.isfinite(values[1:]).all()


def test_a_smooth_function_is_found():
    X, y = waves(4, 4000)
    _, values = learned(X, y)
    assert np.mean((values[3000:] - y[3000:]) ** 2) < 0.15 * y.var()


@pytest.mark.parametrize(("offset", "unit"), [(0.0, 1e-6), (1e6, 1e3), (-5.0, 1e100)])
def test_units_of_the_target_do_not_matter(offset, unit):
    X, y = waves(5, 600)
    _, plain = learned(X, y)
    _, other = learned(X, offset + unit * y)
    np.testing.assert_allclose((other - offset) / unit, plain, atol=1e-5)


def test_a_target_that_jumps_is_followed():
    X, y = waves(6, 3000)
    y[1500:] = 1e4 + 100.0 * y[1500:]
    _, values = learned(X, y)
    _, anew = learned(X[1500:], y[1500:])
    error, error_anew = (np.abs(v - y[2000:]).mean() for v in (values[2000:], anew[500:]))
    assert error < 1.25 * error_anew


def test_lagged_values_are_used_when_asked_for():
    random = np.random.default_rng(7)
    X, y = random.normal(size=(2000, 2)), np.cumsum(random.normal(size=2000))
    errors = [
        np.abs(learned(X, y, temporal=temporal)[1] - y)[500:].mean() for temporal in (False, True)
    ]
    assert errors[1] < 1.1 * np.abs(np.diff(y)).mean()
    assert errors[1] < 0.8 * errors[0]


@pytest.mark.parametrize("temporal", [False, True])
def test_a_view_predicts_what_absorbing_would_answer_next(temporal):
    X, y = waves(8, 334)
    learner, _ = learned(X[:-1], y[:-1], temporal=temporal)
    view = learner.view()
    value = predict_values(view, X[-1:]).prediction
    np.testing.assert_allclose(value, learner.absorb(X[-1:], y[-1:]), rtol=1e-9)
    np.testing.assert_array_equal(predict_values(view, X[-1:]).prediction, value)


def test_a_view_before_any_sample_is_refused():
    with pytest.raises(ValueError, match="no sample"):
        predict_values(AdaptiveRegressor(2).view(), np.zeros((1, 2)))


@pytest.mark.parametrize("at", [1, 3, 40, 64])
def test_a_restored_state_goes_on_to_the_bit(at):
    X, y = waves(9, 300)
    given = y[:, None] + np.random.default_rng(1).normal(size=(300, 1))
    options = {"temporal": True, "external_experts": ("other",), "seed": 3}
    learner, _ = learned(X[:at], y[:at], external=given[:at], **options)
    twin = AdaptiveRegressor(3, **options)
    twin.restore(learner.state())
    for one in (learner, twin):
        one.absorb(X[at:], y[at:], given[at:])
    states = learner.state(), twin.state()
    assert states[0].keys() == states[1].keys()
    for name, array in states[0].items():
        np.testing.assert_array_equal(array, states[1][name], err_msg=name)


def test_an_external_expert_that_is_right_is_followed():
    X, y = waves(10, 1500, noise=1.0)
    external = np.where(np.arange(1500) % 5 == 0, np.nan, y + 0.01)[:, None]
    _, values = learned(X, y, external=external, external_experts=("other",))
    there = ~np.isnan(external[500:, 0])
    assert np.abs(values[500:] - y[500:])[there].mean() < 0.1


def test_the_report_names_every_learner():
    X, y = waves(11, 1200)
    learner, _ = learned(X, y, external_experts=("asset",))
    report = learner.expert_weights().rows()
    assert sum(line["weight"] for line in report) == pytest.approx(1.0)
    losses = {line["learner"]: line["recent_loss"] for line in report}
    assert losses["asset"] is None
    assert losses["stacker"] < 0.5


def test_wide_sparse_rows_are_learned():
    random = np.random.default_rng(12)
    columns = np.sort(random.integers(0, 50_000, (1500, 2)) // 1000 * 1000, axis=1)
    columns[:, 1] += 1
    y = (columns[:, 0] > 20_000) + 0.05 * random.normal(size=1500)
    X = sparse_from_csr(np.ones(3000), columns.ravel(), np.arange(0, 3001, 2), 60_000)
    learner = AdaptiveRegressor(None)
    values = learner.absorb(X, y)
    assert np.mean((values[750:] - y[750:]) ** 2) < 0.3 * y.var()
    for array in learner.state().values():
        assert array.nbytes < 8e6


@pytest.mark.parametrize("changes", [False, True])
def test_learners_of_infinite_horizon_begin_again_where_a_target_changes(changes):
    random = np.random.default_rng(13)
    X = random.normal(size=(6000, 5))
    first, second = np.sin(2.0 * X[:, 0]) - X[:, 1], X[:, 2] + 0.5 * X[:, 3] * X[:, 4]
    y = np.where(changes & (np.arange(6000) >= 4000), second, first)
    learner, _ = learned(X, y + 0.1 * random.normal(size=6000))
    for one in learner.watches.each:
        assert (one.count < 2000) == changes


def test_deviations_are_those_of_the_targets():
    X, y = waves(5, 3000, noise=0.2)
    learner, _ = learned(X[:2500], 1000.0 * y[:2500])
    said = predict_values(learner.view(), X[2500:])
    off = np.abs(1000.0 * y[2500:] - said.prediction) / said.deviation
    # Of a Gaussian, 68% lie within one standard deviation and 95% within two.
    assert 0.6 < np.mean(off < 1.0) < 0.8
    assert np.mean(off < 2.0) > 0.92


def prices(seed, n, unit=1000.0):
    """Return rows and skewed targets: a few are many times the others."""
    X, y = waves(seed, n)
    return X, unit * np.exp(y)


class TestSkewedTargets:
    def test_their_logarithms_are_learned(self):
        X, y = prices(21, 3000)
        learner, values = learned(X, y)
        assert learner.scale.units.bend > 0.0
        _, straight = learned(X, np.log(y))
        errors = np.abs(values - y)[1000:]
        assert errors.mean() < 1.1 * np.abs(np.exp(straight) - y)[1000:].mean()

    def test_their_unit_does_not_matter(self):
        X, y = prices(22, 600)
        _, given = learned(X, y)
        _, other = learned(X, 1024.0 * y)
        np.testing.assert_allclose(other, 1024.0 * given, rtol=1e-6)

    @pytest.mark.parametrize("length", LENGTHS)
    def test_values_do_not_depend_on_the_blocks(self, length):
        X, y = prices(23, 400)
        _, once = learned(X, y, 400)
        _, other = learned(X, y, length)
        np.testing.assert_allclose(once, other, rtol=1e-6)

    def test_targets_below_zero_may_come_later(self):
        X, y = prices(24, 600)
        y[300::50] = -1000.0
        _, values = learned(X, y)
        assert np.isfinite(values[1:]).all()

    def test_answers_stay_near_the_targets(self):
        X, y = prices(25, 600)
        learner, _ = learned(X, y)
        far = predict_values(learner.view(), 1e6 * np.sign(X[:50])).prediction
        assert (far >= 0.0).all()
        assert (far <= 3.0 * y.max()).all()

    def test_deviations_are_those_of_the_errors(self):
        X, y = prices(26, 2000)
        learner, _ = learned(X[:1500], y[:1500])
        said = predict_values(learner.view(), X[1500:])
        inside = np.abs(said.prediction - y[1500:]) < 2.0 * said.deviation
        assert 0.9 < inside.mean() < 0.995

    @pytest.mark.parametrize("stop", [31, 32, 64, 100, 128, 200])
    def test_a_restored_one_goes_on_with_the_same_bits(self, stop):
        X, y = prices(27, 300)
        learner, _ = learned(X[:stop], y[:stop], stop)
        other = AdaptiveRegressor(3)
        other.restore(learner.state())
        np.testing.assert_array_equal(
            learner.absorb(X[stop:], y[stop:]), other.absorb(X[stop:], y[stop:])
        )

    @pytest.mark.parametrize(
        "y",
        [
            np.random.default_rng(1).normal(size=200),
            np.random.default_rng(2).uniform(size=200),
            np.arange(200.0) % 5.0,
            (np.arange(200.0) % 20.0 == 0.0).astype(float),
            np.full(200, 3.0),
            -np.exp(np.random.default_rng(3).normal(size=200)),
        ],
        ids=["normal", "uniform", "few numbers", "rare", "constant", "below zero"],
    )
    def test_others_stay_as_they_are(self, y):
        learner, _ = learned(np.random.default_rng(4).normal(size=(200, 3)), y)
        assert learner.scale.units.bend == 0.0
