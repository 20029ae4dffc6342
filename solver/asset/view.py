"""An immutable view of an ASSET model, and predictions from it (P5 section 2.4)."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.features import FeatureMap, linear_values
from wolfstream.solver.rows.matrix import Matrix

Task = Literal["classification", "regression"]


class AssetView(NamedTuple):
    """All that a prediction reads: the feature map and the averaged (gamma, b) of each class.

    gamma: (classes, D), in regression (1, D). b: (classes,).
    coefficients: gamma as `features.linear_values` takes it.
    centre, unit: a predicted target is centre + unit (phi(x)'gamma + b).
    """

    task: Task
    features: FeatureMap
    gamma: Float64Array
    b: Float64Array
    coefficients: Float64Array
    n_classes: int
    centre: float
    unit: float

    @property
    def dimension(self) -> int:
        """D, the number of features."""
        return int(self.gamma.shape[1])


def predict(view: AssetView, X: Matrix) -> tuple[NDArray[Any], Float64Array]:
    """V gamma + b of (n, d) rows: returns (prediction, decision) (P5 section 2.4).

    Of classification, class numbers (n,) and decisions: (n,) for two classes, else (n, classes).
    Of regression, the targets (n,) twice. Raises ValueError while fewer than two classes are known.
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
