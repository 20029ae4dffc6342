"""Coverage of conformal sets and intervals, where samples are exchangeable and where they drift."""

import numpy as np
import pytest

from wolfstream.solver.calibration.classes import ClassCalibration
from wolfstream.solver.calibration.conformal import (
    CONFIDENCES,
    first_misses,
    steps,
    threshold,
    thresholds,
)
from wolfstream.solver.calibration.values import ValueCalibration


def test_the_threshold_is_the_score_of_that_rank():
    ascending = np.arange(1.0, 10.0)
    found = thresholds(ascending, np.array([0.5, 0.1, 0.05, 1.0, -0.1]))
    np.testing.assert_array_equal(found, [5.0, 9.0, np.inf, -np.inf, np.inf])


def test_more_confidence_never_means_a_lower_threshold():
    random = np.random.default_rng(0)
    scores, misses = random.random(500), first_misses() + 0.1 * random.standard_normal(5)
    asked = np.linspace(0.001, 0.999, 200)
    assert (np.diff([threshold(scores, misses, level) for level in asked]) >= 0.0).all()


def coverage_of(summary, kind):
    return {one["confidence"]: one["coverage"] for one in summary[kind]}


@pytest.mark.parametrize("drift", ["none", "noise", "flip"])
def test_sets_have_the_label_as_often_as_they_say(drift):
    random = np.random.default_rng(1)
    calibration, n = ClassCalibration(), 8000
    for start in range(0, n, 16):
        late = start >= n // 2
        slope = {"none": 2.0, "noise": 0.3 if late else 3.0, "flip": -2.0 if late else 2.0}[drift]
        scores = random.standard_normal((16, 5))
        logits = slope * scores
        calibration.absorb(scores, np.argmax(logits + random.gumbel(size=logits.shape), axis=1))
    found = coverage_of(calibration.view().summary, "sets")
    for confidence, covered in found.items():
        # The likeliest class is always there, so there may be more.
        assert covered > confidence - 0.02


@pytest.mark.parametrize("drift", ["none", "jump", "growth"])
def test_intervals_have_the_target_as_often_as_they_say(drift):
    random = np.random.default_rng(2)
    calibration, n = ValueCalibration(), 8000
    for start in range(0, n, 16):
        size = {"none": 1.0, "jump": 5.0 if start >= n // 2 else 1.0, "growth": 1.0 + start / n}
        calibration.absorb(np.zeros(16), size[drift] * random.standard_normal(16))
    found = coverage_of(calibration.view().summary, "intervals")
    for confidence, covered in found.items():
        assert abs(covered - confidence) < 0.03


def test_the_share_left_out_is_bounded_whatever_comes():
    """Gibbs and Candes 2021, proposition 4.1, for feedback of up to 256 targets at once."""
    calibration, n = ValueCalibration(), 6400
    # Each block is far beyond all before.
    for block in range(n // 64):
        calibration.absorb(np.zeros(64), np.full(64, 2.0 ** (block // 4)))
    found = coverage_of(calibration.view().summary, "intervals")
    for (confidence, covered), step in zip(found.items(), steps().tolist(), strict=True):
        miss = 1.0 - confidence
        bound = (max(miss, confidence) + 256 * step) / (step * n)
        assert (1.0 - covered) - miss <= bound


def test_nothing_bounds_the_first_interval():
    calibration = ValueCalibration()
    assert calibration.view().half_width(0.9) == np.inf
    calibration.absorb(np.zeros(4), np.ones(4))
    assert calibration.view().half_width(0.9) == np.inf
    assert calibration.view().half_width(0.5) == 1.0


def test_confidences_are_counted_in_order():
    assert list(CONFIDENCES) == sorted(CONFIDENCES)
