"""Robust stochastic subgradient steps: ASSET and ASSET* (P5 Algorithm 1, lines 3-10, Table 1).

    eta = D_X / (D_G sqrt(j)), asset*: 1 / (lambda j)
    gamma <- P((1 - eta lambda) gamma - eta d V),  b <- P(b - eta d)

The projection P is onto the feasible set ||gamma|| <= R, |b| <= B. With alpha = beta / (lambda m),
|beta_i| <= 1, the optimum has the dual value
lambda ||gamma||^2 + mean loss = mean (y_i beta_i - epsilon |beta_i|). So in regression
lambda ||gamma||^2 <= mean max(|y| - epsilon, 0), half of P5's bound and with the mean in place of
the maximum; the mean is that of the samples so far, because the targets of a stream are not known
in advance. For hinge loss it is P5's bound, lambda ||gamma||^2 <= 1. B is R, but at least 1 for
hinge loss and 2 mean |y|, a bound of the median, in regression: the best constant must be feasible.

D_G^2 = mean ||V||^2 + 1 takes d^2 = 1 for all samples, as for hinge at the first iterate. In
regression P5 would take d = 0 for targets within epsilon of zero, but later iterates are not at
zero: this mean bounds E||G||^2 everywhere and is never zero.

The loss of a sample of weight w is multiplied by w, and so is its subgradient d V. Then |beta_i| is
at most w_i, so that the bounds above hold with the mean of w_i times their terms (for hinge loss
with the mean weight in place of 1), 2 mean w |y| / mean w bounds the median, and D_G^2 is
mean w^2 (||V||^2 + 1).

In regression a step ends at the edge of the tube around its sample. This is the proximal step on
max(loss + G'(x - x_j), 0), a lower bound of the loss like that of the subgradient, but tighter; the
inequality of the robust analysis holds for it. P5's whole steps begin with the length D_X: at
lambda = 1e-4 their predictions are useless for a thousand samples. On California housing R^2 of
predictions before learning is -130 on the first 128 samples with whole steps and 0.29 with these;
`benchmarks/README.md` has the table.
"""

import math
from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.iterates import Iterates
from wolfstream.solver.compiled import compiled, inner, larger, smaller

# D_G is the running estimate over the first samples (P5's M), then frozen.
D_G_SAMPLES = 128
# The iterate is multiplied out when its scale leaves [1/_LARGEST_SCALE, _LARGEST_SCALE], which
# bounds the digits that cancel in A v + u to three of sixteen.
_LARGEST_SCALE = 1e3


class StepRule(NamedTuple):
    """The constants of the steps."""

    # lambda.
    lam: float
    # Whether one function has the epsilon-insensitive loss, instead of one-versus-rest functions
    # with hinge loss.
    regression: bool
    epsilon: float
    # Whether it is ASSET; ASSET* has no intercept.
    robust: bool
    # Whether the model is an average of iterates rather than the last one.
    averages: bool
    # N-bar; 0 averages over windows.
    average_from: int
    # No step is shorter than the step of this number.
    horizon: float


class Progress(NamedTuple):
    """Statistics of the stream on which the step lengths depend, (1,) each."""

    # j.
    steps: Float64Array
    # The sum of w^2 ||V||^2 over the first 128 samples.
    square_norms: Float64Array
    # In regression the mean of w max(|y| - epsilon, 0), the loss of the zero model.
    loss: Float64Array
    # In regression the mean of w |y|.
    target: Float64Array
    # The mean of w.
    weight: Float64Array
    # The mean of w^2 over the first 128 samples.
    square_weight: Float64Array


def no_progress() -> Progress:
    """Return the statistics before the first step."""
    return Progress(*(np.zeros(1) for _ in Progress._fields))


@compiled
def walk(
    iterates: Iterates,
    V: Float64Array,
    y: Float64Array,
    weights: Float64Array,
    rule: StepRule,
    progress: Progress,
    scores: Float64Array,
) -> None:
    """Take a step for each row of V in order (P5 Algorithm 1, lines 3-10).

    The norm follows from ||gamma - s V||^2 = ||gamma||^2 - 2 s V gamma + s^2 ||V||^2 for the shrunk
    gamma. With two classes the first iterate is the mirror image of the second and is skipped
    (`iterates.mirror`).

    V: (n, D) features.
    y: (n,) class numbers or scaled targets.
    weights: (n,) sample weights.
    scores: (n, classes), or (n, 1) in regression; overwritten with the predictions before each
        step. One-versus-rest has one iterate more than columns, with y = -1 for all samples.
    """
    classes = scores.shape[1]
    mirrored = classes == 2 and not rule.regression
    count = 1 if rule.regression else classes + 1
    # Functions get rows, because passing a tuple of arrays costs more than 500 products.
    direction, scale, b = iterates.direction, iterates.scale, iterates.b
    rest = iterates.rest if rule.averages else direction
    scale_sum, b_sum, weight = iterates.scale_sum, iterates.b_sum, iterates.weight
    iterates.moved[:], iterates.factor[:] = 0.0, 1.0
    for i in range(len(V)):
        V_i, w = V[i], weights[i]
        square_norm = _dot(V_i, V_i)
        eta, radius, bound = _step_length(rule, progress, square_norm, y[i], w)
        total = weight[0] + weight[1]
        averaging = rule.averages and progress.steps[0] >= rule.average_from
        shrink = 1.0 - eta * rule.lam
        for c in range(1 if mirrored else 0, count):
            v, rest_c = direction[c], rest[c]
            if rule.averages and c < classes:
                product, summed = _two_dots(V_i, v, rest_c)
                summed += scale_sum[c] * product + b_sum[c] + iterates.b_before[c]
                scores[i, c] = summed / total if total > 0.0 else 0.0
            else:
                product = _dot(V_i, v)
                if c < classes:
                    scores[i, c] = scale[c] * product + b[c]
            value = scale[c] * product + b[c]
            if rule.regression:
                d = _toward_tube(rule, value, y[i], w, square_norm, eta)
            else:
                sign = 1.0 if y[i] == c else -1.0
                d = -sign * w if sign * value < 1.0 else 0.0
            a = shrink * scale[c]
            square = shrink * shrink * iterates.square_norm[c]
            if not 1.0 / _LARGEST_SCALE <= abs(a) <= _LARGEST_SCALE:
                _multiply_out(v, a, rest_c, scale_sum[c])
                iterates.moved[c] += iterates.factor[c] * scale_sum[c]
                iterates.factor[c] *= a
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
            scale[c], iterates.square_norm[c] = a, larger(square, 0.0)
            if rule.robust:
                b[c] = smaller(larger(b[c] - eta * d, -bound), bound)
            if averaging:
                scale_sum[c] += eta * a
                b_sum[c] += eta * b[c]
        if averaging:
            weight[0] += eta
        if mirrored:
            scores[i, 0] = -scores[i, 1]


@inner
def _step_length(
    rule: StepRule, progress: Progress, square_norm: float, y: float, w: float
) -> tuple[float, float, float]:
    """Count a step; returns its eta and the bounds of ||gamma|| and |b|."""
    j = progress.steps[0] + 1.0
    if j <= D_G_SAMPLES:
        progress.square_norms[0] += w * w * square_norm
        progress.square_weight[0] += (w * w - progress.square_weight[0]) / j
    progress.steps[0] = j
    counted = smaller(j, rule.horizon)
    progress.weight[0] += (w - progress.weight[0]) / counted
    if rule.regression:
        loss = w * larger(abs(y) - rule.epsilon, 0.0)
        progress.loss[0] += (loss - progress.loss[0]) / counted
        progress.target[0] += (w * abs(y) - progress.target[0]) / counted
        radius = math.sqrt(progress.loss[0] / rule.lam)
        bound = larger(radius, 2.0 * progress.target[0] / progress.weight[0])
    else:
        radius = math.sqrt(progress.weight[0] / rule.lam)
        bound = larger(radius, 1.0)
    if not rule.robust:
        return 1.0 / (rule.lam * counted), radius, bound
    D_X = math.sqrt(radius * radius + bound * bound)
    mean = progress.square_norms[0] / smaller(j, float(D_G_SAMPLES))
    D_G = math.sqrt(mean + progress.square_weight[0])
    return D_X / (D_G * math.sqrt(counted)), radius, bound


@inner
def _toward_tube(
    rule: StepRule, value: float, y: float, w: float, square_norm: float, eta: float
) -> float:
    """Return d of regression: -w or w (P5 Table 1), less if the step would cross the tube.

    The step changes the value at this sample by eta |d| (||V||^2 + 1), with 1 for the intercept.
    """
    beyond = abs(y - value) - rule.epsilon
    if not beyond > 0.0:
        return 0.0
    needed = beyond / (eta * (square_norm + (1.0 if rule.robust else 0.0)))
    return float(math.copysign(smaller(w, needed), value - y))


@inner
def _multiply_out(v: Float64Array, a: float, rest: Float64Array, scale_sum: float) -> None:
    """v <- a v, so that the scale becomes one; the window's sum A v moves into u."""
    if scale_sum != 0.0:
        _add(rest, v, scale_sum)
    for k in range(len(v)):
        v[k] *= a


@inner
def _dot(x: Float64Array, z: Float64Array) -> float:
    total = 0.0
    for k in range(len(x)):
        total += x[k] * z[k]
    return total


@inner
def _two_dots(x: Float64Array, z: Float64Array, w: Float64Array) -> tuple[float, float]:
    z_dot, w_dot = 0.0, 0.0
    for k in range(len(x)):
        z_dot += x[k] * z[k]
        w_dot += x[k] * w[k]
    return z_dot, w_dot


@inner
def _add(z: Float64Array, x: Float64Array, part: float) -> None:
    for k in range(len(x)):
        z[k] += part * x[k]


@inner
def _add_to_both(
    z: Float64Array, w: Float64Array, x: Float64Array, z_factor: float, w_factor: float
) -> None:
    for k in range(len(x)):
        z[k] += z_factor * x[k]
        w[k] += w_factor * x[k]
