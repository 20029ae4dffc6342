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


def test_a_spread_that_comes_and_goes_is_soon_no_change_of_units():
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
