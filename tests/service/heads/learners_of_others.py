"""Learners as another distribution brings them, and what says that it is installed."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream import CustomLearner
from wolfstream.solver.arrays import Float64Array

MODULE = __name__


class NearestMean(CustomLearner):
    """Classes: the softmax of minus the squared distance to each class's mean."""

    def __init__(self, options: Mapping[str, Any], *, regression: bool, seed: int) -> None:
        super().__init__(options, regression=regression, seed=seed)
        if regression:
            raise ValueError("it learns classes only")
        self.sharpness = float(options.get("sharpness", 1.0))
        self.weight, self.sum = np.zeros(0), np.zeros((0, 0))

    def learn(self, X: Float64Array, y: NDArray[Any], weight: Float64Array) -> None:
        classes, columns = max(len(self.sum), int(y.max()) + 1), X.shape[1]
        more = classes - len(self.sum), columns - self.sum.shape[1]
        self.sum = np.pad(self.sum, ((0, more[0]), (0, more[1])))
        self.weight = np.pad(self.weight, (0, more[0]))
        np.add.at(self.sum, y, weight[:, None] * X)
        np.add.at(self.weight, y, weight)

    def predict(self, X: Float64Array) -> Float64Array:
        means = self.sum / np.maximum(self.weight, 1e-9)[:, None]
        scores = -self.sharpness * ((X[:, None] - means) ** 2).sum(axis=2)
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def state(self) -> dict[str, NDArray[Any]]:
        return {"weight": self.weight, "sum": self.sum}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        weight, total = np.array(arrays["weight"]), np.array(arrays["sum"])
        if weight.shape != total.shape[:1] or total.ndim != 2:
            raise ValueError("weight and sum do not fit")
        self.weight, self.sum = weight, total


class RunningMean(CustomLearner):
    """Numbers: the mean of those so far."""

    def __init__(self, options: Mapping[str, Any], *, regression: bool, seed: int) -> None:
        super().__init__(options, regression=regression, seed=seed)
        self.sums = np.zeros(2)

    def learn(self, _: Float64Array, y: NDArray[Any], weight: Float64Array) -> None:
        self.sums += [weight @ y, weight.sum()]

    def predict(self, X: Float64Array) -> Float64Array:
        return np.full(len(X), self.sums[0] / self.sums[1])

    def state(self) -> dict[str, NDArray[Any]]:
        return {"sums": self.sums}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.sums = np.array(arrays["sums"], np.float64).reshape(2)


class AnyArrays(RunningMean):
    """Keeps arrays whose names and numbers mean something else to other heads."""

    def state(self) -> dict[str, NDArray[Any]]:
        return {
            **super().state(),
            "rows_indptr": np.array([-3, 7]),
            "sequences": np.array([np.nan, -np.inf]),
            "calibration_sums": np.array([2.5]),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().restore(arrays)
        for name, array in self.state().items():
            np.testing.assert_array_equal(arrays[name], array)


class WrongShape(RunningMean):
    """Predicts one number, however many rows there are."""

    def predict(self, _: Float64Array) -> Float64Array:
        return np.zeros(1)


class Hostile(RunningMean):
    """Changes all that it is given, and misbehaves as its options say from its third sample on."""

    def __init__(self, options: Mapping[str, Any], *, regression: bool, seed: int) -> None:
        super().__init__(options, regression=regression, seed=seed)
        self.does = str(options["does"])
        if self.does == "exits when made":
            sys.exit(3)
        assert isinstance(options, dict)
        options.clear()

    def misbehaves(self, does: str) -> bool:
        return self.does == does and self.sums[1] >= 3

    def learn(self, X: Float64Array, y: NDArray[Any], weight: Float64Array) -> None:
        super().learn(X, y, weight)
        X[:], y[:], weight[:] = np.nan, 0, 1e6
        if self.misbehaves("raises"):
            raise RuntimeError("\ud800" * 100_000)
        if self.misbehaves("exits"):
            sys.exit(3)

    def predict(self, X: Float64Array) -> Float64Array:
        if self.misbehaves("exits when asked"):
            sys.exit(3)
        values = super().predict(X)
        X[:] = np.nan
        if self.misbehaves("says NaN"):
            values[:] = np.nan
        if self.misbehaves("says numbers too large"):
            values[:] = 1e308
        return values if self.regression else np.ones((len(X), 2)) / 2

    def state(self) -> dict[str, NDArray[Any]]:
        state = super().state()
        if self.misbehaves("has objects"):
            state["objects"] = np.array([{}, None], object)
        if self.misbehaves("has wrong names"):
            state["\ud800"] = np.zeros(1)
        if self.misbehaves("has no state"):
            sys.exit(3)
        return state

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.sums = arrays["sums"]


class Pickling(RunningMean):
    """Claims that its state has pickles."""

    pickles = True


NOT_A_LEARNER = 3


def install(place: Path) -> None:
    """Write what an installed distribution with these entry points has."""
    directory = place / "others-1.0.dist-info"
    directory.mkdir(parents=True)
    (directory / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    names = {
        "nearest-mean": "NearestMean",
        "running-mean": "RunningMean",
        "any-arrays": "AnyArrays",
        "wrong-shape": "WrongShape",
        "pickling": "Pickling",
        "hostile": "Hostile",
        "not-a-learner": "NOT_A_LEARNER",
        "missing": "Missing",
    }
    lines = [f"{name} = {MODULE}:{attribute}" for name, attribute in names.items()]
    (directory / "entry_points.txt").write_text("\n".join(["[wolfstream.heads]", *lines, ""]))
