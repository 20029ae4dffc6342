"""A semiparametric regression problem, the iterate of a run, and its KKT violation (P3)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled
from wolfstream.solver.kernels.cached_rows import KernelRows
from wolfstream.solver.kernels.functions import kernel_diagonal
from wolfstream.solver.semiparametric.dual import (
    SemiparametricDual,
    dual_violations,
    equality_violation,
    lagrangian_gradient,
    variables,
)
from wolfstream.solver.semiparametric.subproblem import Subproblem, add_multiple, slopes_at

# rho_j as a share of (mean k(x, x) + spread / C) / (mean psi_j^2), see `semiparametric_problem`.
# On eight problems (M 1000, C 1 to 3000, K 1 to 16) a fifth of it multiplies PDSG's steps by 0.8 to
# 1.7 and MPD's by 0.8 to 1.2, four times of it PDSG's by 0.9 to 1.6 and MPD's by 0.9 to 1.6.
_PENALTY = 0.1
# The curvature where the kernel and all basis functions are zero; a step then ends at a bound.
_LEAST_CURVATURE = 1e-150


class Iterate(NamedTuple):
    """The current point of a run; its arrays change in place.

    theta: (M,) alpha - alpha*.
    residual: (M,) r = K theta + Psi beta - y.
    equality: (K,) A z = Psi'theta.
    beta: (K,).
    """

    theta: Float64Array
    residual: Float64Array
    equality: Float64Array
    beta: Float64Array


class Problem(NamedTuple):
    """The dual, the rows of its kernel matrix, and arrays of which subproblems take parts.

    rho: (K,), curvature: (M,), see `semiparametric.subproblem`.
    Psi: (K, M), C-contiguous.
    """

    dual: SemiparametricDual
    source: KernelRows
    rho: Float64Array
    curvature: Float64Array
    Psi: Float64Array


class Point(NamedTuple):
    """A point of a run: the steps so far, the two parts of its KKT violation, and beta, (K,)."""

    steps: int
    dual_infeasibility: float
    equality_violation: float
    beta: Float64Array

    @property
    def violation(self) -> float:
        """The KKT violation, which ends a run."""
        return max(self.dual_infeasibility, self.equality_violation)


def semiparametric_problem(dual: SemiparametricDual, source: KernelRows) -> Problem:
    """rho_j = 0.1 (mean k(x, x) + spread / C) / (mean psi_j^2): the problem and its penalties.

    rho_j estimates the reciprocal of the dual Hessian's diagonal, A_F Q_FF^-1 A_F' for the free
    variables F, to which a free sample adds psi_j^2 / k(x, x). Where C is so small that few
    samples are free, A z changes as samples pass from one bound to the other: by C mean psi_j^2
    in all while h moves by the spread of y - Psi beta.
    """
    diagonal = kernel_diagonal(source.kernel, source.rows.exact)
    square = (dual.Psi * dual.Psi).mean(axis=0)
    spread = float((dual.y - dual.Psi @ least_squares(dual)).std())
    C = float(dual.upper.sum())
    rho = _PENALTY * (float(diagonal.mean()) + spread / C) / square
    curvature = np.maximum(diagonal + (dual.Psi * dual.Psi) @ rho, _LEAST_CURVATURE)
    return Problem(dual, source, rho, curvature, np.ascontiguousarray(dual.Psi.T))


def least_squares(dual: SemiparametricDual) -> Float64Array:
    """Return beta of the least squares fit Psi beta = y, (K,), from which a run starts."""
    return np.asarray(np.linalg.lstsq(dual.Psi, dual.y, rcond=None)[0])


def point_of(dual: SemiparametricDual, iterate: Iterate, steps: int) -> Point:
    """Return the point of an iterate after this number of steps."""
    infeasibility = float(violations(dual, iterate).max())
    share = equality_violation(dual, iterate.equality)
    return Point(steps, infeasibility, share, iterate.beta.copy())


def violations(dual: SemiparametricDual, iterate: Iterate) -> Float64Array:
    """Return by how much each variable of z violates P3 eq. 15a to 15c, (2M,)."""
    gradient = lagrangian_gradient(dual.epsilon, iterate.residual)
    return dual_violations(variables(iterate.theta), gradient, dual.upper)


def refresh(problem: Problem, iterate: Iterate) -> None:
    """Compute residuals and A z from their definitions; kernel rows of zero theta are not read."""
    dual = problem.dual
    iterate.residual[:] = dual.Psi @ iterate.beta - dual.y
    iterate.equality[:] = dual.Psi.T @ iterate.theta
    add_kernel_part(problem.source, np.flatnonzero(iterate.theta), iterate.theta, iterate.residual)


def add_kernel_part(
    source: KernelRows,
    columns: NDArray[np.int64],
    weight: Float64Array,
    residual: Float64Array,
) -> None:
    """residual += K weight, (M,), for weights that are zero outside `columns` (P3 eq. 9, 10)."""
    kept = source.kept
    held = kept.slot_of[columns] >= 0
    _add_rows(kept.values, kept.slot_of, columns[held], weight, residual)
    missing = columns[~held]
    for start in range(0, len(missing), source.together):
        part = missing[start : start + source.together]
        source.fetch(part)
        kept.clock[0] += 1
        _add_rows(kept.values, kept.slot_of, part, weight, residual)


def subproblem_of(
    problem: Problem, iterate: Iterate, index: NDArray[np.int64] | None = None
) -> Subproblem:
    """Return the subproblem of the samples in `index`, by default of all.

    iterate: that of these samples alone.
    """
    dual = problem.dual
    Psi, curvature, upper = problem.Psi, problem.curvature, dual.upper
    if index is not None:
        Psi, curvature = np.ascontiguousarray(Psi[:, index]), curvature[index]
        upper = upper[index]
    return Subproblem(
        iterate.theta,
        slopes_at(iterate.theta, dual.epsilon, upper),
        iterate.residual,
        Psi,
        curvature,
        iterate.equality,
        dual.largest,
        iterate.beta,
        problem.rho,
        dual.epsilon,
        upper,
    )


def largest(values: Float64Array, count: int) -> NDArray[np.int64]:
    """Return the positions of up to `count` of the largest values above zero, in no order."""
    candidates = np.flatnonzero(values > 0.0)
    first = len(candidates) - count
    if first <= 0 or count <= 0:
        return candidates[:count]
    return candidates[np.argpartition(values[candidates], first)[first:]]


@compiled
def _add_rows(
    values: Float64Array,
    slot_of: NDArray[np.int64],
    columns: NDArray[np.int64],
    weight: Float64Array,
    out: Float64Array,
) -> None:
    for i in columns:
        add_multiple(out, weight[i], values[slot_of[i]])
