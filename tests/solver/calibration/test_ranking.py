"""ROC AUC and average precision of counted probabilities beside scikit-learn's exact ones."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from wolfstream.solver.calibration.classes import ClassCalibration
from wolfstream.solver.calibration.merge import merge
from wolfstream.solver.calibration.ranking import (
    BINS,
    bins_of,
    no_ranking,
    overall_scores,
    recent_scores,
    with_rows,
)

RECENT = 1000


def drawn(n, classes, share=0.3, seed=0):
    """Probabilities of classes of which the last one has about this share, and labels."""
    random = np.random.default_rng(seed)
    logits = 1.5 * random.standard_normal((n, classes))
    logits[:, -1] += np.log(share / (1.0 - share))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = (p.cumsum(axis=1) < random.random(n)[:, None]).sum(axis=1)
    return p, np.minimum(codes, classes - 1)


def counted_in_parts(p, codes, length):
    found = no_ranking()
    for start in range(0, len(codes), length):
        part = slice(start, start + length)
        found = with_rows(found, p[part], codes[part], RECENT)
    return found


@pytest.mark.parametrize(("classes", "share"), [(2, 0.5), (2, 0.02), (5, 0.1), (100, 0.02)])
@pytest.mark.parametrize("n", [3000, 20000])
def test_scores_are_those_of_scikit_learn_within_the_resolution(n, classes, share):
    p, codes = drawn(n, classes, share)
    found = counted_in_parts(p, codes, 256)
    for scores, part in (
        (overall_scores(found), slice(None)),
        (recent_scores(found), slice(-RECENT, None)),
    ):
        for k in range(classes):
            own = codes[part] == k
            if own.all() or not own.any():
                assert np.isnan(scores.roc_auc[k])
                continue
            auc = roc_auc_score(own, p[part, k])
            average = average_precision_score(own, p[part, k])
            many = own.sum() >= 100
            assert scores.roc_auc[k] == pytest.approx(auc, abs=0.003 if many else 0.01)
            near = 0.006 if many else 0.05
            assert scores.average_precision[k] == pytest.approx(average, abs=near)


@pytest.mark.parametrize("spread", [0.01, 0.3, 3.0])
def test_auc_error_within_half_bin(spread):
    random = np.random.default_rng(0)
    codes = (random.random(5000) < 0.1).astype(np.int64)
    p = 1.0 / (1.0 + np.exp(3.0 - spread * (codes + random.standard_normal(5000))))
    p = np.column_stack([1.0 - p, p])
    found = with_rows(no_ranking(), p, codes, RECENT)
    own = np.bincount(bins_of(p[codes == 1, 1]), minlength=BINS) / (codes == 1).sum()
    others = np.bincount(bins_of(p[codes == 0, 1]), minlength=BINS) / (codes == 0).sum()
    error = abs(overall_scores(found).roc_auc[1] - roc_auc_score(codes, p[:, 1]))
    assert error <= 0.5 * (own * others).sum() + 1e-12


@pytest.mark.parametrize("spread", [0.01, 0.3, 3.0])
def test_average_precision_errs_within_bins_only(spread):
    random = np.random.default_rng(1)
    codes = (random.random(3000) < 0.05).astype(np.int64)
    odds = np.exp(spread * (codes + random.standard_normal(3000)) - 3.0)
    p = np.column_stack([1.0 / (1.0 + odds), odds / (1.0 + odds)])
    binned = bins_of(p[:, 1]).astype(np.float64)
    found = overall_scores(with_rows(no_ranking(), p, codes, RECENT)).average_precision[1]
    least, most = (
        average_precision_score(codes, binned + sign * 0.5 * codes) for sign in (-1.0, 1.0)
    )
    assert least - 1e-12 <= found <= most + 1e-12


def test_auc_of_binned_probabilities_is_exact():
    p, codes = drawn(4000, 3)
    binned = bins_of(p).astype(np.float64)
    scores = overall_scores(counted_in_parts(p, codes, 64))
    for k in range(3):
        assert scores.roc_auc[k] == pytest.approx(roc_auc_score(codes == k, binned[:, k]))


def test_the_parts_do_not_matter():
    p, codes = drawn(1500, 4)
    for one, other in zip(
        counted_in_parts(p, codes, 1500), counted_in_parts(p, codes, 7), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_a_class_had_the_probability_zero_before_it_came():
    p, codes = drawn(800, 3)
    codes[:300] = np.minimum(codes[:300], 1)
    p[:300, 2] = 0.0
    late = with_rows(
        with_rows(no_ranking(), p[:300, :2], codes[:300], RECENT), p[300:], codes[300:], 500
    )
    whole = with_rows(no_ranking(), p, codes, 500)
    np.testing.assert_array_equal(late.counts, whole.counts)
    np.testing.assert_array_equal(late.bins, whole.bins)


def test_a_label_that_nobody_knew_ranks_last():
    found = with_rows(no_ranking(), np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([2, 0]), RECENT)
    assert overall_scores(found).roc_auc.tolist()[2] == 0.5
    assert overall_scores(found).roc_auc.tolist()[0] == 1.0


def test_certain_probabilities_have_bins():
    p = np.array([0.0, 1e-300, 0.5 - 1e-9, 0.5, 1.0 - 1e-16, 1.0])
    assert bins_of(p).tolist() == [0, 0, BINS // 2 - 1, BINS // 2, BINS - 1, BINS - 1]


def test_without_rows_there_are_no_scores():
    assert overall_scores(no_ranking()).roc_auc.shape == (0,)


def test_a_merged_calibration_ranks_the_rows_of_all():
    places = np.array([0, 1, 2]), np.array([2, 0, 1])
    each, rows = [], []
    for seed, place in enumerate(places):
        p, codes = drawn(1024, 3, seed=seed)
        each.append(ClassCalibration(log_scores=True))
        each[-1].absorb(np.log(p), codes)
        moved = np.empty_like(p)
        moved[:, place] = p
        rows.append((moved, place[codes]))
    merged = ClassCalibration(log_scores=True)
    merge(merged, each, places, 3)
    p, codes = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    np.testing.assert_array_equal(
        merged.view().ranking.counts, with_rows(no_ranking(), p, codes, RECENT).counts
    )
    assert merged.view().ranking.bins.shape == (3, RECENT)
    assert np.isfinite(merged.view().recent_ranking_scores.roc_auc).all()
