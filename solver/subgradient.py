"""The steps of ASSET and ASSET* in compiled code (P5 Algorithm 1, lines 3-10, and Table 1).

An iterate is kept as gamma = a v. Shrinking and projecting change a alone, and a sample that
costs no loss changes nothing else, so that a step without a subgradient is one product V v.
The sum of eta gamma over a window is A v + u with A = sum of eta a: a step v <- v + p V keeps
it with u <- u - A p V, and so averaging, too, touches vectors in steps with a subgradient only.
||gamma||^2 is carried along: all that it needs is V gamma, which the loss needs, and ||V||^2.

Feasible sets: ||gamma|| <= R, |b| <= B. With alpha = beta / (lambda m), |beta_i| <= 1, the optimum
has the dual value  lambda ||gamma||^2 + mean loss = mean (y_i beta_i - epsilon |beta_i|), and so
lambda ||gamma||^2 <= mean max(|y| - epsilon, 0), half of P5's bound and with the mean in place of
the maximum; the mean is that of the samples so far, as the targets of a stream are not known
beforehand. For hinge it is lambda ||gamma||^2 <= 1, P5's bound. B is R, but at least what the best
constant needs: 1 for hinge, and 2 mean |y|, which bounds the median.

D_G^2 = mean ||V||^2 + 1 takes d^2 = 1 for all samples. So it is for hinge at the first iterate;
in regression P5 would take d = 0 for targets within epsilon of zero, though later iterates are
not at zero: the mean bounds E||G||^2 everywhere, and is never zero.

In regression a step ends at the edge of the tube around its sample. This is the proximal step on
max(loss + G'(x - x_j), 0), which bounds the loss from below as the subgradient alone does, but
closer; every inequality of the robust analysis holds for it. P5's whole steps begin as long as
D_X: at lambda = 1e-4 they say nothing useful for a thousand samples. R^2 of predictions before
learning, on samples 1-128, 129-1000, 1001-4000 and later, and of the model after one pass (80% of
the samples shuffled, features at unit variance, 256 landmarks): california housing -130, -4.9,
0.15, 0.67, then 0.72 with whole steps; 0.27, 0.60, 0.71, 0.70, then 0.72 with these. Bike sharing
-88, -4.3, -0.06, 0.49, then 0.56; 0.33, 0.44, 0.52, 0.55, then 0.58.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.compiled import compiled
from solver.rows import Float64Array

# D_G is the running estimate over the first samples (P5's M), then frozen.
D_G_SAMPLES = 128
# The iterate is multiplied out when its scale leaves [1/_LARGEST_SCALE, _LARGEST_SCALE]: so many
# of a number's 1e16 places may be lost to the difference A v + u, and no more.
_LARGEST_SCALE = 1e3
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
    moved, factor: what multiplying out has done to columns since `select_columns`: u gained
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


class StepRule(NamedTuple):
    """Constants of the steps.

    lam: lambda. regression: epsilon-insensitive loss of a single machine in place of hinge
    losses one-versus-rest. epsilon: of that loss. robust: ASSET; otherwise ASSET*, without
    intercept. averages: the model is an average of iterates, not the last. average_from: N-bar;
    from 0 on all steps are averaged. horizon: no step is shorter than that of this number.
    """

    lam: float
    regression: bool
    epsilon: float
    robust: bool
    averages: bool
    average_from: int
    horizon: float


class Progress(NamedTuple):
    """What the step lengths depend on, each in an array of one.

    steps: j. square_norms: sum of ||V||^2 over the first 128 samples. loss: mean loss of the
    model that is zero, max(|y| - epsilon, 0); target: mean |y|; both of regression.
    """

    steps: Float64Array
    square_norms: Float64Array
    loss: Float64Array
    target: Float64Array


def no_progress() -> Progress:
    """Before the first step."""
    return Progress(*(np.zeros(1) for _ in Progress._fields))


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
    machines.moved[:], machines.factor[:] = 0.0, 1.0
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


@compiled
def walk(
    machines: Machines,
    V: Float64Array,
    y: Float64Array,
    rule: StepRule,
    progress: Progress,
    scores: Float64Array,
) -> None:
    """Take a step for each row of V in order; scores (n, C') is what the model said before it.

    y: (n,) class numbers, or targets. One-versus-rest has one machine more than `scores` has
    columns, with y = -1 for all samples. Of two classes the first one's machine is the other's
    mirror image and is left out: see `mirror`.

    ||gamma - s V||^2 = ||gamma||^2 - 2 s V gamma + s^2 ||V||^2 for the shrunk gamma.
    """
    classes = scores.shape[1]
    mirrored = classes == 2 and not rule.regression
    count = 1 if rule.regression else classes + 1
    # Rows are handed on, not tuples of arrays: a call with those costs more than 500 products.
    direction, scale, b = machines.direction, machines.scale, machines.b
    rest = machines.rest if rule.averages else direction
    scale_sum, b_sum, weight = machines.scale_sum, machines.b_sum, machines.weight
    for i in range(len(V)):
        V_i = V[i]
        square_norm = _dot(V_i, V_i)
        eta, radius, bound = _step_length(rule, progress, square_norm, y[i])
        total = weight[0] + weight[1]
        averaging = rule.averages and progress.steps[0] >= rule.average_from
        shrink = 1.0 - eta * rule.lam
        for c in range(1 if mirrored else 0, count):
            v, rest_c = direction[c], rest[c]
            if rule.averages and c < classes:
                product, summed = _two_dots(V_i, v, rest_c)
                summed += scale_sum[c] * product + b_sum[c] + machines.b_before[c]
                scores[i, c] = summed / total if total > 0.0 else 0.0
            else:
                product = _dot(V_i, v)
                if c < classes:
                    scores[i, c] = scale[c] * product + b[c]
            value = scale[c] * product + b[c]
            if rule.regression:
                d = _toward_tube(rule, value, y[i], square_norm, eta)
            else:
                sign = 1.0 if y[i] == c else -1.0
                d = -sign if sign * value < 1.0 else 0.0
            a = shrink * scale[c]
            square = shrink * shrink * machines.square_norm[c]
            if not 1.0 / _LARGEST_SCALE <= abs(a) <= _LARGEST_SCALE:
                _multiply_out(v, a, rest_c, scale_sum[c])
                machines.moved[c] += machines.factor[c] * scale_sum[c]
                machines.factor[c] *= a
                product, a, scale_sum[c] = a * product, 1.0, 0.0
            if d != 0.0:
                step = eta * d
                square += step * (step * square_norm - 2.0 * a * product)
                if rule.averages:
                    _add_to_both(v, rest_c, V_i, -step / a, scale_sum[c] * step / a)
                else:
                    _add(v, V_i, -step / a)
            if square > radius * radius:
                a *= radius / math.sqrt(square)
                square = radius * radius
            scale[c], machines.square_norm[c] = a, max(square, 0.0)
            if rule.robust:
                b[c] = min(max(b[c] - eta * d, -bound), bound)
            if averaging:
                scale_sum[c] += eta * a
                b_sum[c] += eta * b[c]
        if averaging:
            weight[0] += eta
        if mirrored:
            scores[i, 0] = -scores[i, 1]


def mirror(machines: Machines) -> None:
    """Of two classes: the first one's machine from the second one's, whose mirror image it is."""
    m = machines
    for negated in (m.direction, m.b, m.rest, m.before, m.b_sum, m.b_before):
        negated[:1] = -negated[1:2]
    for same in (m.scale, m.square_norm, m.scale_sum, m.moved, m.factor):
        same[0] = same[1]


@compiled
def _step_length(
    rule: StepRule, progress: Progress, square_norm: float, y: float
) -> tuple[float, float, float]:
    """eta of the next step, and the bounds of ||gamma|| and |b|; counts the step."""
    j = progress.steps[0] + 1.0
    if j <= D_G_SAMPLES:
        progress.square_norms[0] += square_norm
    progress.steps[0] = j
    counted = min(j, rule.horizon)
    if rule.regression:
        loss = max(abs(y) - rule.epsilon, 0.0)
        progress.loss[0] += (loss - progress.loss[0]) / counted
        progress.target[0] += (abs(y) - progress.target[0]) / counted
        radius = math.sqrt(progress.loss[0] / rule.lam)
        bound = max(radius, 2.0 * progress.target[0])
    else:
        radius = math.sqrt(1.0 / rule.lam)
        bound = max(radius, 1.0)
    if not rule.robust:
        return 1.0 / (rule.lam * counted), radius, bound
    D_X = math.sqrt(radius * radius + bound * bound)
    D_G = math.sqrt(progress.square_norms[0] / min(j, D_G_SAMPLES) + 1.0)
    return D_X / (D_G * math.sqrt(counted)), radius, bound


@compiled
def _toward_tube(rule: StepRule, value: float, y: float, square_norm: float, eta: float) -> float:
    """d of regression: Table 1's -1 or 1, less where a whole step would cross the tube.

    eta |d| (||V||^2 + 1) is what the step changes at this sample; the 1 is the intercept's.
    """
    beyond = abs(y - value) - rule.epsilon
    if not beyond > 0.0:
        return 0.0
    needed = beyond / (eta * (square_norm + (1.0 if rule.robust else 0.0)))
    return float(math.copysign(min(1.0, needed), value - y))


@compiled
def _multiply_out(v: Float64Array, a: float, rest: Float64Array, scale_sum: float) -> None:
    """gamma = a v becomes v, its scale one; the window's sum A v moves into u."""
    if scale_sum != 0.0:
        _add(rest, v, scale_sum)
    for k in range(len(v)):
        v[k] *= a


@compiled
def _dot(x: Float64Array, z: Float64Array) -> float:
    total = 0.0
    for k in range(len(x)):
        total += x[k] * z[k]
    return total


@compiled
def _two_dots(x: Float64Array, z: Float64Array, w: Float64Array) -> tuple[float, float]:
    of_z, of_w = 0.0, 0.0
    for k in range(len(x)):
        of_z += x[k] * z[k]
        of_w += x[k] * w[k]
    return of_z, of_w


@compiled
def _add(z: Float64Array, x: Float64Array, part: float) -> None:
    for k in range(len(x)):
        z[k] += part * x[k]


@compiled
def _add_to_both(
    z: Float64Array, w: Float64Array, x: Float64Array, of_z: float, of_w: float
) -> None:
    for k in range(len(x)):
        z[k] += of_z * x[k]
        w[k] += of_w * x[k]
