"""Recursive least squares that forget to where they began (KRLS-T, Van Vaerenbergh et al. 2012).

    g = P x,  s = v + x'g
    a <- sqrt(kept) (a + g e / s),  P <- kept (P - g g' / s) + (1 - kept) I

for a row x with prediction error e, whose target has the variance v. P begins as the identity I,
and stays between 0 and I. v counts as at least LEAST |x|^2, so that rounding leaves P positive.
"""

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner, larger

LEAST = 1e-9


@inner
def least_squares_step(
    a: Float64Array,
    P: Float64Array,
    x: Float64Array,
    gain: Float64Array,
    kept: float,
    error: float,
    variance: float,
) -> None:
    """Learn one row, then forget one sample.

    a: (F,) coefficients; updated in place.
    P: (F, F) symmetric; updated in place.
    x: (F,) the row.
    gain: (F,) reused memory.
    kept: in (0, 1], the factor by which one sample decays what was learned.
    error: y - a.x.
    variance: v, in units of the prior variance of a.
    """
    size, spread = 0.0, 0.0
    for e in range(len(a)):
        gain[e] = 0.0
        for f in range(len(a)):
            gain[e] += P[e, f] * x[f]
        size += x[e] * x[e]
        spread += gain[e] * x[e]
    variance = larger(variance, LEAST * size) + spread
    for e in range(len(a)):
        a[e] = np.sqrt(kept) * (a[e] + gain[e] / variance * error)
        for f in range(len(a)):
            P[e, f] = kept * (P[e, f] - gain[e] * gain[f] / variance)
        P[e, e] += 1.0 - kept
