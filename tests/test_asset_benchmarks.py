"""The benchmarks of ASSET learn, and their features are those that they name."""

from typing import Literal

import numpy as np
import pytest

from benchmarks.asset_contenders import ours
from benchmarks.asset_dimensions import nystrom_error, progress
from benchmarks.asset_problems import P5Problem, P5Result, Split

PROBLEM = P5Problem("", "", 900, 0.5, 1e-4, 2, 0.3, P5Result({}, {}, 0.0))


@pytest.fixture(scope="module")
def split() -> Split:
    random = np.random.default_rng(0)
    X = random.normal(size=(1200, 2))
    y = ((X**2).sum(axis=1) > 1.4).astype(np.int64)
    return Split(X[:900], y[:900], X[900:], y[900:])


@pytest.mark.parametrize("features", ["fourier", "nystrom"])
def test_contender_learns(split: Split, features: Literal["fourier", "nystrom"]) -> None:
    *_, last = ours(features, "asset")(split, PROBLEM, 64)
    assert last.curve.error[-1] < 15.0
    assert last.dimension <= 64


def test_more_nystrom_features_err_less(split: Split) -> None:
    assert nystrom_error(split, PROBLEM, 64) < 10.0 < nystrom_error(split, PROBLEM, 2)


def test_progress_has_both_algorithms(split: Split) -> None:
    line = progress(split, 1024)
    assert [len(seconds) for seconds in line["seconds"]] == [10, 10]
    assert all(seconds == sorted(seconds) for seconds in line["seconds"])
    assert line["error"][0][-1] < 30.0
