"""Units that change: found where they do, and nowhere else."""

import numpy as np
import pytest

from tests.solver.streams import blocks
from wolfstream.solver.prepare.columns import Preparation, layout_of
from wolfstream.solver.prepare.scale import COMPRESSED, no_moments, standardise
from wolfstream.solver.prepare.units import no_differences


def followed(X, length=64):
    moments, differences = no_moments(X.shape[1]), no_differences(X.shape[1])
    parts = blocks(len(X), length)
    return np.concatenate(
        [standardise(moments, X[part], COMPRESSED, differences) for part in parts]
    )


def kept(X):
    return standardise(no_moments(X.shape[1]), X, COMPRESSED)


def beginnings(X):
    """How often the moments of each column began again."""
    moments, differences = no_moments(X.shape[1]), no_differences(X.shape[1])
    count, before = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for part in blocks(len(X), 8):
        standardise(moments, X[part], COMPRESSED, differences)
        count += moments.weight < before
        before = moments.weight.copy()
    return count


def restless(random, n):
    """A column whose spread is another one for each few hundred samples."""
    lengths = random.integers(200, 800, n)
    return np.repeat(np.exp(random.normal(size=n)), lengths)[:n] * random.normal(size=n)


@pytest.mark.parametrize("factor", [0.1, 0.3, 3.0, 10.0])
@pytest.mark.parametrize("mean", [0.0, 20.0])
def test_units_that_jump_are_met_within_three_hundred_samples(factor, mean):
    X = np.random.default_rng(5).normal(mean, 1.0, (4000, 8))
    X[2000:] *= factor
    soon = followed(X)[2300:2800]
    assert 0.75 < soon.std() < 1.25
    assert abs(soon.mean()) < 0.25


def test_units_may_jump_again():
    X = np.random.default_rng(6).normal(3.0, 1.0, (6000, 4))
    for start in (2000, 3000, 4000, 5000):
        X[start:] *= 0.2
    late = followed(X)[5500:]
    assert 0.75 < late.std() < 1.25


STEADY = {
    "normal": lambda random, n: random.normal(size=n),
    "cauchy": lambda random, n: random.standard_cauchy(n),
    "lognormal": lambda random, n: np.exp(2.0 * random.normal(size=n)),
    "counts": lambda random, n: random.poisson(0.3, n).astype(np.float64),
    "switch": lambda random, n: (random.random(n) < 0.02).astype(np.float64),
    "amounts": lambda random, n: np.exp(random.normal(size=n)) * (random.random(n) < 0.1),
    "walk": lambda random, n: np.cumsum(random.normal(size=n)),
    "trend": lambda random, n: np.linspace(0.0, 50.0, n) + random.normal(size=n),
    "day": lambda random, n: np.sin(np.arange(n) / 50.0) + 0.1 * random.normal(size=n),
    "outliers": lambda random, n: np.where(random.random(n) < 0.02, 1e6, random.normal(size=n)),
    "constant": lambda _, n: np.full(n, 3.0),
}


@pytest.mark.parametrize("column", STEADY.values(), ids=STEADY)
def test_where_units_stay_nothing_changes(column):
    random = np.random.default_rng(7)
    X = np.stack([column(random, 20_000) for _ in range(4)], axis=1)
    np.testing.assert_array_equal(followed(X), kept(X))


def alternating(random, n, length=300):
    """A spread that is one or three times as large, for some hundred samples each."""
    return np.repeat(random.choice([1.0, 3.0], n // length + 1), length)[:n] * random.normal(size=n)


def by_class(random, n):
    """Rows come class by class, and each class has a level and a spread."""
    lengths, classes = random.integers(50, 300, n), random.integers(0, 5, n)
    level, spread = random.normal(0.0, 3.0, 5), np.exp(random.normal(size=5))
    code = np.repeat(classes, lengths)[:n]
    return random.normal(level[code], spread[code])


def by_field(random, n, length=400):
    """One eighth of an interval at a time, and each fifth time all of it."""
    start = np.arange(n) // length
    field = random.integers(0, 8, n // length + 1)[start]
    whole = start % 5 == 4
    return np.where(whole, random.uniform(0.0, 8.0, n), field + random.uniform(size=n))


PHASES = {
    "alternating": alternating,
    "by class": by_class,
    "by field": by_field,
    "night": lambda random, n: (
        np.where(np.sin(2.0 * np.pi * np.arange(n) / 288) > 0.0, 1.0, 0.1) * random.normal(size=n)
    ),
}


@pytest.mark.parametrize("column", PHASES.values(), ids=PHASES)
def test_columns_in_phases_begin_again_less_than_once_each(column):
    random = np.random.default_rng(12)
    X = np.stack([column(random, 8000) for _ in range(8)], axis=1)
    assert beginnings(X).mean() < 1.0


def test_a_phase_with_its_own_mean_is_no_change_of_units():
    X = np.random.default_rng(13).normal(20.0, 1.0, (6000, 4))
    X[3000:] += 2.0 * (X[3000:] - 20.0)
    np.testing.assert_array_equal(followed(X), kept(X))


@pytest.mark.parametrize("factor", [0.001, 0.5, 2.0, 1000.0])
@pytest.mark.parametrize("mean", [0.0, 8.0, 100.0])
def test_units_of_a_calm_column_are_met(factor, mean):
    X = np.random.default_rng(14).normal(mean, 1.0, (4000, 8))
    X[3000:] *= factor
    soon = followed(X)[3400:]
    assert 0.6 < soon.std() < 1.4
    assert abs(soon.mean()) < 0.5


def test_passing_spread_changes_no_units():
    random = np.random.default_rng(8)
    x = restless(random, 40_000)[:, None]
    moments, differences = no_moments(1), no_differences(1)
    standardise(moments, x[:20_000], COMPRESSED, differences)
    before = moments.weight.copy()
    standardise(moments, x[20_000:], COMPRESSED, differences)
    assert moments.weight[0] >= before[0]


@pytest.mark.parametrize("length", [1, 7])
def test_blocks_of_any_length_give_the_same_bits(length):
    random = np.random.default_rng(9)
    X = random.normal(size=(3000, 3))
    X[1500:] *= 5.0
    X[random.random(X.shape) < 0.1] = np.nan
    np.testing.assert_array_equal(followed(X, length), followed(X, len(X)))


def test_a_preparation_goes_on_bit_for_bit_amid_a_change():
    X = np.random.default_rng(10).normal(size=(1500, 2))
    X[1000:] *= 0.2
    layout = layout_of(["number", "number"])
    one, other = Preparation(layout), Preparation(layout)
    one.absorb(X[:1020])
    other.restore(one.state())
    np.testing.assert_array_equal(one.absorb(X[1020:]), other.absorb(X[1020:]))
