"""Combines values by a mixture, and rows whose first two values are far apart by one more.

    every    A = `value_mixture` of the values v_e of all rows
    gap      g = |v_1 - v_0|,  G its decayed mean
    apart    of rows with g > FAR G, `value_mixture` of A, as expert 0, and all v_e

Weights that all rows have given say little of those few on which two kinds of learners contradict
each other, and there most errors are large: a linear learner extrapolates where trees do not, and
trees do not know what they have no rows of. The second mixture begins as the first.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.value_mixture import (
    DECAY,
    ValueMixture,
    influence,
    learn_rows,
    mixture_arrays,
    mixture_from_arrays,
    new_mixture,
    predict_rows,
    rescale,
)
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled

FAR = 3.0


class GatedMixture(NamedTuple):
    """The state of both mixtures, in arrays that are updated in place."""

    every: ValueMixture  # of E experts
    apart: ValueMixture  # of E + 1
    gap: Float64Array  # (2,) decayed sum of g, and decayed count


def new_gated(experts: int) -> GatedMixture:
    """Return the mixtures of E experts before any sample."""
    return GatedMixture(new_mixture(experts), new_mixture(1 + experts), np.zeros(2))


def learn_gated(
    gated: GatedMixture, values: Float64Array, target: Float64Array, weight: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Predict rows, each before its target is learned.

    gated: is updated.
    values: (n, E) of the experts.
    target: (n,).
    weight: (n,) weights of the rows.

    Returns the predictions (n,), and the unweighted squared errors (n, E + S) of the experts and
    the stackers of all rows.
    """
    answers, errors = learn_rows(gated.every, values, target, weight)
    far = np.empty(len(values), np.bool_)
    _gate(gated.gap, values, far)
    if far.any():
        both = np.concatenate([answers[far, None], values[far]], axis=1)
        answers[far], _ = learn_rows(gated.apart, both, target[far], weight[far])
    return answers, errors


def predict_gated(gated: GatedMixture, values: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the predictions (n,) and variances (n,) of rows without targets; values: (n, E)."""
    answers, variances = predict_rows(gated.every, values)
    far = _far(gated, values)
    if far.any():
        both = np.concatenate([answers[far, None], values[far]], axis=1)
        answers[far], variances[far] = predict_rows(gated.apart, both)
    return answers, variances


def influence_gated(gated: GatedMixture, values: Float64Array) -> Float64Array:
    """Return the derivatives (E,) of the prediction for a row in its values (1, E)."""
    rates = influence(gated.every)
    if not _far(gated, values)[0]:
        return rates
    apart = influence(gated.apart)
    return np.asarray(apart[0] * rates + apart[1:])


def rescale_gated(gated: GatedMixture, factor: float) -> None:
    """Continue with values `factor` times as large; see `value_mixture.rescale`."""
    rescale(gated.every, factor)
    rescale(gated.apart, factor)
    gap = factor * float(gated.gap[0])
    gated.gap[:] = (gap, gated.gap[1]) if np.isfinite(gap) else 0.0


def copy_of(gated: GatedMixture) -> GatedMixture:
    """Return a copy that learning leaves as it is."""
    every, apart = (ValueMixture(*(a.copy() for a in each)) for each in gated[:2])
    return GatedMixture(every, apart, gated.gap.copy())


def gated_arrays(name: str, gated: GatedMixture) -> dict[str, NDArray[Any]]:
    """Return a copy, as named plain arrays."""
    arrays = mixture_arrays(name, gated.every) | mixture_arrays(f"{name}_apart", gated.apart)
    return arrays | {f"{name}_gap": gated.gap.copy()}


def gated_from_arrays(name: str, arrays: Mapping[str, NDArray[Any]]) -> GatedMixture:
    """Return a copy of what `gated_arrays` returned for this name."""
    every, apart = (mixture_from_arrays(each, arrays) for each in (name, f"{name}_apart"))
    return GatedMixture(every, apart, np.array(arrays[f"{name}_gap"]))


def _far(gated: GatedMixture, values: Float64Array) -> NDArray[np.bool_]:
    """Return which rows (n,) are gated; none before the first sample."""
    total, count = gated.gap.tolist()
    far: NDArray[np.bool_] = count * np.abs(values[:, 1] - values[:, 0]) > FAR * total
    return far


@compiled
def _gate(gap: Float64Array, values: Float64Array, far: NDArray[np.bool_]) -> None:
    """Write which rows are gated, each before its own gap counts."""
    for i in range(len(values)):
        apart = abs(values[i, 1] - values[i, 0])
        far[i] = gap[1] * apart > FAR * gap[0]
        gap[0] = DECAY * gap[0] + apart
        gap[1] = DECAY * gap[1] + 1.0
