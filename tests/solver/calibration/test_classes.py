"""Calibrations of streams: scores, and states that go on bit for bit."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

from wolfstream.solver.calibration.classes import ClassCalibration
from wolfstream.solver.calibration.values import ValueCalibration


def stream(n, classes=3, seed=0):
    random = np.random.default_rng(seed)
    scores = random.standard_normal((n, classes))
    return scores, np.argmax(2.0 * scores + random.gumbel(size=scores.shape), axis=1)


def absorbed(scores, codes, length, calibration=None):
    calibration = calibration or ClassCalibration()
    for start in range(0, len(codes), length):
        calibration.absorb(scores[start : start + length], codes[start : start + length])
    return calibration


def test_scores_are_those_of_scikit_learn():
    random = np.random.default_rng(3)
    p = random.dirichlet(np.ones(3), 1024)
    codes = np.array([random.choice(3, p=row) for row in p])
    found = absorbed(np.log(p), codes, 100, ClassCalibration(log_scores=True)).view().summary
    assert found["samples"] == 1024
    assert found["log_loss"] == pytest.approx(log_loss(codes, p))
    assert found["brier_score"] == pytest.approx(
        brier_score_loss(codes, p, labels=[0, 1, 2], scale_by_half=False)
    )
    top, right = p.max(axis=1), p.argmax(axis=1) == codes
    place = np.minimum((10 * top).astype(int), 9)
    error = sum(abs((top - right)[place == b].sum()) for b in range(10)) / 1024
    assert found["calibration_error"] == pytest.approx(error)
    assert found["recent_log_loss"] == pytest.approx(log_loss(codes[-1000:], p[-1000:]))


def test_the_recent_reliability_is_that_of_scikit_learn():
    random = np.random.default_rng(4)
    p = random.dirichlet(np.ones(3), 1584)  # at which what waits is taken in
    codes = np.array([random.choice(3, p=row) for row in p])
    found = absorbed(np.log(p), codes, 128, ClassCalibration(log_scores=True)).view().summary
    top, right = p.max(axis=1)[-1000:], p.argmax(axis=1)[-1000:] == codes[-1000:]
    shares, probabilities = calibration_curve(right, top, n_bins=10)
    bins = found["recent_reliability"]
    assert [one["probability"] for one in bins] == pytest.approx(probabilities.tolist())
    assert [one["right"] for one in bins] == pytest.approx(shares.tolist())
    assert sum(one["samples"] for one in bins) == 1000


def test_calls_of_any_length_give_the_same_bits():
    scores, codes = stream(700)
    one, other = (absorbed(scores, codes, length).state() for length in (1, 257))
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name])


@pytest.mark.parametrize("at", [0, 5, 200, 384])
def test_a_restored_calibration_goes_on_bit_for_bit(at):
    scores, codes = stream(600)
    whole = absorbed(scores[:at], codes[:at], 7)
    restored = ClassCalibration()
    restored.restore(whole.state())
    for one in (whole, restored):
        absorbed(scores[at:], codes[at:], 11, one)
    for name, array in whole.state().items():
        np.testing.assert_array_equal(array, restored.state()[name])


def test_a_calibration_of_values_goes_on_bit_for_bit():
    random = np.random.default_rng(0)
    predicted, y = random.standard_normal((2, 900))
    whole, restored = ValueCalibration(), ValueCalibration()
    whole.absorb(predicted[:333], y[:333])
    restored.restore(whole.state())
    for one in (whole, restored):
        one.absorb(predicted[333:], y[333:])
    for name, array in whole.state().items():
        np.testing.assert_array_equal(array, restored.state()[name])


def test_a_picture_does_not_change():
    scores, codes = stream(2000)
    calibration = absorbed(scores[:1500], codes[:1500], 50)
    view = calibration.view()
    before = view.probabilities(scores), view.sets(view.probabilities(scores), 0.9)
    absorbed(scores[1500:], codes[1500:], 50, calibration)
    np.testing.assert_array_equal(view.probabilities(scores), before[0])
    np.testing.assert_array_equal(view.sets(before[0], 0.9), before[1])


def test_a_class_that_comes_late_is_calibrated_too():
    scores, codes = stream(1024, classes=4)
    scores[:512, 3] = np.nan
    keep = (codes < 3) | (np.arange(1024) >= 512)
    calibration = absorbed(scores[:, :3][:512], np.minimum(codes, 2)[:512], 64)
    absorbed(scores[512:], codes[512:], 64, calibration)
    found = calibration.view().probabilities(scores[512:])
    assert keep.any()
    assert np.mean(found.argmax(axis=1) == codes[512:]) > 0.5


def test_a_label_nobody_knew_costs_the_most():
    calibration = ClassCalibration()
    calibration.absorb(np.array([[0.5, -0.5]]), np.array([2]))
    assert calibration.view().summary["log_loss"] == pytest.approx(-np.log(1e-15))


def test_the_state_does_not_grow():
    scores, codes = stream(5000)
    calibration = ClassCalibration()
    sizes = []
    for _ in range(2):
        absorbed(scores, codes, 500, calibration)
        sizes.append(sum(array.nbytes for array in calibration.state().values()))
    assert sizes[1] <= sizes[0] + 128 * 8 * 4
    assert len(calibration.state()["codes"]) == 256  # those that the scaling is fitted to
