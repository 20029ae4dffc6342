"""The iterates of one-versus-rest linear functions and their averages, in a form with cheap steps.

An iterate is stored as gamma = a v. Shrinking and projecting change only a, so that a step without
a subgradient costs one product V v. The sum of eta gamma over a window is A v + u with A = sum of
eta a, and a step v <- v + p V leaves it unchanged with u <- u - A p V: the average, too, touches
vectors only in steps with a subgradient. ||gamma||^2 is updated from V gamma, which the loss needs
anyway, and ||V||^2.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array

_VECTORS = ("direction", "rest", "before")
_ALL = slice(None)


class Iterates(NamedTuple):
    """The iterates of C linear functions on D features, and sums over two windows of them.

    ASSET*, which does not average, has no rows in `rest` and `before`.
    """

    # The iterate (gamma_j, b_j) of P5 is gamma = scale direction, b: (C, D) and (C,).
    direction: Float64Array
    scale: Float64Array
    # (C,) ||gamma||^2.
    square_norm: Float64Array
    b: Float64Array
    # (C,) A.
    scale_sum: Float64Array
    # (C, D) u + before, so that scale_sum * direction + rest is the sum of eta gamma over both
    # windows.
    rest: Float64Array
    # (C, D) the sum over the window before the present one.
    before: Float64Array
    # (C,) the sums of eta b over the present window and over the one before it.
    b_sum: Float64Array
    b_before: Float64Array
    # (C,) the effect of multiplying out in the last walk, which `put_columns` applies to all
    # columns: u gained moved * v, and then v was multiplied by factor.
    moved: Float64Array
    factor: Float64Array
    # (2,) the sums of eta over these two windows (P5's eta-tilde).
    weight: Float64Array


def no_iterates(count: int, dimension: int, averages: bool) -> Iterates:
    """Return iterates at zero.

    count: C.
    dimension: D.
    averages: whether iterates are averaged.
    """
    vectors, sums = (count, dimension), (count if averages else 0, dimension)
    return Iterates(
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


def widened_iterates(iterates: Iterates, dimension: int) -> Iterates:
    """Return the iterates with zero columns appended up to a dimension."""
    have = iterates.direction.shape[1]
    if dimension <= have:
        return iterates
    wider = [
        np.pad(array, ((0, 0), (0, dimension - have))) if name in _VECTORS else array
        for name, array in iterates._asdict().items()
    ]
    return Iterates(*wider)


def with_new_class(iterates: Iterates) -> Iterates:
    """Return the iterates with one more class.

    The last iterate, of a class not met yet, becomes that of the new class; a copy of it is last.
    """
    fields = [np.concatenate([field, field[-1:]]) for field in iterates[:-1]]
    return Iterates(*[*fields, iterates.weight])


def in_class_order(iterates: Iterates, order: NDArray[np.int64]) -> Iterates:
    """Return the iterates in another order of classes, with iterates for classes not met.

    order: (classes + 1,) the new number of each iterate; the last is that of a class not met.
    """
    while len(iterates.b) < len(order):
        iterates = with_new_class(iterates)
    fields = [np.empty_like(field) for field in iterates[:-1]]
    for into, field in zip(fields, iterates[:-1], strict=True):
        if len(field):
            into[order] = field
    return Iterates(*[*fields, iterates.weight])


def select_columns(iterates: Iterates, columns: NDArray[np.int64]) -> Iterates:
    """Return the iterates on some columns, for rows that are zero in the others.

    The other arrays are shared.
    """
    direction = np.ascontiguousarray(iterates.direction[:, columns])
    return iterates._replace(
        direction=direction, rest=np.ascontiguousarray(iterates.rest[:, columns])
    )


def put_columns(iterates: Iterates, columns: NDArray[np.int64], selected: Iterates) -> None:
    """Write back the columns that `select_columns` copied and `walk` changed."""
    for c in np.flatnonzero((iterates.factor != 1.0) | (iterates.moved != 0.0)):
        if len(iterates.rest):
            iterates.rest[c] += iterates.moved[c] * iterates.direction[c]
        iterates.direction[c] *= iterates.factor[c]
    iterates.direction[:, columns] = selected.direction
    iterates.rest[:, columns] = selected.rest


def averaged(iterates: Iterates, part: slice = _ALL) -> tuple[Float64Array, Float64Array]:
    """Return the averages of gamma and b, (iterates, D) and (iterates,); ASSET*'s last iterates.

    part: which iterates.
    """
    m = iterates
    if not len(m.rest):
        return m.scale[part, None] * m.direction[part], m.b[part].copy()
    total = float(m.weight.sum()) or 1.0
    gamma = (m.scale_sum[part, None] * m.direction[part] + m.rest[part]) / total
    return gamma, (m.b_sum[part] + m.b_before[part]) / total


def window_sums(iterates: Iterates) -> Float64Array:
    """Return the sum of eta gamma over both windows, (C, D); without rows for ASSET*."""
    m = iterates
    return m.scale_sum[:, None] * m.direction + m.rest if len(m.rest) else m.rest


def next_window(iterates: Iterates) -> None:
    """Begin an empty window; the present one becomes the one before."""
    m = iterates
    m.before[:] = m.scale_sum[:, None] * m.direction + (m.rest - m.before)
    m.rest[:] = m.before
    m.b_before[:] = m.b_sum
    m.scale_sum[:] = 0.0
    m.b_sum[:] = 0.0
    m.weight[:] = 0.0, m.weight[0]


def refresh(iterates: Iterates) -> None:
    """Compute ||gamma||^2 from gamma, without the rounding of its updates."""
    v = iterates.direction
    iterates.square_norm[:] = np.square(iterates.scale) * np.einsum("ck,ck->c", v, v)


def mirror(iterates: Iterates) -> None:
    """Set the iterate of the first of two classes, the mirror image of the second's."""
    m = iterates
    for negated in (m.direction, m.b, m.rest, m.before, m.b_sum, m.b_before):
        negated[:1] = -negated[1:2]
    for same in (m.scale, m.square_norm, m.scale_sum, m.moved, m.factor):
        same[0] = same[1]
