"""Compile everything that a request can reach, before the first one comes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from service.fits import Window, fit_window
from service.head import Head
from service.model import HEADS, head_for
from service.names import NameTable, named_rows
from service.semiparametric_head import SemiparametricHead
from service.spec import ModelSpec
from service.targets import Targets
from solver.rows import Float64Array, Matrix, take_rows

_FEATURES = {
    "rbf": ("fourier", "nystrom"),
    "polynomial": ("nystrom",),
    "linear": ("identity", "nystrom"),
}


def warm_up() -> None:
    """Learn, predict, save and restore a little with every kernel, head and kind of rows.

    The set is so small that samples leave it, landmarks are so few that they are settled, and
    one row is far enough from the others to need its distances from differences.
    """
    X = np.random.default_rng(0).standard_normal((100, 3))
    X[-1] = 1e9
    named = named_rows([dict(zip("abc", row, strict=True)) for row in X.tolist()])
    sparse = NameTable("abc").matrix(named, 3)
    for spec in _specs():
        y: Targets = [["a", "b", "c"][i % 3] for i in range(len(X))]
        if spec.task == "regression":
            y = np.sin(X[:, 0])
        for name in HEADS:
            if getattr(spec, name) is not None:
                for rows in (X, sparse):
                    _use(head_for(name, spec), head_for(name, spec), rows, y)
    for kernel in _FEATURES:
        for solver in ("pdsg", "mpd"):
            _refit(kernel, solver, X)


def _specs() -> Iterator[ModelSpec]:
    for kernel, of_kernel in _FEATURES.items():
        common: dict[str, Any] = {"kernel": {"type": kernel}}
        own = {"max_size": 64, "corrective_steps": 1}
        yield ModelSpec.model_validate({**common, "working_set": own, "asset": None})
        for features in of_kernel:
            asset: dict[str, Any] = {"features": features}
            if features != "identity":
                asset |= {"dimension": 16}
            common |= {"asset": asset, "working_set": None}
            yield ModelSpec.model_validate(common)
            yield ModelSpec.model_validate({**common, "task": "regression"})


def _refit(kernel: str, solver: str, X: Float64Array) -> None:
    """Fit windows that are solved as a whole and in parts, and predict with the fits."""
    own: dict[str, Any] = {"solver": solver, "tol": 0.1}
    spec = ModelSpec.model_validate(
        {"task": "regression", "kernel": {"type": kernel}, "asset": None, "semiparametric": own}
    )
    head, y = SemiparametricHead(spec), np.sin(X[:, 0])
    many = np.random.default_rng(1).standard_normal((600, 3))
    for rows in (X[:20], many):
        window = Window(0, rows, np.sin(rows[:, 0]), spec)
        head.adopt(fit_window(window, "", lambda _: None))
        head.absorb(X, y)
    for rows in (X[:1], X):
        head.view().predict(rows)


def _use(head: Head, restored: Head, X: Matrix, y: Targets) -> None:
    head.absorb(take_rows(X, slice(0, 1)), y[:1])
    head.absorb(take_rows(X, slice(1, None)), y[1:])
    few, many = take_rows(X, slice(0, 5)), take_rows(X, slice(0, len(y) - 1))
    for rows in (take_rows(X, slice(0, 1)), few, many):
        head.view().predict(rows)
    restored.restore(*head.state())
    restored.absorb(few, y[:5])
