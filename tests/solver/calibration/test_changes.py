"""Changes of a loss: found where it rises, never because of how it comes in, seldom for nothing."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolfstream.service.heads.class_scores import Hits
from wolfstream.service.heads.value_scores import Errors
from wolfstream.solver.calibration import changes
from wolfstream.solver.calibration.changes import ALPHA, Changes


def fed(losses: "np.ndarray", part: int = 1000, scaled: bool = False) -> Changes:
    looking = Changes(scaled)
    for start in range(0, len(losses), part):
        looking.add(losses[start : start + part].tolist())
        looking.date(min(start + part, len(losses)))
    return looking


def wrong(random: np.random.Generator, *parts: tuple[float, int]) -> "np.ndarray":
    """0 and 1 with these chances of 1, each for so many samples."""
    return np.concatenate([random.random(n) < p for p, n in parts]).astype(float)


@pytest.mark.parametrize(
    ("before", "after", "within"), [(0.05, 0.4, 320), (0.1, 0.2, 1300), (0.4, 0.6, 900)]
)
def test_a_rise_is_found_soon_after_it(before: float, after: float, within: int):
    losses = wrong(np.random.default_rng(0), (before, 5000), (after, 5000))
    (change,) = fed(losses, 64).latest
    assert 5000 < change.sequence <= 5000 + within
    assert change.before == pytest.approx(before, abs=0.03)
    assert change.after == pytest.approx(after, abs=0.15)
    assert abs(change.sequence - change.samples - 5000) < 256


@pytest.mark.parametrize("blocks", [1, 2, 50, 10**4, 10**9])
def test_the_threshold_is_the_one_of_its_equation(blocks: int):
    x = changes._threshold(blocks)
    allowed = 2.0 * ALPHA / (blocks**3 * (blocks + 1))
    assert (1.0 + x) * np.exp(-x) == pytest.approx(allowed, rel=1e-6)


def test_all_chances_together_are_alpha():
    k = np.arange(1, 20_000, dtype=float)
    pairs = k * (k - 1) / 2
    x = np.array([changes._threshold(int(blocks)) for blocks in k])
    assert ALPHA / 3 < (pairs * (1 + x) * np.exp(-x)).sum() < ALPHA


def test_learning_is_no_change():
    falling = np.linspace(0.6, 0.05, 20_000)
    losses = (np.random.default_rng(1).random(20_000) < falling).astype(float)
    assert fed(losses).total == 0


def test_a_rise_after_a_long_time_of_learning_is_found():
    losses = wrong(np.random.default_rng(2), (0.5, 2000), (0.05, 3000), (0.2, 1500))
    (change,) = fed(losses, 64).latest
    assert change.before < 0.1


@pytest.mark.parametrize("chance", [0.02, 0.2, 0.5])
def test_a_constant_chance_is_seldom_said_to_change(chance: float):
    streams = 60
    random = np.random.default_rng(3)
    alarms = sum(fed(wrong(random, (chance, 6000))).total > 0 for _ in range(streams))
    # More than this many of 60 streams come with a chance of 1 in 300 if each has a chance of 1%.
    assert alarms <= 3 * ALPHA * streams + 1


@pytest.mark.parametrize("times", [1.0, 1e6])
def test_errors_of_numbers_are_judged_whatever_their_unit(times: float):
    random = np.random.default_rng(4)
    errors = np.abs(random.standard_cauchy(8000)) * np.repeat([1.0, 3.0], 4000) * times
    changes = fed(errors, 64, scaled=True).latest
    assert len(changes) == 1
    assert 4000 < changes[0].sequence < 4800
    assert fed(errors[:4000], scaled=True).total == 0


def test_errors_of_zero_do_no_harm():
    errors = np.repeat([0.0, 1.0], [1000, 1000])
    assert fed(errors, scaled=True).total == 1


@given(st.lists(st.integers(1, 700), min_size=1, max_size=12), st.booleans())
def test_what_is_found_does_not_depend_on_the_parts(parts: list[int], scaled: bool):
    losses = wrong(np.random.default_rng(5), (0.05, 1200), (0.5, 1000))
    whole, in_parts, start = Changes(scaled), Changes(scaled), 0
    whole.add(losses.tolist())
    for part in [*parts, len(losses)]:
        in_parts.add(losses[start : start + part].tolist())
        start += part
    assert in_parts.state() == whole.state()


def test_a_state_goes_on_as_if_nothing_had_been():
    losses = wrong(np.random.default_rng(6), (0.05, 3000), (0.5, 1000), (0.9, 1000))
    first = fed(losses[:3500])
    again = Changes()
    again.restore(json.loads(json.dumps(first.state())))
    copied = first.copy()
    for looking in (first, again):
        looking.add(losses[3500:].tolist())
        looking.date(5000)
    assert first.state() == again.state()
    assert first.latest[-1].sequence == 5000
    assert copied.state() != first.state()


def test_scores_look_for_changes_of_their_losses():
    random = np.random.default_rng(7)
    hits, errors = Hits(), Errors()
    codes = random.integers(0, 3, 4000)
    missed = random.random(4000) < np.repeat([0.05, 0.6], 2000)
    hits.count(codes, np.where(missed, (codes + 1) % 3, codes))
    y = random.standard_normal(4000)
    errors.count(y, y + random.standard_normal(4000) * np.repeat([0.1, 1.0], 2000))
    for score in (hits, errors):
        score.changes.date(4000)
        (change,) = score.changes.latest
        assert change.before < change.after
        again = type(score)()
        again.restore(json.loads(json.dumps(score.state())))
        assert again.changes.latest == score.changes.latest


@given(st.lists(st.tuples(st.integers(1, 40), st.floats(0.0, 1.0)), min_size=2, max_size=60))
def test_the_bound_is_at_least_the_evidence(buckets: list[tuple[int, float]]):
    sizes, means = (np.array(column, float) for column in zip(*buckets, strict=True))
    n, s = np.cumsum(64 * sizes), np.cumsum(64 * sizes * means)
    older, mean = n[:-1], s[-1] / n[-1]
    newer = n[-1] - older
    evidence = older * changes._divergence(s[:-1] / older, mean)
    evidence += newer * changes._divergence((s[-1] - s[:-1]) / newer, mean)
    assert changes._most_evidence(n, s) >= evidence.max() - 1e-6


@pytest.mark.parametrize("blocks", [1, 2, 50, 10**4, 10**9])
def test_no_threshold_is_below_the_least(blocks: int):
    assert changes._threshold(blocks) > changes._least_threshold(blocks)


def test_a_copy_keeps_its_losses():
    looking = fed(wrong(np.random.default_rng(3), (0.2, 700)), 64)
    copy, state = looking.copy(), looking.state()
    looking.add(wrong(np.random.default_rng(4), (0.9, 900)).tolist())
    assert copy.state() == state
