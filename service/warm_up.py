"""Compile everything that a request can reach, before the first one comes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from service.head import Head
from service.model import HEADS, head_for
from service.names import NameTable, named_rows
from service.spec import ModelSpec
from service.targets import Targets
from solver.rows import Matrix, take_rows

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


def _use(head: Head, restored: Head, X: Matrix, y: Targets) -> None:
    head.absorb(take_rows(X, slice(0, 1)), y[:1])
    head.absorb(take_rows(X, slice(1, None)), y[1:])
    few = take_rows(X, slice(0, 5))
    for rows in (take_rows(X, slice(0, 1)), few):
        head.view().predict(rows)
    restored.restore(*head.state())
    restored.absorb(few, y[:5])
