"""ASSET and ASSET*: stochastic subgradient steps on approximate features (P5 Algorithm 1).

    minimise  lambda/2 ||gamma||^2 + 1/m sum_i loss(y_i, V_i gamma + b)            (P5 PL)

    classification  max(1 - y (V gamma + b), 0)
    regression      max(|y - (V gamma + b)| - epsilon, 0)

Many classes are learned one-versus-rest with a common step length: machine c has y = +1 for
class c. One more machine has y = -1 for every sample, as any class would that has not been
met yet; a class that appears late starts as a copy of it. So every class has the machine that
it would have, had all classes been known from the first sample on.

Targets are taken as z = (y - centre) / unit, the mean and standard deviation of the first 128;
lambda and epsilon are those of z. In units of y, where the model is centre + unit (V gamma + b),
that is the problem of lambda / unit and epsilon unit, but for a factor. Raw targets would need
other parameters for every unit: with lambda = 1e-4 and epsilon = 0.1 (80% of the samples
shuffled, one pass, 256 landmarks; R^2 on the rest), house prices of 2e5 dollars have R^2 -0.00
raw and 0.73 scaled with features at unit variance, -0.01 and 0.25 with features as they are and
gamma from them; hourly counts of bicycles 0.34 and 0.56, 0.37 and 0.58; either set with targets
of 1e-3 learns nothing raw, for they lie within epsilon of zero, and the same as ever scaled.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.asset_steps import take_steps
from solver.asset_view import AssetAbsorbed, Task, answers_of
from solver.asset_view import AssetView as AssetView
from solver.asset_view import predict as predict
from solver.features import (
    Columns,
    FeatureKind,
    FeatureMap,
    IdentityMap,
    check_kernel,
    dimension_of,
    expansion,
    make_map,
    map_arrays,
    map_from_arrays,
    map_nbytes,
    transform,
    transform_present,
    widened,
)
from solver.first_samples import FirstSamples
from solver.kernels import Kernel
from solver.machines import Machines, averaged, mirror, no_machines, widened_machines
from solver.rows import Float64Array, Matrix, SparseRows, take_rows
from solver.subgradient import Algorithm, Progress, no_progress, step_rule

BLOCK_ROWS = 256
_FLOAT64 = np.dtype(np.float64)
# Of identity's sparse rows, whose block has a column for every feature of any of them.
SPARSE_BLOCK_ROWS = 64
# The targets' centre and unit are those of so many first samples.
TARGET_SAMPLES = 128
_LARGEST_TARGET = 1e100


class Asset:
    """ASSET or ASSET* on features of a kernel, for a stream of samples.

    task: "classification", of any number of classes, or "regression".
    algorithm: "asset": steps D_X / (D_G sqrt(j)), an intercept, averaged iterates. "asset*":
        steps 1 / (lambda j), neither; with identity features this is Pegasos.
    features: "fourier" (rbf), "nystrom" (any kernel) or "identity" (linear: the features are
        the rows). dimension: number of Fourier features, or of Nystrom's landmarks.
    lam: lambda > 0. epsilon: of regression, in units of the targets' standard deviation.
    average: False makes the last iterate the model. It is noisier, but follows a stream whose
        labels are like the ones before: on elec2, standardised, up to 92.6% of its predictions
        before learning are right, of an average over the last 1000 to 2000 iterates 77%.
    average_from: P5's N-bar. None averages a suffix of an endless stream: windows restart at
        steps 1, 2, 4, 8, ...; the model is the average, weighted by eta, over the present
        window and the one before, the last half to three quarters of all steps, and no
        iterate is stored.
    horizon: N, for streams that drift: steps never become shorter than that of step N, and
        from there on windows restart at the multiples of N (behind average_from, if that is
        given), so that the model is the average over the last N to 2N steps for ever. What
        theory then says of steps of constant length eta: the objective's average over a window
        comes within O(eta D_G^2 + D_X^2 / (eta N)) of the optimum and no closer, and against
        comparators that move by P in all within O((D_X^2 + D_X P) / (eta N) + eta D_G^2) a step.
    seed: of Fourier's map.

    Nystrom's landmarks are the first samples. The learner works from the first one on: at 2,
    4, 8, ..., s samples the map is made of all of them and they are learned again in their
    order; at s it is frozen and the landmarks alone stay. So it is with the targets' centre and
    unit, up to 128 samples. As these points are counts of samples, the cutting of the stream
    into calls does not matter, but for rounding: features come from matrix products, whose
    last digits depend on how many rows they have (as do then, by 1e-9 or so of their size,
    the weights; where a margin is within that of 1, a step more or less). The same calls give
    the same bits.

    Memory: the map, and 24 bytes for each feature of each class and of one class more (8 for
    asset*), whatever the stream's length. Identity has a feature for every number up to the
    largest that sparse rows have had, and up to a quarter more in advance. A step costs
    O(D classes), of identity's sparse rows O(nonzeros classes), besides the features.

    Raises ValueError for parameters that do not fit together.
    """

    def __init__(
        self,
        kernel: Kernel,
        *,
        task: Task = "classification",
        algorithm: Algorithm = "asset",
        features: FeatureKind = "fourier",
        dimension: int = 512,
        lam: float = 1e-4,
        epsilon: float = 0.1,
        average: bool = True,
        average_from: int | None = None,
        horizon: int | None = None,
        seed: int = 0,
    ) -> None:
        check_kernel(features, kernel)
        if task not in ("classification", "regression"):
            raise ValueError(f"task is {task!r}; it must be classification or regression")
        if dimension < 1:
            raise ValueError(f"dimension is {dimension}; it must be at least 1")
        regression = task == "regression"
        self.rule = step_rule(regression, algorithm, lam, epsilon, average, average_from, horizon)
        self.parameters: dict[str, Any] = {
            "kernel": kernel,
            "task": task,
            "algorithm": algorithm,
            "features": features,
            "dimension": dimension,
            "lam": lam,
            "epsilon": epsilon,
            "average": average,
            "average_from": average_from,
            "horizon": horizon,
            "seed": seed,
        }
        self.kernel, self.kind, self.dimension, self.seed = kernel, features, dimension, seed
        self._first = FirstSamples(
            dimension if features == "nystrom" else 0,
            TARGET_SAMPLES if regression else 0,
            settles_by_one=True,
        )
        self.n_classes = 0
        self.features: FeatureMap | None = None
        self.centre, self.unit = 0.0, 1.0
        self._forget()

    def _forget(self) -> None:
        """No steps; the map and the scale of targets stay."""
        regression = self.rule.regression
        count = 1 if regression else self.n_classes + 1
        width = 0 if self.features is None else dimension_of(self.features)
        self._machines = no_machines(count, width, self.rule.averages)
        self.progress = no_progress()

    @property
    def machines(self) -> Machines:
        """The iterates and their averages, of each class and of the unmet one."""
        if self.n_classes == 2:
            mirror(self._machines)
        return self._machines

    @machines.setter
    def machines(self, machines: Machines) -> None:
        self._machines = machines

    @property
    def steps(self) -> int:
        """j, the number of samples learned."""
        return int(self.progress.steps[0])

    @property
    def frozen(self) -> bool:
        """Whether the feature map and the scale of the targets are final."""
        return self._first.settled

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that the learner holds."""
        own = sum(array.nbytes for array in [*self._machines, *self.progress])
        features = 0 if self.features is None else map_nbytes(self.features)
        return own + self._first.nbytes + features

    def begin(self, X: Matrix, y: NDArray[Any], precision: np.dtype[Any] = _FLOAT64) -> None:
        """Take the map from these rows, and the targets' scale from these y of any number.

        They stand in for the stream's first samples. Nothing is learned of them, and what had
        been is forgotten.

        precision: float32 is for Nystrom features of the rbf kernel, at half the cost. Their
            rounding depends on the rows that are computed together, and a step at the edge of
            its loss with it: the cutting of the stream into calls then matters a little.
        """
        self._take_scales(X, y, precision)
        self._first.settle()
        self._forget()

    def absorb(self, X: Matrix, y: NDArray[Any]) -> AssetAbsorbed:
        """Take one step for each of (n, d) finite rows, n > 0, in order.

        y: (n,) int64 class numbers, a new class carrying the next one; or finite float64
        targets. Raises TypeError for sparse rows after dense ones, or the other way round, and
        ValueError for targets beyond 1e100.
        """
        known = self._known_before(y)
        said = []
        for _, rows, of_rows in self._first.parts(X, y):
            said.append(self._learn(rows, of_rows))
            if anew := self._first.keep(rows, of_rows):
                self._take_scales(*anew)
                self._forget()
                self._learn(*anew)
        if self.rule.regression:
            value = np.concatenate(said)[:, 0]
            value[: int(known[0] == 0)] = np.nan
            return AssetAbsorbed(value, value.copy())
        scores = np.full((len(y), self.n_classes), np.nan)
        start = 0
        for part_said in said:
            rows, columns = part_said.shape
            scores[start : start + rows, :columns] = part_said
            start += rows
        return answers_of(scores, known)

    def _known_before(self, y: NDArray[Any]) -> NDArray[np.int64]:
        """(n,) classes, or samples in regression, known before each sample; checks targets."""
        if self.rule.regression:
            largest = float(np.abs(y).max())
            if not largest <= _LARGEST_TARGET:
                raise ValueError(f"a target is {largest:.3g}: scale targets below 1e100")
            return self.steps + np.arange(len(y))
        known = np.maximum(np.maximum.accumulate(y) + 1, self.n_classes)
        return np.concatenate([[self.n_classes], known[:-1]])

    def _take_scales(self, X: Matrix, y: NDArray[Any], precision: np.dtype[Any] = _FLOAT64) -> None:
        """The feature map, and the targets' centre and unit, from first samples."""
        self.features = make_map(self.kind, self.kernel, X, self.dimension, self.seed, precision)
        if self.rule.regression:
            self.centre, self.unit = _centre_and_unit(y[:TARGET_SAMPLES])

    def _learn(self, X: Matrix, y: NDArray[Any]) -> Float64Array:
        """Steps for rows in order; returns what was said before each, (n, classes)."""
        if self.features is None:
            self._take_scales(X, y)
            self._forget()
        self.widen(X)
        if not self.rule.regression:
            self.meet_classes(int(y.max()) + 1)
        by_columns = self.kind == "identity" and isinstance(X, SparseRows)
        rows = SPARSE_BLOCK_ROWS if by_columns else BLOCK_ROWS
        blocks = [slice(start, start + rows) for start in range(0, len(y), rows)]
        return np.concatenate(
            [self.step(*self.features_of(take_rows(X, part)), y[part]) for part in blocks]
        )

    def widen(self, X: Matrix) -> None:
        """Have columns for all features of sparse rows."""
        assert self.features is not None
        self.features = widened(self.features, X)
        self._machines = widened_machines(self._machines, dimension_of(self.features))

    def features_of(self, X: Matrix) -> tuple[Float64Array, Columns | None]:
        """(V, columns) of rows for `step`.

        Identity of sparse rows leaves out columns without an entry; otherwise columns is None.
        """
        if isinstance(self.features, IdentityMap) and isinstance(X, SparseRows):
            return transform_present(self.features, X)
        assert self.features is not None
        return transform(self.features, X), None

    def step(self, V: Float64Array, columns: Columns | None, y: NDArray[Any]) -> Float64Array:
        """The steps for the features (n, D) or (n, columns) of n rows, y as in `absorb`.

        Returns what the model said before each: (n, classes) scores, or (n, 1) values.
        """
        if self.rule.regression:
            target, scores = (y - self.centre) / self.unit, np.empty((len(y), 1))
        else:
            self.meet_classes(int(y.max()) + 1)
            target, scores = y.astype(np.float64), np.empty((len(y), self.n_classes))
        take_steps(self._machines, V, columns, target, self.rule, self.progress, scores)
        return self.centre + self.unit * scores if self.rule.regression else scores

    def meet_classes(self, count: int) -> None:
        """Have machines for so many classes, before their samples come.

        The machine of the unmet class becomes a new class's; a copy of it stays last.
        """
        for _ in range(self.n_classes, count):
            m = self.machines
            fields = [np.concatenate([field, field[-1:]]) for field in m[:-1]]
            self._machines = Machines(*[*fields, m.weight])
            self.n_classes += 1

    def view(self) -> AssetView:
        """The model for predictions by other threads. Raises RuntimeError before any sample."""
        if self.features is None:
            raise RuntimeError("no sample has been absorbed yet")
        gamma, b = averaged(self.machines)
        if not self.rule.regression:
            gamma, b = gamma[:-1], b[:-1]
        coefficients = expansion(self.features, gamma)
        return AssetView(
            self.parameters["task"],
            self.features,
            gamma,
            b,
            coefficients,
            self.n_classes,
            self.centre,
            self.unit,
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """All that `restore` needs to go on bit for bit, as plain arrays."""
        arrays = {name: array.copy() for name, array in self.machines._asdict().items()}
        arrays |= {f"progress_{name}": a.copy() for name, a in self.progress._asdict().items()}
        arrays["counts"] = np.array([self.n_classes], np.int64)
        arrays["target_scale"] = np.array([self.centre, self.unit])
        if self.features is not None:
            arrays |= map_arrays(self.features)
        return arrays | self._first.state("")

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state of a learner with the same parameters."""
        self.n_classes = int(state["counts"][0])
        self.centre, self.unit = (float(value) for value in state["target_scale"])
        self.machines = Machines(*(np.array(state[name]) for name in Machines._fields))
        self.progress = Progress(
            *(np.array(state[f"progress_{name}"]) for name in Progress._fields)
        )
        self.features = map_from_arrays(self.kind, self.kernel, self.seed, state)
        self._first.restore("", state)


def _centre_and_unit(y: Float64Array) -> tuple[float, float]:
    """Mean and standard deviation, 1 where all are equal; nothing overflows up to 1e100."""
    centre = float(y.mean())
    unit = float(y.std())
    return centre, unit if unit > 0.0 else 1.0
