"""What ASSET says: of samples just before it learns them, and by a published picture."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.features import FeatureMap, linear_values
from solver.rows import Float64Array, Matrix

Task = Literal["classification", "regression"]


class AssetAbsorbed(NamedTuple):
    """What the model said of each of n samples just before learning it.

    prediction: (n,) class numbers; -1 while fewer than two classes were known. Of regression
        (n,) values, NaN before the first sample.
    decision: (n,) for at most two classes after the last sample, otherwise (n, classes); NaN
        where there was nothing to say yet. Of regression the prediction.
    """

    prediction: NDArray[Any]
    decision: Float64Array


class AssetView(NamedTuple):
    """An immutable picture: the feature map and the averaged (gamma, b) of each class.

    gamma: (classes, D), of regression (1, D). coefficients: what `features.linear_values`
    takes. centre, unit: a value is centre + unit (phi(x)'gamma + b).
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
        """D, the number of columns that the features have."""
        return int(self.gamma.shape[1])


def predict(view: AssetView, X: Matrix) -> tuple[NDArray[Any], Float64Array]:
    """(prediction, decision) of (n, d) rows, without training samples (P5 section 2.4).

    Class numbers (n,) and decisions V gamma + b: (n,) for two classes, else (n, classes); of
    regression the values (n,) twice. Raises ValueError while fewer than two classes are known.
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


def answers_of(scores: Float64Array, known: NDArray[np.int64]) -> AssetAbsorbed:
    """Answers from (n, classes) scores, of which sample i could know the first known[i]."""
    untrained = known < 2
    scores[np.arange(scores.shape[1]) >= known[:, None]] = np.nan
    said = np.full(len(scores), -1, np.int64)
    if scores.shape[1] <= 2:
        decision = scores[:, -1] if scores.shape[1] == 2 else np.full(len(scores), np.nan)
        said[~untrained] = decision[~untrained] > 0.0
        return AssetAbsorbed(said, np.where(untrained, np.nan, decision))
    scores[untrained] = np.nan
    said[~untrained] = np.nanargmax(scores[~untrained], axis=1)
    return AssetAbsorbed(said, scores)
