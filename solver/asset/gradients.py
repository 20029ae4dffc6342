"""The gradients of ASSET's scores."""

import math

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.fourier import FourierMap
from wolfstream.solver.asset.identity import IdentityMap
from wolfstream.solver.asset.view import AssetView
from wolfstream.solver.kernels.gradients import expansion_gradient


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
