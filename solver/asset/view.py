"""An immutable view of an ASSET model, and predictions from it (P5 section 2.4)."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.features import FeatureMap, linear_values
from wolfstream.solver.asset.fourier import FourierMap
from wolfstream.solver.asset.identity import IdentityMap
from wolfstream.solver.kernels.gradients import expansion_gradient
from wolfstream.solver.labels import Task
from wolfstream.solver.rows.matrix import Matrix


class AssetView(NamedTuple):
    """Everything that a prediction reads: the feature map and the model of each class."""

    task: Task
    features: FeatureMap
    # (classes, D) averaged weights, in regression (1, D).
    gamma: Float64Array
    # (classes,) averaged intercepts.
    b: Float64Array
    # gamma in the form that `features.linear_values` needs.
    coefficients: Float64Array
    n_classes: int
    # A predicted target is centre + unit (phi(x)'gamma + b).
    centre: float
    unit: float

    @property
    def dimension(self) -> int:
        """D, the number of features."""
        return int(self.gamma.shape[1])


def predict(view: AssetView, X: Matrix) -> tuple[NDArray[Any], Float64Array]:
    """Return predictions and decisions from V gamma + b (P5 section 2.4).

    In classification these are class numbers (n,) and decisions, (n,) for two classes, otherwise
    (n, classes). In regression both are the targets (n,).

    X: (n, d) rows.

    Raises ValueError while fewer than two classes are known.
    """
    if view.task == "regression":
        values = linear_values(view.features, view.coefficients, X)[:, 0] + view.b[0]
        values = view.centre + view.unit * values
        return values, values.copy()
    if view.n_classes < 2:
        raise ValueError("a prediction needs two classes")
    scores = linear_values(view.features, view.coefficients, X) + view.b
    if view.n_classes == 2:
        return (scores[:, 1] > 0.0).astype(np.int64), scores[:, 1]
    return np.argmax(scores, axis=1), scores


def score_gradient(view: AssetView, x: Float64Array, direction: Float64Array) -> Float64Array:
    """Return the gradient (d,) of sum_c direction_c score_c in x.

    x: (d,).
    direction: (classes,); two classes have the scores -f/2 and f/2. In regression (1,), the factor
        of the prediction.
    """
    if view.task == "regression":
        weights = direction * view.unit
    elif view.n_classes == 2:
        weights = np.array([0.0, 0.5 * (direction[1] - direction[0])])
    else:
        weights = direction
    coefficient = weights @ view.coefficients[: len(weights)]
    features = view.features
    if isinstance(features, IdentityMap):
        return np.asarray(coefficient[: len(x)])
    if isinstance(features, FourierMap):
        rows = len(features.frequency)
        shifted = x[:rows] - features.origin if len(features.origin) else x[:rows]
        argument = shifted @ features.frequency[: len(shifted)] + features.phase
        scale = -math.sqrt(2.0 / len(features.phase))
        return np.asarray(
            features.frequency[: len(shifted)] @ (scale * np.sin(argument) * coefficient)
        )
    return expansion_gradient(features.kernel, features.landmarks.exact, coefficient, x)
