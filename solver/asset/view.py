"""An immutable view of an ASSET model, and predictions from it (P5 section 2.4)."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.features import FeatureMap, linear_values
from wolfstream.solver.rows.matrix import Matrix

Task = Literal["classification", "regression"]


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
