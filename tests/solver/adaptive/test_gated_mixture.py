"""One value of a few experts, of which two contradict each other in some rows."""

import numpy as np
import pytest

from wolfstream.solver.adaptive import gated_mixture as gated
from wolfstream.solver.arrays import Float64Array

FAR = slice(None, None, 20)


def drawn(n: int = 2000, seed: int = 0) -> tuple[Float64Array, Float64Array]:
    """Targets and three experts, of which the first is best but in each twentieth row."""
    random = np.random.default_rng(seed)
    y = random.normal(size=n)
    values = y[:, None] + random.normal(size=(n, 3)) * [0.1, 0.3, 0.2]
    values[FAR, 0] += 5.0 * random.choice([-1.0, 1.0], size=len(values[FAR]))
    return values, y


def learned() -> gated.GatedMixture:
    one, (values, y) = gated.new_gated(3), drawn()
    gated.learn_gated(one, values, y, np.ones(len(y)))
    return one


def test_rows_far_apart_have_weights_of_their_own() -> None:
    values, y = drawn()
    answers, _ = gated.learn_gated(gated.new_gated(3), values, y, np.ones(len(y)))
    error = np.abs(answers - y)[1000:]
    assert error[FAR].mean() < 0.5
    assert np.delete(error, FAR).mean() < 0.15


def test_blocks_make_the_same_bits() -> None:
    values, y = drawn()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    whole, parts = gated.new_gated(3), gated.new_gated(3)
    answers, errors = gated.learn_gated(whole, values, y, weight)
    each = [
        gated.learn_gated(parts, *(array[i : i + 7] for array in (values, y, weight)))
        for i in range(0, len(y), 7)
    ]
    np.testing.assert_array_equal(np.concatenate([one for one, _ in each]), answers)
    np.testing.assert_array_equal(np.concatenate([one for _, one in each]), errors)


def test_a_row_is_predicted_as_it_would_be_learned() -> None:
    one, (values, y) = learned(), drawn(40, seed=1)
    for row, target in zip(values, y, strict=True):
        (predicted,), _ = gated.predict_gated(one, row[None])
        (answer,), _ = gated.learn_gated(one, row[None], np.array([target]), np.ones(1))
        assert predicted == answer


def test_saved_mixtures_continue_bit_for_bit() -> None:
    one, (values, y) = learned(), drawn(100, seed=2)
    other = gated.gated_from_arrays("mixing", gated.gated_arrays("mixing", one))
    for each in (one, other):
        gated.learn_gated(each, values, y, np.ones(len(y)))
    np.testing.assert_array_equal(
        gated.predict_gated(one, values), gated.predict_gated(other, values)
    )


def test_another_unit_changes_nothing() -> None:
    one, other, (values, _) = learned(), learned(), drawn(100, seed=3)
    gated.rescale_gated(other, 0.5)
    first, _ = gated.predict_gated(one, values)
    second, _ = gated.predict_gated(other, 0.5 * values)
    np.testing.assert_allclose(second, 0.5 * first, rtol=1e-9)


@pytest.mark.parametrize("factor", [1e-300, 1e-160, 1e160, 1e300])
def test_a_unit_far_from_all_before_leaves_finite_numbers(factor: float) -> None:
    one, (values, y) = learned(), drawn(100, seed=4)
    for _ in range(3):
        gated.rescale_gated(one, factor)
        answers, _ = gated.learn_gated(one, values, y, np.ones(len(y)))
        assert np.isfinite(answers).all()
        assert np.isfinite(one.gap).all()


@pytest.mark.parametrize("row", [0, 1])
def test_influence_is_the_slope_in_each_expert(row: int) -> None:
    one, (values, _) = learned(), drawn(2, seed=5)
    each = values[row : row + 1]
    (middle,), _ = gated.predict_gated(one, each)
    moved = [gated.predict_gated(one, each + 1e-6 * e)[0][0] - middle for e in np.eye(3)]
    assert gated.influence_gated(one, each) == pytest.approx(np.array(moved) / 1e-6, rel=1e-4)


def test_nothing_is_gated_before_the_first_sample() -> None:
    answers, variances = gated.predict_gated(gated.new_gated(2), np.array([[1.0, 9.0]]))
    assert answers[0] > 1.0
    assert np.isfinite(variances).all()
