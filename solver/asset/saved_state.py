"""The state of an ASSET learner as plain arrays, from which it continues bit for bit."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.asset.features import FeatureMap, map_arrays
from solver.asset.iterates import Machines
from solver.asset.subgradient import Progress
from solver.asset.targets import TargetScale


def learner_arrays(
    machines: Machines,
    progress: Progress,
    n_classes: int,
    scale: TargetScale,
    features: FeatureMap | None,
) -> dict[str, NDArray[Any]]:
    """Returns copies of a learner's arrays, and its feature map's arrays, by name."""
    arrays = {name: array.copy() for name, array in machines._asdict().items()}
    arrays |= {f"progress_{name}": a.copy() for name, a in progress._asdict().items()}
    arrays["counts"] = np.array([n_classes], np.int64)
    arrays["target_scale"] = np.array(scale)
    return arrays if features is None else arrays | map_arrays(features)


def machines_from(arrays: Mapping[str, NDArray[Any]]) -> Machines:
    """Returns the machines of `learner_arrays`, copied."""
    return Machines(*(np.array(arrays[name]) for name in Machines._fields))


def progress_from(arrays: Mapping[str, NDArray[Any]]) -> Progress:
    """Returns the progress of `learner_arrays`, copied."""
    return Progress(*(np.array(arrays[f"progress_{name}"]) for name in Progress._fields))
