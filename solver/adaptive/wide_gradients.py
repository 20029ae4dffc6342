"""How what a bank makes of a wide row moves with the row: hashed columns, and diagonal scores.

A diagonal learner's score is w.x / |x| with x_j = v_j / sqrt(q_j), where the value v_j enters its
own mean square q_j = a_j + v_j^2 / n_j (`diagonal`):

    dx_j/dv_j = a_j / q_j^(3/2),    d(w.x / |x|)/dx = w / |x| - x (w.x) / |x|^3

and dx_j/dv_j = 0 where x_j is cut off.
"""

import numpy as np

from wolfstream.solver.adaptive.diagonal import CLIP, HORIZON, DiagonalWeights, slots_of_columns
from wolfstream.solver.adaptive.hashing import LARGEST, hashed_places
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.scale import CLIPPED, Moments
from wolfstream.solver.prepare.slopes import slopes


def through_hashing(moments: Moments, x: Float64Array, of_columns: Float64Array) -> Float64Array:
    """The gradient (d,) in a row x (d,), of one (WIDTH,) in its standardised hashed columns."""
    slot, sign = hashed_places(np.arange(len(x)))
    inside = np.abs(x) < LARGEST
    values = sign * np.clip(x, -LARGEST, LARGEST)
    hashed: Float64Array = np.bincount(slot, values, len(of_columns)).astype(float)
    of_hashed = of_columns * slopes(moments, hashed[None], CLIPPED)[0]
    return np.asarray(inside * sign * of_hashed[slot])


def of_diagonal(weights: DiagonalWeights, x: Float64Array, of_scores: Float64Array) -> Float64Array:
    """The gradient (d,) in a row x (d,), of the sum of of_scores (L, K) times the scores."""
    slot = slots_of_columns(np.arange(len(x)))
    met = slot < len(weights.W)
    met_slot = np.where(met, slot, 0)
    v = np.clip(x, -LARGEST, LARGEST)
    count = np.minimum(np.where(met, weights.entries[met_slot], 0.0) + 1.0, HORIZON)
    before = np.where(met, weights.square[met_slot], 0.0) * (1.0 - 1.0 / count)
    square = before + v * v / count
    used = square > 0.0
    root = np.sqrt(np.where(used, square, 1.0))
    scaled = np.where(used, v / root, 0.0)
    moving = used & (np.abs(scaled) < CLIP) & (np.abs(x) < LARGEST)
    scaled = np.clip(scaled, -CLIP, CLIP)
    norm = np.sqrt(scaled @ scaled)
    if norm == 0.0:
        return np.zeros(len(x))
    classes = of_scores.shape[1]
    w = np.where(met, np.tensordot(weights.W[:, :, :classes], of_scores, 2)[met_slot], 0.0)
    of_scaled = w / norm - scaled * (w @ scaled) / norm**3
    return np.where(moving, of_scaled * before / root**3, 0.0)
