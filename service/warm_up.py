"""Compile everything that a request can reach, before the first one comes."""

import itertools

import numpy as np

from service.head import Head
from service.samples import Label, Samples
from service.spec import ModelSpec

_KERNELS = ({"type": "rbf"}, {"type": "polynomial"}, {"type": "linear"})


def warm_up() -> None:
    """Learn and predict a little with every kernel and head.

    The set is so small that samples leave it, and one row is far enough from the others to
    need its distances from differences.
    """
    random = np.random.default_rng(0)
    X = random.standard_normal((160, 3))
    X[-1] = 1e9
    labels: list[Label] = [["a", "b", "c"][i % 3] for i in range(len(X))]
    for kernel in _KERNELS:
        spec = ModelSpec.model_validate(
            {"kernel": kernel, "working_set": {"max_size": 40, "corrective_steps": 1}}
        )
        heads = [Head("working_set", spec)]
        if spec.asset is not None:
            heads.append(Head("asset", spec))
        for head in heads:
            for start, stop in itertools.pairwise((0, 1, 2, 130, len(X))):
                head.absorb(Samples(X[start:stop], labels[start:stop]))
            head.view().predict(X[:5])
