"""The share of labels that are drawn at random, found beside a border that is known."""

from typing import NamedTuple

import numpy as np
import pytest

from wolfstream.solver.adaptive.combination import (
    Combination,
    Combiner,
    combined,
    new_combination,
)
from wolfstream.solver.adaptive.label_noise import COUNTED, frequencies, merged_counts

KEPT = 0.99


class Learned(NamedTuple):
    """noise: after each hundred labels of the second half. losses: (n, 1)."""

    combination: Combination
    scores: np.ndarray
    probability: np.ndarray
    losses: np.ndarray
    noise: tuple[float, ...]


def learned(share: float, n: int = 6000, classes: int = 2, *, noisy: bool = True):
    """A combination of one expert that knows the border, of labels of which a share is drawn."""
    random = np.random.default_rng(3)
    scores = random.normal(size=(n, classes))
    truth = scores.argmax(axis=1)
    y = np.where(random.random(n) < share, random.integers(0, classes, n), truth)
    prior, c = np.ones(1), new_combination(np.ones(1), (), noisy=noisy)
    given = np.concatenate([scores, np.zeros((n, 1))], axis=1)[:, None]
    awake, known = np.ones((n, 1), np.bool_), np.full(n, classes)
    combine, weight, parts = Combiner(prior).combine, np.ones(n), list[tuple[float, ...]]()
    for part in (slice(start, start + 100) for start in range(0, n, 100)):
        rows = given[part], awake[part], y[part], known[part], weight[part]
        parts.append((*combine(c, *rows), c.noise[0]))
    probability, losses, noise = zip(*parts, strict=True)
    return Learned(
        c, scores, np.concatenate(probability), np.concatenate(losses), noise[n // 200 :]
    )


@pytest.mark.parametrize(("share", "classes"), [(0.1, 2), (0.3, 2), (0.2, 5)])
def test_label_noise_improves_on_temperature(share, classes):
    found, without = (learned(share, classes=classes, noisy=noisy) for noisy in (True, False))
    # Wrong labels near the border may be taken for right ones, but not the other way around.
    assert 0.25 * share < np.mean(found.noise) < share
    right = 1.0 - share + share / classes
    least = -right * np.log(right) - (1.0 - right) * np.log((1.0 - right) / (classes - 1))
    loss, loss_without = (one.losses[3000:].mean() for one in (found, without))
    assert loss - least < 0.75 * (loss_without - least)


def test_is_next_to_none_where_no_label_was_drawn():
    found = learned(0.0)
    assert np.mean(found.noise) < 0.01
    rows = found.scores[-100:, None].copy()
    probability = combined(found.combination, rows, np.ones((100, 1), np.bool_), 2)
    assert np.median(probability.max(axis=1)) > 0.99


def test_stays_none_where_labels_are_never_drawn():
    assert set(learned(0.3, noisy=False).noise) == {0.0}


def test_a_label_counts_by_its_weight():
    rows, y = np.array([[[1.0, -1.0, 0.0]]]), np.array([1])
    c = new_combination(np.ones(1), ())
    arguments = np.ones((1, 1), np.bool_), y, np.array([2]), np.array([3.0])
    Combiner(np.ones(1)).combine(c, rows, *arguments)
    q = 0.98 / (1.0 + np.exp(2.0)) + 0.01
    labels = KEPT * 20.0 + 0.2 + 3.0
    assert c.labels[0] == pytest.approx(labels)
    assert c.noise[0] == pytest.approx((KEPT * 0.4 + 0.004 + 3.0 * 0.01 / q) / labels)
    curvature = 0.999 * 10.0 + 3.0 * (1.0 - 0.01 / q) / np.cosh(1.0) ** 2
    assert c.curvature[0] == pytest.approx(curvature)


def test_labels_of_a_rare_class_are_not_taken_for_drawn():
    """An expert that says 0.3 where one label in 30 of the rare class comes is learned from."""
    n, random = 4000, np.random.default_rng(5)
    likely = random.random(n) < 0.1
    y = (likely & (random.random(n) < 0.3)).astype(np.int64)
    scores = np.zeros((n, 1, 3))
    scores[:, 0, 1] = np.where(likely, -0.4, -2.5)
    c = new_combination(np.ones(1), ())
    arguments = scores, np.ones((n, 1), np.bool_), y, np.full(n, 2), np.ones(n)
    Combiner(np.ones(1)).combine(c, *arguments)
    assert y.mean() < 0.04
    f = frequencies(c.counts, 2)
    assert f[1] == pytest.approx(y[-1000:].mean(), abs=0.02)
    p = 1.0 / (1.0 + np.exp(0.4))
    q = p + c.noise[0] * (f[1] - p)
    assert c.noise[0] * f[1] / q < 0.02


@pytest.mark.parametrize("classes", [1, 2, COUNTED - 1, COUNTED, COUNTED + 1, 100])
def test_frequencies_are_counts_with_one_more_label_of_each_class(classes):
    c, random = new_combination(np.ones(1), ()), np.random.default_rng(classes)
    y = random.integers(0, classes, 50)
    combine = Combiner(np.ones(1)).combine
    scores, awake = np.zeros((50, 1, classes + 1)), np.ones((50, 1), np.bool_)
    combine(c, scores, awake, y, np.full(50, classes), np.ones(50))
    counts = np.zeros(classes)
    for label in y:
        counts *= 0.999
        counts[label] += 1.0
    counts[COUNTED - 1 :] = counts[COUNTED - 1 :].sum() / max(classes - COUNTED + 1, 1)
    expected = (counts + 1.0) / (counts.sum() + classes)
    np.testing.assert_allclose(frequencies(c.counts, classes), expected)


def test_counts_of_models_are_merged_by_the_codes_of_their_classes():
    one, other = np.zeros(COUNTED), np.zeros(COUNTED)
    one[:2], other[:3] = (8.0, 4.0), (6.0, 2.0, 4.0)
    codes = [np.array([1, 0]), np.array([0, 2, 1])]
    merged = merged_counts([one, other], codes, np.array([0.25, 0.75]))
    assert merged[:4].tolist() == [0.25 * 4.0 + 0.75 * 6.0, 0.25 * 8.0 + 0.75 * 4.0, 1.5, 0.0]
