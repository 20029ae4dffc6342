"""Compile everything that a request can reach, before the first one comes."""

import numpy as np

from service.head import Head
from service.samples import Label, Samples
from service.spec import ModelSpec
from solver.kernels import Float64Array

_KERNELS = ({"type": "rbf"}, {"type": "polynomial"}, {"type": "linear"})


def warm_up() -> None:
    """Learn, predict, save and restore a little with every kernel and head.

    The set is so small that samples leave it, and one row is far enough from the others to
    need its distances from differences.
    """
    random = np.random.default_rng(0)
    X = random.standard_normal((200, 3))
    X[-1] = 1e9
    labels: list[Label] = [["a", "b", "c"][i % 3] for i in range(len(X))]
    samples = Samples(X, labels)
    for kernel in _KERNELS:
        spec = ModelSpec.model_validate(
            {"kernel": kernel, "working_set": {"max_size": 64, "corrective_steps": 1}}
        )
        _use(Head("working_set", spec), Head("working_set", spec), samples)
        if spec.asset is not None:
            _use(Head("asset", spec), Head("asset", spec), samples)


def _use(head: Head, restored: Head, samples: Samples) -> None:
    X: Float64Array = samples.X
    head.absorb(Samples(X[:1], samples.labels[:1]))
    head.absorb(Samples(X[1:], samples.labels[1:]))
    for rows in (X[:1], X[:5]):
        head.view().predict(rows)
    restored.restore(*head.state())
    restored.absorb(Samples(X[:5], samples.labels[:5]))
