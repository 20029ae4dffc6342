"""The calibration of numbers: its deviation, its widths, and what it leaves out."""

import numpy as np

from wolfstream.solver.calibration.values import ValueCalibration


def absorbed(distance):
    calibration = ValueCalibration()
    calibration.absorb(np.zeros(len(distance)), np.asarray(distance, np.float64))
    return calibration


def test_the_deviation_is_that_of_the_last_thousand_distances():
    distance = np.random.default_rng(0).standard_normal(1536)
    found = absorbed(distance).view().deviation
    assert found == np.sqrt(np.mean(distance[-1000:] ** 2))


def test_widths_are_the_mean_over_the_intervals_that_were_bounded():
    """Half of the targets lie within 1; the interval of 0.99 has no end before 128 targets."""
    found = absorbed(np.ones(192)).view().summary["intervals"]
    assert [one["mean_width"] for one in found] == [2.0] * 5
    first = absorbed(np.ones(64)).view().summary["intervals"]
    assert [one["mean_width"] for one in first] == [2.0, 2.0, 2.0, 2.0, None]


def test_predictions_that_are_no_numbers_are_left_out():
    calibration = ValueCalibration()
    calibration.absorb(np.array([np.nan, np.inf, 1.5, -np.inf]), np.ones(4))
    assert calibration.view().samples == 1
    assert calibration.view().deviation == 0.5
