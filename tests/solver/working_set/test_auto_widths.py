"""A working set whose kernel's widths follow the stream."""

from typing import Any

import numpy as np
import pytest

from wolfstream.solver.kernels.forecast import forecast_error
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set import auto_widths, width_search
from wolfstream.solver.working_set.auto_widths import AutoWidths, Widths, predicted_now
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.width_search import NEVER


def build(gamma: float) -> WorkingSet:
    return WorkingSet(Kernel("rbf", gamma), max_size=1000)


def circles(n: int, seed: int = 0) -> Any:
    """Rings of alternating classes, which a kernel much wider than a ring cannot tell apart."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1.0, 1.0, (n, 2))
    codes = (np.floor(4.0 * np.hypot(*X.T)) % 2).astype(np.int64)
    codes[:2] = 0, 1
    return X, codes


def turning(n: int, seed: int = 0) -> Any:
    """A line through the origin that turns once around in 8,000 samples."""
    X = np.random.default_rng(seed).standard_normal((n, 2))
    angle = 2.0 * np.pi * np.arange(n) / 8000
    codes = (X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle) > 0.0).astype(np.int64)
    codes[:2] = 0, 1
    return X, codes


def learned(learner: Any, X: Any, codes: Any, size: int = 64) -> Any:
    """Predictions before each sample was learned."""
    answers = []
    for start in range(0, len(codes), size):
        answers += learner.absorb(X[start : start + size], codes[start : start + size])
    return np.concatenate([answer.prediction for answer in answers])


def test_the_kernel_fades_with_the_time_between_two_samples():
    widths = Widths(0.7, 300.0, 40)
    X, time = np.random.default_rng(0).standard_normal((5, 3)), np.array([0, 10, 100, 700, 5000])
    rows = widths.timed(X, time)
    exponent = 0.7 * np.square(rows[:, None] - rows).sum(axis=2)
    apart = np.square(X[:, None] - X).sum(axis=2)
    elapsed = np.square((time[:, None] - time) / 300.0)
    assert exponent == pytest.approx(0.7 * apart + elapsed)


@pytest.mark.parametrize("horizon", [256.0, NEVER])
@pytest.mark.parametrize("gamma", [1e-6, 1.0, 1e6])
def test_a_row_tells_when_it_came(horizon: float, gamma: float):
    widths = Widths(gamma, horizon, 10**9)
    time = 10**9 + np.array([-4096, -1, 0, 1, 10_000_000])
    assert (widths.times(widths.timed(np.zeros((5, 1)), time)) == time).all()


def test_a_wide_kernel_becomes_as_narrow_as_the_classes_are():
    X, codes = circles(1500)
    learner = AutoWidths(build)
    right = learned(learner, X, codes) == codes
    estimate = AutoWidths(build, gamma=1.0 / (2.0 * X.var(axis=0).sum()))
    assert learner.widths.gamma > 2.0 * estimate.widths.gamma
    assert right[-500:].mean() > (learned(estimate, X, codes) == codes)[-500:].mean() + 0.05


def test_members_fade_where_the_stream_drifts():
    X, codes = turning(9000)
    learner = AutoWidths(build)
    right = learned(learner, X, codes) == codes
    never = learned(AutoWidths(build, horizon=NEVER), X, codes) == codes
    assert learner.widths.horizon < NEVER
    assert right[-4000:].mean() > never[-4000:].mean() + 0.05
    assert right[-4000:].mean() > 0.9


def test_members_of_a_stream_that_stays_the_same_do_not():
    X, codes = circles(5000)
    learner = AutoWidths(build)
    learned(learner, X, codes)
    assert learner.widths.horizon == NEVER


def test_numbers_that_are_given_stay():
    X, codes = turning(5000)
    learner = AutoWidths(build, gamma=0.25, horizon=777.0)
    learned(learner, X, codes)
    assert learner.widths[:2] == (0.25, 777.0)
    # The coordinate is centred anew.
    assert learner.widths.centre > 0


@pytest.mark.parametrize("make", [circles, turning])
def test_the_division_into_calls_does_not_matter(make: Any):
    X, codes = make(4400)
    whole, parts = AutoWidths(build), AutoWidths(build)
    assert (learned(whole, X, codes, 4400) == learned(parts, X, codes, 61)).mean() > 0.999
    assert whole.widths == parts.widths


@pytest.mark.parametrize("n", [1, 70, 1500, 4400])
def test_a_state_goes_on_bit_for_bit(n: int):
    X, codes = turning(n + 300)
    live, again = AutoWidths(build), AutoWidths(build)
    learned(live, X[:n], codes[:n])
    state = live.state()
    for learner in (live, again):  # as at a checkpoint
        learner.restore(state)
        learned(learner, X[n:], codes[n:])
    one, other = live.state(), again.state()
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)
    said = [predicted_now(learner.view(), X[:50])[1] for learner in (live, again)]
    assert np.array_equal(*said)


@pytest.mark.parametrize(("begins", "due"), [(1024, 1536), (2048, 3072), (4096, 5120)])
def test_what_a_search_finds_takes_effect_at_a_fixed_sample(
    monkeypatch: pytest.MonkeyPatch, begins: int, due: int
):
    X, codes = turning(due)
    learner = AutoWidths(build)
    learned(learner, X[: begins - 1], codes[: begins - 1])
    before = learner.widths[:2]
    monkeypatch.setattr(auto_widths, "best_widths", lambda _: (3.0 * before[0], 300.0))
    learned(learner, X[begins - 1 : due - 1], codes[begins - 1 : due - 1])
    assert learner.widths[:2] == before
    learned(learner, X[due - 1 :], codes[due - 1 :])
    assert learner.widths == (3.0 * before[0], 300.0, due)


def test_searches_take_no_more_work_than_is_said(monkeypatch: pytest.MonkeyPatch):
    X, codes = turning(5200)
    work: list[int] = []

    def counted(rows: Any, *rest: Any) -> float:
        n, columns = rows.shape
        work.append(n**3 // 3 + n**2 * columns // 2)
        return forecast_error(rows, *rest)

    monkeypatch.setattr(width_search, "forecast_error", counted)
    learner = AutoWidths(build)
    learned(learner, X[:4000], codes[:4000])
    work.clear()
    learned(learner, X[4000:], codes[4000:])
    assert 0 < sum(work) <= 4096 * learner.search_work_per_sample
    assert AutoWidths(build, 1.0, 2.0).search_work_per_sample == 0


def test_a_search_ends_where_classes_move():
    X, codes = turning(1200)
    learner = AutoWidths(build)
    learned(learner, X, codes)
    assert "search_due" in learner.state()
    learner.relabel(np.array([1, 0]), 1200)
    assert "search_due" not in learner.state()


def test_what_was_published_does_not_change():
    X, codes = turning(6000)
    learner = AutoWidths(build)
    learned(learner, X[:4090], codes[:4090])
    view = learner.view()
    before = predicted_now(view, X[:20])[1].copy()
    learned(learner, X[4090:], codes[4090:])
    assert np.array_equal(predicted_now(view, X[:20])[1], before)


def test_one_class_for_long_and_rows_that_are_all_equal():
    learner = AutoWidths(build)
    assert learned(learner, np.ones((600, 2)), np.zeros(600, np.int64)).shape == (600,)
    learned(learner, np.ones((600, 2)), np.arange(600) % 2)
    assert np.isfinite(learner.widths).all()


@pytest.mark.parametrize("C", [1e-9, 1e9, 1e15])
def test_equal_rows_of_any_ridge_can_be_forecast(C: float):
    """With the largest C and the largest weight of a class, the ridge is below rounding."""
    learner = AutoWidths(lambda gamma: WorkingSet(Kernel("rbf", gamma), C, max_size=200))
    learned(learner, np.ones((300, 2)), np.arange(300) % 2)
    assert np.isfinite(learner.widths).all()
