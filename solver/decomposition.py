"""The decomposition of semiparametric regression's dual (P3 Algorithm 1), and its outer loop."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from solver.kernel_rows import KernelRows
from solver.kernels import Float64Array
from solver.semiparametric_dual import SemiparametricDual
from solver.subproblem import CONVERGED, MISSING, KernelValues, Subproblem
from solver.mpd import PENALTY, mpd


class Iterate(NamedTuple):
    """theta (M,), residual (M,) at theta and beta, equality (K,) A z, beta (K,)."""

    theta: Float64Array
    residual: Float64Array
    equality: Float64Array
    beta: Float64Array


def whole_problem(dual, source, iterate, tol, limit):
    sub = Subproblem(
        iterate.theta,
        iterate.residual,
        np.ascontiguousarray(dual.Psi.T),
        (dual.Psi**2).mean(axis=0),
        iterate.equality,
        dual.largest,
        iterate.beta,
        dual.epsilon,
        dual.upper,
    )
    diagonal = np.ones(source.n)
    kernel = KernelValues(
        source.kept.values, source.kept.slot_of, diagonal, np.full(2, -1, np.int64)
    )
    rho = PENALTY * diagonal.mean() / sub.square
    inner = np.array([tol])
    done = 0
    while done < limit:
        why, steps = mpd(sub, kernel, rho, inner, tol, limit - done)
        done += steps
        source.kept.clock[0] += 1
        if why == MISSING:
            source.fetch(kernel.needed[kernel.needed >= 0])
        else:
            return why == CONVERGED, done
