"""The real streams of the demo, each with the model that learns it."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PACKED = Path(__file__).resolve().parent.parent / "tests" / "data"
HEADS = ("working_set", "asset")
ASSET = {"dimension": 512, "lambda": 1e-4}
HELD_BACK = 2000


class Stream(NamedTuple):
    """A real stream, what is held back from it, and the model that learns it."""

    name: str
    about: str
    spec: dict[str, Any]
    X: NDArray[np.float64]
    y: NDArray[Any]
    X_held: NDArray[np.float64]
    y_held: NDArray[Any]

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads that learn it."""
        return ("asset",) if self.spec.get("task") == "regression" else HEADS


def pendigits() -> Stream:
    with np.load(PACKED / "pendigits.npz") as data:
        parts = [data[name].astype(np.float64) for name in ("X", "X_test")]
        labels = [data[name].astype(np.int64) for name in ("y", "y_test")]
    spec = {"working_set": {"algorithm": "msfw", "C": 10.0}, "asset": ASSET}
    return Stream("pendigits", "10 classes", spec, parts[0], labels[0], parts[1], labels[1])


def elec2() -> Stream:
    with np.load(PACKED / "elec2.npz") as data:
        X, y = data["X"].astype(np.float64), data["y"].astype(np.int64)
    working_set = {"algorithm": "msfw", "C": 1.0, "max_size": 2000}
    spec = {"working_set": working_set, "asset": ASSET}
    return Stream("elec2", "with drift", spec, *_split(X, y))


def bike_hour(folder: Path) -> Stream:
    """Raises OSError where the folder does not have it."""
    with np.load(folder / "bike_hour.npz") as data:
        X, y = data["X"].astype(np.float64), data["y"].astype(np.float64)
    asset = {"algorithm": "asset*", "features": "nystrom", "dimension": 512, "lambda": 1e-5}
    return Stream("bike_hour", "regression", {"task": "regression", "asset": asset}, *_split(X, y))


def _split(X: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    return X[:-HELD_BACK], y[:-HELD_BACK], X[-HELD_BACK:], y[-HELD_BACK:]
