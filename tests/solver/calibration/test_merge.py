"""The calibrations of learners of parts of a stream become one."""

import numpy as np

from wolfstream.solver.calibration.classes import ClassCalibration
from wolfstream.solver.calibration.merge import merge

KNOWN = np.arange(2)


def calibration(seed, n):
    random = np.random.default_rng(seed)
    codes = random.integers(0, 2, n)
    scores = random.normal(size=(n, 2))
    scores[np.arange(n), codes] += 1.0
    found = ClassCalibration()
    found.absorb(scores, codes)
    return found


def merged_of(each, places=(KNOWN, KNOWN)):
    merged = ClassCalibration()
    merge(merged, each, places, 2)
    return merged.view()


def test_totals_are_those_of_all():
    each = [calibration(1, 512), calibration(2, 64)]
    found = merged_of(each).totals
    assert found.samples == sum(one.view().totals.samples for one in each)
    np.testing.assert_allclose(found.sums, sum(one.view().totals.sums for one in each))


def test_recent_scores_are_the_last_ones_of_each():
    each = [calibration(1, 2048), calibration(2, 2048)]
    recent = merged_of(each).recent
    assert recent.shape[1] == 1000
    expected = np.concatenate([one.view().recent[:, -500:] for one in each], axis=1)
    np.testing.assert_array_equal(np.sort(recent), np.sort(expected))


def test_a_part_with_few_scores_leaves_room_to_the_other():
    recent = merged_of([calibration(1, 2048), calibration(2, 64)]).recent
    assert recent.shape[1] == 1000


def test_scalings_are_averaged_by_the_classes_that_they_are_of():
    one = calibration(1, 512)
    found = merged_of([one, one], (KNOWN, np.array([1, 0]))).scaling
    own = one.view().scaling
    assert found.slope == own.slope
    np.testing.assert_allclose(found.offset, own.offset.mean())


def test_of_parts_that_judged_nothing_nothing_is_known():
    found = merged_of([ClassCalibration(), ClassCalibration()])
    assert found.totals.samples == 0
    assert found.scaling is None
