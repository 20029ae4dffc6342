"""Fits: what a window gives, what it cannot give, and what the log keeps of it."""

from typing import Any

import numpy as np
import pytest

from tests.service.specs import read_papers_spec
from wolfstream.service.errors import RefitFailed, RefitStopped
from wolfstream.service.heads import decomposition
from wolfstream.service.heads.decomposition import fit_window
from wolfstream.service.heads.fit import Fit, Progress, Window, fit_from_record, fit_to_record
from wolfstream.service.heads.semiparametric import SemiparametricHead


def window(n: int, kernel: Any = None, **own: Any) -> Window:
    spec = {"task": "regression", "asset": None, "kernel": kernel or {}, "semiparametric": own}
    X = np.random.default_rng(n).standard_normal((n, 2))
    return Window("semiparametric", n, X, np.sin(2.0 * X[:, 0]) + X[:, 1], read_papers_spec(spec))


def test_progress_is_told_down_to_the_tolerance() -> None:
    told: list[Progress] = []
    fit = fit_window(window(700, tol=1e-4), "7", told.append)
    assert len(told) > 1
    assert {now.tol for now in told} == {1e-4}
    assert told[0].kkt_violation > 1e-4 >= told[-1].kkt_violation == fit.plain["kkt_violation"]
    assert (fit.plain["job"], fit.plain["samples"]) == ("7", 700)


def test_what_observes_may_end_it() -> None:
    def observe(_: Progress) -> None:
        raise RefitStopped("stopping")

    with pytest.raises(RefitStopped):
        fit_window(window(50), "", observe)


def failure(of: Window) -> str:
    with pytest.raises(RefitFailed) as caught:
        fit_window(of, "", lambda _: None)
    return caught.value.detail


def test_a_tolerance_that_is_not_reached_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decomposition, "MOST_STEPS", 3)
    detail = failure(window(400, C=1e6, tol=1e-9))
    assert "steps the KKT violation is" in detail
    assert "above the spec's tol of 1e-09" in detail


@pytest.mark.parametrize("n", [1, 2, 3])
def test_there_are_to_be_more_samples_than_basis_functions(n: int) -> None:
    basis = [{"type": "constant"}, {"type": "trend"}, {"type": "trend", "feature": 1}]
    assert "3 basis functions need more than 3 rows" in failure(window(n, basis=basis))


def test_an_empty_window() -> None:
    empty = window(2)._replace(X=np.empty((0, 0)), y=np.empty(0))
    assert "post samples" in failure(empty)


def test_two_equal_basis_functions() -> None:
    sine = {"type": "sin", "period": 3.0}
    assert "basis 1" in failure(window(50, basis=[sine, sine]))


@pytest.mark.parametrize("kernel", [{"type": "rbf"}, {"type": "polynomial"}, {"type": "linear"}])
@pytest.mark.parametrize("scale", [1e-100, 1e-3, 1e3, 1e30, 1e100, 1e300])
def test_targets_of_any_size_give_finite_numbers_or_a_reason(kernel: Any, scale: float) -> None:
    given = window(40, kernel, tol=1e9, epsilon=0.0)
    given = given._replace(y=scale * given.y)
    told: list[Progress] = []
    try:
        fit = fit_window(given, "", told.append)
    except RefitFailed as error:
        assert "too large" in error.detail or "above the spec's tol" in error.detail  # noqa: PT017
    else:
        assert np.isfinite(fit.plain["kkt_violation"])
        assert all(np.isfinite(array).all() for array in fit.arrays.values())
    assert all(np.isfinite(now.kkt_violation) for now in told)


def test_a_fit_is_in_its_record_bit_for_bit() -> None:
    random = np.random.default_rng(0)
    arrays = {"X": random.standard_normal((7, 3)), "count": np.arange(4), "none": np.empty((0, 3))}
    fit = Fit({"job": "1", "beta": [0.1, -1e-300]}, {"kernel": {"type": "rbf"}}, arrays)
    again = fit_from_record(fit_to_record(fit))
    assert (again.plain, again.model) == (fit.plain, fit.model)
    assert again.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)
        assert again.arrays[name].dtype == array.dtype
        assert again.arrays[name].flags.writeable


@pytest.mark.parametrize("kernel", [{"type": "rbf"}, {"type": "polynomial"}, {"type": "linear"}])
@pytest.mark.parametrize("fitted", [False, True])
def test_a_restored_head_goes_on_bit_for_bit(kernel: Any, fitted: bool) -> None:
    given = window(300, kernel, window=200, tol=0.1)
    head, restored = SemiparametricHead(given.spec), SemiparametricHead(given.spec)
    head.absorb(given.X[:250], given.y[:250])
    if fitted:
        head.adopt(fit_window(given, "1", lambda _: None))
    head.absorb(given.X[250:], given.y[250:])
    restored.restore(*head.state())
    for _ in range(2):
        assert restored.absorb(given.X, given.y) == head.absorb(given.X, given.y)
        for mine, its in zip(restored.window(), head.window(), strict=True):
            np.testing.assert_array_equal(mine, its)
        told, expected = restored.view().stats, head.view().stats
        assert told | {"bytes": 0} == expected | {"bytes": 0}
    if fitted:
        assert restored.view().predict(given.X) == head.view().predict(given.X)


def test_what_no_y_could_be_is_not_judged() -> None:
    """A polynomial of a huge row overflows; the score stays a number."""
    given = window(100, {"type": "polynomial", "degree": 8, "gamma": 1.0}, tol=1e9)
    head = SemiparametricHead(given.spec)
    head.adopt(fit_window(given._replace(X=1e-3 * given.X), "", lambda _: None))
    rows = np.array([[1e20, 1e20], [1e-3, 1e-3]])
    said = head.absorb(rows, np.zeros(2)).prediction
    assert head.view().stats["prequential"]["samples"] == sum(value is not None for value in said)
    assert np.isfinite(head.view().stats["prequential"]["rmse"])


def test_a_prediction_that_takes_long_is_known_to() -> None:
    """Twenty million multiplications are what the event loop may spend on one."""
    given = window(2000, {"gamma": 100.0}, epsilon=0.0, tol=1.0)
    head = SemiparametricHead(given.spec)
    assert head.view().cost(1000, 2000) == 0
    head.adopt(fit_window(given, "", lambda _: None))
    assert head.view().cost(1, 2) < 20_000_000 < head.view().cost(1000, 2000)
