"""Whether a challenger is better: the interval holds however often one looks at it."""

import math

import numpy as np
import pytest
from scipy.special import zeta

from wolfstream.service.model.comparison import Comparison, RecentLosses, boundary, restored_losses

ERROR = 0.025


def compared(champion: np.ndarray, challenger: np.ndarray, step: int = 1) -> list[Comparison]:
    """The comparison after each part of the losses."""
    one, found = Comparison(), []
    for start in range(0, len(champion), step):
        rows = slice(start, start + step)
        one = one.after("e", champion[rows], challenger[rows])
        found.append(one)
    return found


def psi(scale: float, rate: np.ndarray) -> np.ndarray:
    return (-np.log1p(-scale * rate) - scale * rate) / scale**2


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_the_boundary_is_above_a_line_in_each_epoch(scale: float) -> None:
    """What its proof asks for: of one l the line that is crossed with the epoch's error."""
    rate = np.geomspace(1e-4, 0.999, 4000) / scale
    for k in range(0, 24):
        v = np.linspace(2.0**k, 2.0 ** (k + 1), 50)
        share = ERROR / (float(zeta(1.4)) * (k + 1) ** 1.4)
        lines = (math.log(1.0 / share) + psi(scale, rate)[:, None] * v) / rate[:, None]
        above = np.array([boundary(one, ERROR, scale) for one in v])
        assert (lines <= above + 1e-9).all(axis=1).any()


def test_each_step_multiplies_by_one_at_most_on_average() -> None:
    """The supermartingale, for any two values of d, any chance of each, and any centre."""
    values, chances = np.linspace(-1.0, 1.0, 21), np.array([0.05, 0.5, 0.9])
    low, high, chance, centre = np.meshgrid(values, values, chances, values[::4])
    mean = chance * high + (1 - chance) * low
    for rate in (0.05, 0.2, 0.45):
        cost = float(psi(2.0, np.array(rate)))
        at_low, at_high = (
            np.exp(rate * (d - mean) - cost * (d - centre) ** 2) for d in (low, high)
        )
        assert (chance * at_high + (1 - chance) * at_low <= 1 + 1e-12).all()


def test_it_is_what_the_formulas_say() -> None:
    """Sample by sample, without any of the sums that are kept."""
    rng = np.random.default_rng(0)
    champion, challenger = rng.random(200), rng.random(200)
    d = (champion - challenger) / (champion + challenger)
    centre = [0.0, *(float(np.mean(d[:i])) for i in range(1, 200))]
    for step in (1, 7, 200):
        found = compared(champion, challenger, step)[-1]
        assert found.difference == pytest.approx(np.mean(d))
        assert found.variance == pytest.approx(float(np.sum((d - np.array(centre)) ** 2)))
        assert found.mean_losses == pytest.approx((champion.mean(), challenger.mean()))


@pytest.mark.parametrize("drifts", [False, True])
def test_the_truth_is_inside_at_all_times(drifts: bool) -> None:
    """In all but a few of the streams, looked at after each sample: 5% may be left outside."""
    rng, streams, n = np.random.default_rng(1), 60, 400
    left = 0
    for _ in range(streams):
        ours = np.where(np.arange(n) < n // 2, 0.5, 0.2) if drifts else np.full(n, 0.3)
        theirs = np.full(n, 0.3)
        champion = (rng.random(n) < ours).astype(float)
        challenger = (rng.random(n) < theirs).astype(float)
        truth = np.cumsum(ours - theirs) / np.arange(1, n + 1)
        for place, one in enumerate(compared(champion, challenger)):
            assert one.interval is not None
            if not one.interval.low <= truth[place] <= one.interval.high:
                left += 1
                break
    assert left <= 0.05 * streams


def test_it_tells_a_better_one() -> None:
    rng = np.random.default_rng(2)
    champion, challenger = rng.random(4000) < 0.3, rng.random(4000) < 0.2
    found = compared(champion.astype(float), challenger.astype(float), 100)
    assert found[0].interval is not None
    assert found[0].interval.low < 0.0
    assert found[-1].interval is not None
    assert found[-1].interval.low > 0.0


def test_new_champion_restarts_the_comparison() -> None:
    losses = np.array([1.0, np.nan, 0.0])
    one = Comparison().after("e", losses, np.zeros(3)).after(None, losses, np.zeros(3))
    assert (one.samples, one.champion) == (2, 1.0)
    assert one.after("f", np.ones(5), np.ones(5)).samples == 5
    assert Comparison().interval is None


class TestLosses:
    def test_recent_ones_by_sequence(self) -> None:
        recent = RecentLosses(10, "e")
        recent.add(10, np.array([1.0, 0.0]))
        recent.begin_epoch(12, "f")
        recent.add(12, np.array([1.0]))
        again = restored_losses(*recent.state())
        for kept in (recent, again):
            assert kept is not None
            assert kept.between(10, 12).losses.tolist() == [1.0, 0.0]
            assert (kept.between(10, 12).epoch, kept.between(12, 13).epoch) == ("e", "f")
            assert kept.between(9, 12).epoch is None
            kept.forget(12)
            assert kept.between(10, 12).epoch is None
            assert kept.between(12, 13).epoch == "f"
        recent.add(20, np.array([0.5]))
        assert recent.between(12, 13).epoch is None
        assert recent.between(20, 21).losses.tolist() == [0.5]
