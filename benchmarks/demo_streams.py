"""The real streams of the demo, the models that learn them, and what they are judged by."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PACKED = Path(__file__).resolve().parent.parent / "tests" / "data"
# The default model, which the adaptive head answers for, and models with one head each.
HEADS = ("adaptive", "working_set", "asset")
HELD_BACK = 2000


class Stream(NamedTuple):
    """A real stream, what is held back from it, and what the models that learn it share."""

    name: str
    about: str
    spec: dict[str, Any]
    X: NDArray[np.float64]
    y: NDArray[Any]
    X_held: NDArray[np.float64]
    y_held: NDArray[Any]

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads that learn it, each in a model of its own."""
        return ("adaptive", "asset") if self.spec.get("task") == "regression" else HEADS

    def spec_for(self, head: str) -> dict[str, Any]:
        """The default model for the adaptive head; for another one a model with that head alone."""
        if head == "adaptive":
            return self.spec
        return self.spec | {other: None for other in HEADS if other != head}


def pendigits() -> Stream:
    """Handwritten digits; other people wrote those held back."""
    with np.load(PACKED / "pendigits.npz") as data:
        parts = [data[name].astype(np.float64) for name in ("X", "X_test")]
        labels = [data[name].astype(np.int64) for name in ("y", "y_test")]
    return Stream("pendigits", "10 classes", {}, parts[0], labels[0], parts[1], labels[1])


def elec2() -> Stream:
    """Prices of electricity in the order of time, which drift."""
    with np.load(PACKED / "elec2.npz") as data:
        X, y = data["X"].astype(np.float64), data["y"].astype(np.int64)
    return Stream("elec2", "with drift", {}, *_split(X, y))


def bike_hour(folder: Path) -> Stream:
    """Bicycles hired in an hour, a regression. Raises OSError where the folder lacks the file."""
    with np.load(folder / "bike_hour.npz") as data:
        X, y = data["X"].astype(np.float64), data["y"].astype(np.float64)
    return Stream("bike_hour", "regression", {"task": "regression"}, *_split(X, y))


def _split(X: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    return X[:-HELD_BACK], y[:-HELD_BACK], X[-HELD_BACK:], y[-HELD_BACK:]


def last_again(y: NDArray[Any]) -> NDArray[Any]:
    """Predictions (n - 1,) for all but the first sample: the label or number just before it."""
    return y[:-1]


def majority_so_far(y: NDArray[np.int64]) -> NDArray[np.int64]:
    """Predictions (n - 1,) for all but the first sample: the most frequent label before it."""
    classes, codes = np.unique(y, return_inverse=True)
    counts = np.cumsum(codes[:, None] == np.arange(len(classes)), axis=0)
    return np.asarray(classes[counts[:-1].argmax(axis=1)], np.int64)


def mean_so_far(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Predictions (n - 1,) for all but the first sample: the mean of the numbers before it."""
    return np.cumsum(y)[:-1] / np.arange(1, len(y))
