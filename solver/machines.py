"""The iterates of one-versus-rest machines and their averages, in a form that is cheap to step.

An iterate is kept as gamma = a v. Shrinking and projecting change a alone, and a sample that
costs no loss changes nothing else, so that a step without a subgradient is one product V v.
The sum of eta gamma over a window is A v + u with A = sum of eta a: a step v <- v + p V keeps
it with u <- u - A p V, and so averaging, too, touches vectors in steps with a subgradient only.
||gamma||^2 is carried along: all that it needs is V gamma, which the loss needs, and ||V||^2.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.rows import Float64Array

_VECTORS = ("direction", "rest", "before")


class Machines(NamedTuple):
    """The iterates of C machines on D features, and sums over two windows of them.

    direction, scale, b: the iterate (gamma_j, b_j) of P5; gamma = scale * direction.
    square_norm: ||gamma||^2.
    scale_sum: A. rest: u + before, so that scale_sum * direction + rest is the sum of eta gamma
        over both windows. before: that over the window before the present one. Both have no
        rows for ASSET*, which does not average.
    b_sum, b_before: the sums of eta b over the present window and over the one before.
    weight: (2,) the sums of eta over both (P5's eta-tilde).
    moved, factor: what multiplying out has done to all columns in the last walk: u gained
        moved * v, and then v was multiplied by factor.
    """

    direction: Float64Array
    scale: Float64Array
    square_norm: Float64Array
    b: Float64Array
    scale_sum: Float64Array
    rest: Float64Array
    before: Float64Array
    b_sum: Float64Array
    b_before: Float64Array
    moved: Float64Array
    factor: Float64Array
    weight: Float64Array


def no_machines(count: int, dimension: int, averages: bool) -> Machines:
    """Machines at zero."""
    vectors, sums = (count, dimension), (count if averages else 0, dimension)
    return Machines(
        direction=np.zeros(vectors),
        scale=np.ones(count),
        square_norm=np.zeros(count),
        b=np.zeros(count),
        scale_sum=np.zeros(count),
        rest=np.zeros(sums),
        before=np.zeros(sums),
        b_sum=np.zeros(count),
        b_before=np.zeros(count),
        moved=np.zeros(count),
        factor=np.ones(count),
        weight=np.zeros(2),
    )


def widened_machines(machines: Machines, dimension: int) -> Machines:
    """The machines with columns of zeros up to a dimension; the same ones if they have it."""
    have = machines.direction.shape[1]
    if dimension <= have:
        return machines
    wider = [
        np.pad(array, ((0, 0), (0, dimension - have))) if name in _VECTORS else array
        for name, array in machines._asdict().items()
    ]
    return Machines(*wider)


def select_columns(machines: Machines, columns: NDArray[np.int64]) -> Machines:
    """The machines on some features, for rows that have no others; numbers are shared."""
    direction = np.ascontiguousarray(machines.direction[:, columns])
    return machines._replace(
        direction=direction, rest=np.ascontiguousarray(machines.rest[:, columns])
    )


def put_columns(machines: Machines, columns: NDArray[np.int64], selected: Machines) -> None:
    """Write back what `select_columns` gave and `walk` changed."""
    for c in np.flatnonzero((machines.factor != 1.0) | (machines.moved != 0.0)):
        if len(machines.rest):
            machines.rest[c] += machines.moved[c] * machines.direction[c]
        machines.direction[c] *= machines.factor[c]
    machines.direction[:, columns] = selected.direction
    machines.rest[:, columns] = selected.rest


def averaged(machines: Machines) -> tuple[Float64Array, Float64Array]:
    """(gamma, b) of the averages, (C, D) and (C,); of the last iterates without averaging."""
    m = machines
    if not len(m.rest):
        return m.scale[:, None] * m.direction, m.b.copy()
    total = float(m.weight.sum()) or 1.0
    return window_sums(m) / total, (m.b_sum + m.b_before) / total


def window_sums(machines: Machines) -> Float64Array:
    """The sums of eta gamma over both windows, (C, D); without rows for ASSET*."""
    m = machines
    return m.scale_sum[:, None] * m.direction + m.rest if len(m.rest) else m.rest


def next_window(machines: Machines) -> None:
    """The present window becomes the one before, and an empty one begins."""
    m = machines
    m.before[:] = m.scale_sum[:, None] * m.direction + (m.rest - m.before)
    m.rest[:] = m.before
    m.b_before[:] = m.b_sum
    m.scale_sum[:] = 0.0
    m.b_sum[:] = 0.0
    m.weight[:] = 0.0, m.weight[0]


def refresh(machines: Machines) -> None:
    """||gamma||^2 from gamma: what a million updates have rounded away comes back."""
    v = machines.direction
    machines.square_norm[:] = np.square(machines.scale) * np.einsum("ck,ck->c", v, v)


def mirror(machines: Machines) -> None:
    """Of two classes: the first one's machine from the second one's, whose mirror image it is."""
    m = machines
    for negated in (m.direction, m.b, m.rest, m.before, m.b_sum, m.b_before):
        negated[:1] = -negated[1:2]
    for same in (m.scale, m.square_norm, m.scale_sum, m.moved, m.factor):
        same[0] = same[1]
