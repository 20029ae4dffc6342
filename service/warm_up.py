"""Compile everything that a request can reach, before the first one comes."""

import numpy as np

from service.fits import Window, fit_window
from service.head import Head
from service.model import head_for
from service.names import NameTable, named_rows
from service.semiparametric_head import SemiparametricHead
from service.spec import ModelSpec
from service.targets import Label
from solver.rows import Float64Array, Matrix, take_rows

_KERNELS = ({"type": "rbf"}, {"type": "polynomial"}, {"type": "linear"})


def warm_up() -> None:
    """Learn, predict, save and restore a little with every kernel, head and kind of rows.

    The set is so small that samples leave it, and one row is far enough from the others to
    need its distances from differences.
    """
    X = np.random.default_rng(0).standard_normal((100, 3))
    X[-1] = 1e9
    labels: list[Label] = [["a", "b", "c"][i % 3] for i in range(len(X))]
    named = named_rows([dict(zip("abc", row, strict=True)) for row in X.tolist()])
    sparse = NameTable("abc").matrix(named, 3)
    for kernel in _KERNELS:
        spec = ModelSpec.model_validate(
            {"kernel": kernel, "working_set": {"max_size": 64, "corrective_steps": 1}}
        )
        for rows in (X, sparse):
            _use(head_for("working_set", spec), head_for("working_set", spec), rows, labels)
            if spec.asset is not None:
                _use(head_for("asset", spec), head_for("asset", spec), rows, labels)
        for solver in ("pdsg", "mpd"):
            _refit(kernel, solver, X)


def _refit(kernel: dict[str, str], solver: str, X: Float64Array) -> None:
    spec = ModelSpec.model_validate(
        {
            "task": "regression",
            "kernel": kernel,
            "asset": None,
            "semiparametric": {"solver": solver},
        }
    )
    head, y = SemiparametricHead(spec), np.sin(X[:, 0])
    head.adopt(fit_window(Window(0, X[:20], y[:20], spec), "", lambda _: None))
    head.absorb(X, y)
    for rows in (X[:1], X):
        head.view().predict(rows)


def _use(head: Head, restored: Head, X: Matrix, labels: list[Label]) -> None:
    head.absorb(take_rows(X, slice(0, 1)), labels[:1])
    head.absorb(take_rows(X, slice(1, None)), labels[1:])
    few = take_rows(X, slice(0, 5))
    for rows in (take_rows(X, slice(0, 1)), few):
        head.view().predict(rows)
    restored.restore(*head.state())
    restored.absorb(few, labels[:5])
