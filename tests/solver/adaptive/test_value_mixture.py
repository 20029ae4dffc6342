"""One value of a few experts, by plain numpy from the formulas, and what follows from them."""

import numpy as np
import pytest

from wolfstream.solver.adaptive import value_mixture as mixture
from wolfstream.solver.arrays import Float64Array


def of_oracle(
    values: Float64Array, y: Float64Array, weight: Float64Array, in_units: bool
) -> Float64Array:
    experts = values.shape[1]
    prior = mixture.prior_of(experts)
    w, unit, count = prior.copy(), 0.0, 0.0
    rate = mixture.RATE_IN_UNITS if in_units else mixture.RATE
    most = mixture.MOST_IN_UNITS if in_units else mixture.MAX_ERROR
    a = np.zeros((2, experts))
    P = np.stack([np.eye(experts)] * 2)
    answers = []
    for row, target, of_row in zip(values, y, weight, strict=True):
        x = row - row[0]
        voices = np.concatenate([row, row[0] + a @ x])
        answers.append(w @ voices)
        error = np.abs(target - voices)
        own = abs(target - answers[-1]) if in_units else error.min()
        unit, count = mixture.DECAY * unit + own, mixture.DECAY * count + 1.0
        scale = max(unit / count, 1e-9)
        noise = 1.0 if in_units else (mixture.NOISE * scale) ** 2
        for s, kept in enumerate(np.exp(-1.0 / np.array(mixture.HORIZONS))):
            miss = target - voices[experts + s]
            gain = P[s] @ x
            spread = noise * max(abs(miss) / scale, mixture.CORE) / of_row + gain @ x
            a[s] = np.sqrt(kept) * (a[s] + gain / spread * miss)
            P[s] = kept * (P[s] - np.outer(gain, gain) / spread) + (1.0 - kept) * np.eye(experts)
        w = w * np.exp(-rate * of_row * np.minimum(error / scale, most))
        w = (1.0 - mixture.SHARE) * w / w.sum() + mixture.SHARE * prior
    return np.array(answers)


def drawn(n: int = 400) -> tuple[Float64Array, Float64Array]:
    random = np.random.default_rng(0)
    y = random.normal(size=n)
    return y[:, None] + random.normal(size=(n, 3)) * [1.0, 0.2, 0.6], y


@pytest.mark.parametrize("in_units", [False, True])
def test_answers_are_those_of_the_formulas(in_units: bool) -> None:
    values, y = drawn()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    answers, _ = mixture.learn_rows(mixture.new_mixture(3), values, y, weight, in_units=in_units)
    expected = of_oracle(values, y, weight, in_units)
    np.testing.assert_allclose(answers, expected, rtol=1e-7, atol=1e-9)


def test_answers_become_as_good_as_the_best() -> None:
    values, y = drawn(2000)
    answers, _ = mixture.learn_rows(mixture.new_mixture(3), values, y, np.ones(len(y)))
    assert np.abs(answers - y)[500:].mean() < 1.02 * np.abs(values[:, 1] - y)[500:].mean()


@pytest.mark.parametrize("size", [0.3, 0.003, 0.00003])
def test_stackers_learn_differences_of_any_size(size: float) -> None:
    random = np.random.default_rng(0)
    y, e = random.normal(size=2000), size * random.normal(size=2000)
    values = np.stack([y + e, y + 2.0 * e], axis=1)
    answers, _ = mixture.learn_rows(mixture.new_mixture(2), values, y, np.ones(len(y)))
    assert np.abs(answers - y)[1000:].mean() < 0.2 * np.abs(values[:, 0] - y)[1000:].mean()


def test_blocks_make_the_same_bits() -> None:
    values, y = drawn()
    whole, parts = mixture.new_mixture(3), mixture.new_mixture(3)
    answers, _ = mixture.learn_rows(whole, values, y, np.ones(len(y)))
    each = [
        mixture.learn_rows(parts, values[i : i + 7], y[i : i + 7], np.ones(len(y[i : i + 7])))[0]
        for i in range(0, len(y), 7)
    ]
    np.testing.assert_array_equal(np.concatenate(each), answers)


def test_another_unit_changes_nothing() -> None:
    values, y = drawn()
    one, other = mixture.new_mixture(3), mixture.new_mixture(3)
    for each in (one, other):
        mixture.learn_rows(each, values, y, np.ones(len(y)))
    mixture.rescale(other, 0.5)
    first, second = mixture.predict_rows(one, values), mixture.predict_rows(other, 0.5 * values)
    np.testing.assert_allclose(second[0], 0.5 * first[0], rtol=1e-9)


@pytest.mark.parametrize("factor", [1e-300, 1e-160, 1e-60, 1e60, 1e160, 1e300])
def test_a_unit_far_from_all_before_begins_anew(factor: float) -> None:
    values, y = drawn()
    one, blank = mixture.new_mixture(3), mixture.new_mixture(3)
    mixture.learn_rows(one, values, y, np.ones(len(y)))
    mixture.rescale(one, factor)
    for array, other in zip(one, blank, strict=True):
        np.testing.assert_array_equal(array, other)


@pytest.mark.parametrize("factor", [1e-40, 1e40])
def test_any_number_of_other_units_leaves_finite_numbers(factor: float) -> None:
    values, y = drawn()
    one = mixture.new_mixture(3)
    for _ in range(10):
        mixture.rescale(one, factor)
        answers, _ = mixture.learn_rows(one, values, y, np.ones(len(y)))
        assert np.isfinite(answers).all()
        assert all(np.isfinite(array).all() for array in one)
        assert all(np.trace(P) > 0.0 for P in one.P)


def test_influence_is_the_slope_in_each_expert() -> None:
    values, y = drawn()
    one = mixture.new_mixture(3)
    mixture.learn_rows(one, values, y, np.ones(len(y)))
    moved = [
        mixture.predict_rows(one, values[:1] + e)[0] - mixture.predict_rows(one, values[:1])[0]
        for e in np.eye(3)
    ]
    assert mixture.influence(one) == pytest.approx(np.array(moved).ravel(), rel=1e-9)


@pytest.mark.parametrize("weight", [1e-9, 1e9])
def test_any_weight_leaves_finite_numbers(weight: float) -> None:
    values, y = drawn()
    one = mixture.new_mixture(3)
    answers, _ = mixture.learn_rows(one, values, y, np.full(len(y), weight))
    assert np.isfinite(answers).all()
    assert all(np.isfinite(array).all() for array in one)
