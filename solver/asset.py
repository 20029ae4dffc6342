"""ASSET: robust stochastic subgradient steps on random features (P5 Algorithm 1).

    minimise  lambda/2 ||gamma||^2 + 1/m sum_i max(1 - y_i (V_i gamma + b), 0)   (P5 PL)

Many classes are learned one-versus-rest with a common step length: machine c has y = +1 for
class c. One more machine has y = -1 for every sample, as any class would that has not been
met yet; a class that appears late starts as a copy of it. So every class has the machine that
it would have, had all classes been known from the first sample on.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.compiled import compiled
from solver.fourier import FourierMap, fourier_features, fourier_map, widened
from solver.rows import Float64Array, Matrix, origin_of, take_rows

BLOCK_ROWS = 256
# D_G is the running estimate over the first samples (P5's M), then frozen.
_D_G_SAMPLES = 128
# What a state keeps of the feature map; gamma and the seed are the learner's parameters.
_MAP_ARRAYS = ("frequency", "phase", "origin")


class AssetAbsorbed(NamedTuple):
    """What the averaged model said of each sample just before learning it.

    prediction: (n,) class numbers; -1 while fewer than two classes were known.
    decision: (n,) for at most two classes after the last sample, otherwise (n, classes); NaN
        where there was nothing to say yet.
    """

    prediction: NDArray[np.int64]
    decision: Float64Array


class Machines(NamedTuple):
    """The iterates of all machines; row c is class c, the last row in use the unmet class.

    gamma, b: the iterate (gamma_j, b_j) of P5.
    average, average_b: eta-weighted average of the present window.
    previous, previous_b: that of the window before.
    weight: (2,) the sums of eta of both windows (P5's eta-tilde).
    """

    gamma: Float64Array
    b: Float64Array
    average: Float64Array
    average_b: Float64Array
    previous: Float64Array
    previous_b: Float64Array
    weight: Float64Array


class StepRule(NamedTuple):
    """Constants of Algorithm 1.

    lam: lambda. radius: bound of ||gamma|| and of |b|, 1 / sqrt(lambda). D_X: the largest norm
    in the feasible set, sqrt(2 / lambda). average_from: N-bar, the first step that is averaged;
    0 means windows that restart at every power of two.
    """

    lam: float
    radius: float
    D_X: float
    average_from: int


class AssetView(NamedTuple):
    """An immutable picture: the feature map and the averaged (gamma, b) of each class."""

    features: FourierMap
    gamma: Float64Array
    b: Float64Array
    n_classes: int


class Asset:
    """ASSET with Fourier features for any number of classes.

    gamma: of the rbf kernel. dimension: number D of features. lam: lambda.
    average_from: P5's N-bar. None averages a suffix of an endless stream: windows restart at
        steps 1, 2, 4, 8, ...; the model is the average over the present window and the one
        before, the last half to three quarters of all steps, and no iterate is stored.
    seed: of the feature map.
    """

    def __init__(
        self,
        gamma: float,
        dimension: int = 512,
        lam: float = 1e-4,
        average_from: int | None = None,
        seed: int = 0,
    ) -> None:
        self.gamma, self.dimension, self.seed = gamma, dimension, seed
        # |b| <= 1/sqrt(lambda) is "sufficiently large": b moves by eta d like gamma does, and
        # |V gamma| <= sqrt(2)/sqrt(lambda) is all that an intercept could have to balance.
        first = 0 if average_from is None else max(1, average_from)
        self.rule = StepRule(lam, 1.0 / math.sqrt(lam), math.sqrt(2.0 / lam), first)
        self.n_classes = 0
        self.steps = 0
        self.square_norm_sum = 0.0
        self.features: FourierMap | None = None
        self.machines = _no_machines(dimension)

    def absorb(self, X: Matrix, codes: NDArray[np.int64]) -> AssetAbsorbed:
        """Take one step for each of (n, d) finite rows with class numbers (n,), in order.

        A new class must carry the next number. Raises TypeError for sparse rows after dense
        ones, or the other way round.
        """
        if self.features is None:
            self.features = fourier_map(self.gamma, origin_of(X), self.dimension, self.seed)
        self.features = widened(self.features, X)
        known = np.maximum(np.maximum.accumulate(codes) + 1, self.n_classes)
        known = np.concatenate([[self.n_classes], known[:-1]])
        while self.n_classes <= codes.max():
            self._meet_class()
        scores = np.full((len(codes), self.n_classes), np.nan)
        for start in range(0, len(codes), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            self._absorb_block(take_rows(X, part), codes[part], scores[part])
        return _answers(scores, known)

    def _absorb_block(self, X: Matrix, codes: NDArray[np.int64], scores: Float64Array) -> None:
        assert self.features is not None
        V = fourier_features(self.features, X)
        state = np.array([float(self.steps), self.square_norm_sum])
        _walk(self.machines, V, codes, self.n_classes, self.rule, state, scores)
        self.steps, self.square_norm_sum = int(state[0]), float(state[1])

    def _meet_class(self) -> None:
        """The machine of the unmet class becomes the new class's; a copy of it stays last."""
        m, unmet = self.machines, self.n_classes
        grown = [np.concatenate([field, field[unmet : unmet + 1]]) for field in m[:-1]]
        self.machines = Machines(*[*grown, m.weight])
        self.n_classes += 1

    def view(self) -> AssetView:
        """The averaged model for predictions by other threads."""
        if self.features is None:
            raise RuntimeError("no sample has been absorbed yet")
        m, c = self.machines, self.n_classes
        total = m.weight.sum()
        present, before = (m.weight / total) if total > 0.0 else (1.0, 0.0)
        return AssetView(
            self.features,
            present * m.average[:c] + before * m.previous[:c],
            present * m.average_b[:c] + before * m.previous_b[:c],
            c,
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """All that `restore` needs to go on bit for bit, as plain arrays."""
        counts = np.array([self.n_classes, self.steps], np.int64)
        arrays = {name: array.copy() for name, array in self.machines._asdict().items()}
        arrays |= {"counts": counts, "square_norm_sum": np.array([self.square_norm_sum])}
        if self.features is not None:
            arrays |= {name: getattr(self.features, name) for name in _MAP_ARRAYS}
        return arrays

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state of a learner with the same parameters."""
        self.n_classes, self.steps = (int(count) for count in state["counts"])
        self.square_norm_sum = float(state["square_norm_sum"][0])
        self.machines = Machines(*(np.array(state[name]) for name in Machines._fields))
        if "frequency" in state:
            frequency, phase, origin = (np.array(state[name]) for name in _MAP_ARRAYS)
            self.features = FourierMap(frequency, phase, origin, self.gamma, self.seed)


def predict(view: AssetView, X: Matrix) -> tuple[NDArray[np.int64], Float64Array]:
    """Class numbers (n,) and decisions V gamma + b: (n,) for two classes, else (n, classes).

    O(n d D), without training samples (P5 section 2.4). Raises ValueError while fewer than
    two classes are known.
    """
    if view.n_classes < 2:
        raise ValueError("a prediction needs two classes")
    scores = fourier_features(view.features, X) @ view.gamma.T + view.b
    if view.n_classes == 2:
        return (scores[:, 1] > 0.0).astype(np.int64), scores[:, 1]
    return np.argmax(scores, axis=1), scores


def _no_machines(dimension: int) -> Machines:
    """Only the unmet class's machine, at zero."""
    row, scalar = np.zeros((1, dimension)), np.zeros(1)
    return Machines(row, scalar, row.copy(), scalar.copy(), row.copy(), scalar.copy(), np.zeros(2))


def _answers(scores: Float64Array, known: NDArray[np.int64]) -> AssetAbsorbed:
    untrained = known < 2
    scores[np.arange(scores.shape[1]) >= known[:, None]] = np.nan
    said = np.full(len(scores), -1, np.int64)
    if scores.shape[1] <= 2:
        decision = scores[:, -1] if scores.shape[1] == 2 else np.full(len(scores), np.nan)
        said[~untrained] = decision[~untrained] > 0.0
        return AssetAbsorbed(said, np.where(untrained, np.nan, decision))
    scores[untrained] = np.nan
    said[~untrained] = np.nanargmax(scores[~untrained], axis=1)
    return AssetAbsorbed(said, scores)


@compiled
def _walk(
    machines: Machines,
    V: Float64Array,
    codes: NDArray[np.int64],
    n_classes: int,
    rule: StepRule,
    state: Float64Array,
    scores: Float64Array,
) -> None:
    """P5 Algorithm 1, lines 2-11, for each row of V in order; state = (steps, sum ||V||^2)."""
    for i in range(V.shape[0]):
        steps = state[0]
        for c in range(n_classes):
            scores[i, c] = _average_decision(machines, c, V[i])
        if steps < _D_G_SAMPLES:
            state[1] += _dot(V[i], V[i])
        # D_G^2 = mean d^2 (||V||^2 + 1), where d^2 = 1 at the first iterate (0, 0).
        D_G = math.sqrt(state[1] / min(steps + 1.0, _D_G_SAMPLES) + 1.0)
        j = steps + 1.0
        eta = rule.D_X / (D_G * math.sqrt(j))
        averaging = j >= rule.average_from
        if rule.average_from == 0 and _is_power_of_two(int(j)):
            _next_window(machines)
        for c in range(n_classes + 1):
            y = 1.0 if codes[i] == c else -1.0
            _step(machines, c, V[i], y, eta, rule)
            if averaging:
                _average(machines, c, eta)
        if averaging:
            machines.weight[0] += eta
        state[0] = j


@compiled
def _step(
    machines: Machines, c: int, V_i: Float64Array, y: float, eta: float, rule: StepRule
) -> None:
    """(gamma, b) <- Pi_X((gamma, b) - eta (lambda gamma + d V', d)), P5 lines 6-7 and Table 1."""
    gamma = machines.gamma[c]
    d = -y if y * (_dot(V_i, gamma) + machines.b[c]) < 1.0 else 0.0
    shrink = 1.0 - eta * rule.lam
    square_norm = 0.0
    for k in range(len(V_i)):
        gamma[k] = shrink * gamma[k] - eta * d * V_i[k]
        square_norm += gamma[k] * gamma[k]
    if square_norm > rule.radius * rule.radius:
        scale = rule.radius / math.sqrt(square_norm)
        for k in range(len(V_i)):
            gamma[k] *= scale
    machines.b[c] = min(max(machines.b[c] - eta * d, -rule.radius), rule.radius)


@compiled
def _average(machines: Machines, c: int, eta: float) -> None:
    """P5 line 9: the average moves by eta / (eta-tilde + eta) toward the iterate."""
    share = eta / (machines.weight[0] + eta)
    average, gamma = machines.average[c], machines.gamma[c]
    for k in range(len(gamma)):
        average[k] += share * (gamma[k] - average[k])
    machines.average_b[c] += share * (machines.b[c] - machines.average_b[c])


@compiled
def _average_decision(machines: Machines, c: int, V_i: Float64Array) -> float:
    present, before = machines.weight[0], machines.weight[1]
    if present + before == 0.0:
        return 0.0
    of_present = _dot(V_i, machines.average[c]) + machines.average_b[c]
    of_before = _dot(V_i, machines.previous[c]) + machines.previous_b[c]
    return float((present * of_present + before * of_before) / (present + before))


@compiled
def _next_window(machines: Machines) -> None:
    machines.previous[:] = machines.average
    machines.previous_b[:] = machines.average_b
    machines.average[:] = 0.0
    machines.average_b[:] = 0.0
    machines.weight[1] = machines.weight[0]
    machines.weight[0] = 0.0


@compiled
def _dot(a: Float64Array, b: Float64Array) -> float:
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@compiled
def _is_power_of_two(j: int) -> bool:
    return j & (j - 1) == 0
