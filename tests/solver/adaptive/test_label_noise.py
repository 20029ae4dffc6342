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
def test_is_found_and_explains_a_part_of_what_a_temperature_does_not(share, classes):
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
