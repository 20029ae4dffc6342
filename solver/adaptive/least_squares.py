"""Recursive least squares that forget to where they began (KRLS-T, Van Vaerenbergh et al. 2012).

    g = P x,  s = v + x'g
    a <- sqrt(kept) (a + g e / s),  P <- kept (P - g g' / s) + (1 - kept) I

of a row x whose target has the error e and the variance v. P begins as the identity and stays
bounded for ever.
"""

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner


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

    a: (F,). P: (F, F). x: (F,). gain: (F,) reused memory. kept: what one sample leaves. error: of
    a's value. variance: of the row's target, beside that of a.
    """
    for e in range(len(a)):
        gain[e] = 0.0
        for f in range(len(a)):
            gain[e] += P[e, f] * x[f]
        variance += gain[e] * x[e]
    for e in range(len(a)):
        a[e] = np.sqrt(kept) * (a[e] + gain[e] / variance * error)
        for f in range(len(a)):
            P[e, f] = kept * (P[e, f] - gain[e] * gain[f] / variance)
        P[e, e] += 1.0 - kept
