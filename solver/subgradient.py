"""The steps of ASSET and ASSET* in compiled code (P5 Algorithm 1, lines 3-10, and Table 1).

Feasible sets: ||gamma|| <= R, |b| <= B. With alpha = beta / (lambda m), |beta_i| <= 1, the optimum
has the dual value  lambda ||gamma||^2 + mean loss = mean (y_i beta_i - epsilon |beta_i|), and so
lambda ||gamma||^2 <= mean max(|y| - epsilon, 0) in regression, half of P5's bound and with the
mean in place of the maximum; the mean is that of the samples so far, as the targets of a stream
are not known beforehand. For hinge it is lambda ||gamma||^2 <= 1, P5's bound. B is R, but at
least what the best constant needs: 1 for hinge, and 2 mean |y|, which bounds the median.

D_G^2 = mean ||V||^2 + 1 takes d^2 = 1 for all samples. So it is for hinge at the first iterate;
in regression P5 would take d = 0 for targets within epsilon of zero, though later iterates are
not at zero: the mean bounds E||G||^2 everywhere, and is never zero.

In regression a step ends at the edge of the tube around its sample. This is the proximal step on
max(loss + G'(x - x_j), 0), which bounds the loss from below as the subgradient alone does, but
closer; the inequality from which the robust analysis follows holds for it. P5's whole steps begin
as long as D_X: at lambda = 1e-4 they say nothing useful for a thousand samples. R^2 of
predictions before learning, on samples 1-128, 129-1000, 1001-4000 and later, and of the model
after one pass (80% of the samples shuffled, features at unit variance, 256 landmarks):

    California housing, whole steps   -130, -4.9, 0.15, 0.67; 0.72
                        these         0.29, 0.60, 0.71, 0.70; 0.73
    bike sharing, whole steps         -88, -4.3, -0.06, 0.49; 0.56
                  these               0.33, 0.44, 0.52, 0.55; 0.58
"""

import math
from typing import Literal, NamedTuple

import numpy as np

from solver.compiled import compiled
from solver.machines import Machines
from solver.rows import Float64Array

Algorithm = Literal["asset", "asset*"]
# D_G is the running estimate over the first samples (P5's M), then frozen.
D_G_SAMPLES = 128
# The iterate is multiplied out when its scale leaves [1/_LARGEST_SCALE, _LARGEST_SCALE]: so many
# of a number's 1e16 places may be lost to the difference A v + u, and no more.
_LARGEST_SCALE = 1e3


class StepRule(NamedTuple):
    """Constants of the steps.

    lam: lambda. regression: epsilon-insensitive loss of a single machine in place of hinge
    losses one-versus-rest. epsilon: of that loss. robust: ASSET; otherwise ASSET*, without
    intercept. averages: the model is an average of iterates, not the last one. average_from:
    N-bar; from 0 on all steps are averaged. horizon: no step is shorter than that of this number.
    """

    lam: float
    regression: bool
    epsilon: float
    robust: bool
    averages: bool
    average_from: int
    horizon: float


def step_rule(
    regression: bool,
    algorithm: Algorithm,
    lam: float,
    epsilon: float,
    average: bool,
    average_from: int | None,
    horizon: int | None,
) -> StepRule:
    """The rule of `solver.asset.Asset`'s parameters. Raises ValueError for what is none."""
    if algorithm not in ("asset", "asset*"):
        raise ValueError(f"algorithm is {algorithm!r}; it must be asset or asset*")
    if not 0.0 < lam < math.inf:
        raise ValueError(
            f"lam is {lam}; it must be a finite number above zero: the steps of asset* are "
            "1 / (lam j), and those of asset as long as the feasible set is wide, 1 / sqrt(lam)"
        )
    if not 0.0 <= epsilon < math.inf:
        raise ValueError(f"epsilon is {epsilon}; it must be a finite number, at least zero")
    for name, count in {"average_from": average_from, "horizon": horizon}.items():
        if count is not None and count < 1:
            raise ValueError(f"{name} is {count}; it must be at least 1")
    robust = algorithm == "asset"
    if not robust and average_from is not None:
        raise ValueError("asset* does not average: leave average_from out")
    averages, first = robust and average, average_from or 0
    return StepRule(lam, regression, epsilon, robust, averages, first, horizon or math.inf)


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
    machines.moved[:], machines.factor[:] = 0.0, 1.0
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
