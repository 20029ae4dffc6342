"""ASSET and ASSET*: stochastic subgradient steps on approximate features (P5 Algorithm 1).

    minimise  lambda/2 ||gamma||^2 + 1/m sum_i loss(y_i, V_i gamma + b)            (P5 PL)

    classification  max(1 - y (V gamma + b), 0)
    regression      max(|y - (V gamma + b)| - epsilon, 0)

Many classes are learned one-versus-rest with a common step length: function c has y = +1 for class
c. One more function has y = -1 for every sample, like that of a class that has not appeared yet; a
class that appears late starts with a copy of it. So every class has the function that it would have
if all classes had been known from the first sample on. A weight multiplies a sample's loss in all
iterates. Targets of regression are scaled (`rows.targets`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.features import FeatureKind, FeatureMap, expansion
from wolfstream.solver.asset.growing_features import GrowingFeatures
from wolfstream.solver.asset.nystrom import EIGENVALUE_CUT
from wolfstream.solver.asset.run import Run
from wolfstream.solver.asset.runs import Runs
from wolfstream.solver.asset.step_rules import Algorithm, Horizon, StepParameters, step_rules
from wolfstream.solver.asset.view import AssetView
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.labels import Task
from wolfstream.solver.rows.first_samples import FirstSamples
from wolfstream.solver.rows.matrix import Matrix, take_rows
from wolfstream.solver.rows.sample_weights import Weights, as_numbers, weights_of
from wolfstream.solver.rows.targets import TARGET_SAMPLES, TargetScale, check_targets, target_scale


class AssetAnswers(NamedTuple):
    """The predictions for n samples, each made just before the sample was learned."""

    # (n,) class numbers, -1 while fewer than two classes were known; in regression targets, NaN for
    # the first sample of the stream.
    prediction: NDArray[Any]
    # (n,) for at most two classes after the last sample, otherwise (n, classes); NaN while there
    # was no model yet. In regression the prediction.
    decision: Float64Array


def regression_answers(parts: list[Float64Array], untrained: bool) -> AssetAnswers:
    """Join predicted targets of consecutive parts.

    parts: (n, 1) each.
    untrained: whether there was no sample before.
    """
    values = np.concatenate(parts)[:, 0]
    values[: int(untrained)] = np.nan
    return AssetAnswers(values, values.copy())


def classification_answers(
    parts: list[Float64Array], y: NDArray[np.int64], n_before: int, n_classes: int
) -> AssetAnswers:
    """Join scores of consecutive parts.

    parts: (n, classes known by then) each.
    y: (n,) class numbers of all samples.
    n_before: how many classes were known before all samples.
    n_classes: how many are known after them.
    """
    n_known = np.maximum(np.maximum.accumulate(y) + 1, n_before)
    n_known = np.concatenate([[n_before], n_known])[:-1]
    scores = np.full((len(n_known), n_classes), np.nan)
    start = 0
    for part in parts:
        rows, columns = part.shape
        scores[start : start + rows, :columns] = part
        start += rows
    untrained = n_known < 2
    scores[np.arange(n_classes) >= n_known[:, None]] = np.nan
    prediction = np.full(len(scores), -1, np.int64)
    if n_classes <= 2:
        decision = scores[:, -1] if n_classes == 2 else np.full(len(scores), np.nan)
        prediction[~untrained] = decision[~untrained] > 0.0
        return AssetAnswers(prediction, np.where(untrained, np.nan, decision))
    scores[untrained] = np.nan
    prediction[~untrained] = np.nanargmax(scores[~untrained], axis=1)
    return AssetAnswers(prediction, scores)


class Asset:
    """ASSET or ASSET* on the features of a kernel, for a stream of samples.

    Nystrom's landmarks are the first s samples, and the learner predicts from the first sample on:
    at 2, 4, 8, ..., s samples the map is made of all of them and they are learned again in order;
    at s it is frozen, and only the landmarks are kept. The scale of the targets is determined in
    the same way, up to 128 samples. These points are counts of samples, so the division of the
    stream into calls does not matter, except for rounding: the last digits of a matrix product
    depend on its number of rows (the weights then differ by about 1e-9 of their size, and by a step
    if a margin is that close to 1). The same calls give the same bits.

    The memory is that of the map, and for each feature 24 bytes (asset*: 8) times the number of
    classes plus one, for streams of any length. A step costs O(D classes), with identity features
    of sparse rows O(nonzeros classes), in addition to the features.

    kernel: with a number as gamma.
    task, algorithm, lam, epsilon, average, average_from, horizon: see `step_rules.StepParameters`.
    features: "fourier" (rbf), "nystrom" (any kernel) or "identity" (linear: the rows themselves).
    dimension: the number of Fourier features or of Nystrom landmarks.
    seed: of the Fourier map.
    class_weight: weights > 0 by class number, which multiply those of the samples; further classes
        have weight 1.

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
        horizon: Horizon = None,
        seed: int = 0,
        class_weight: Sequence[float] = (),
    ) -> None:
        self.kernel = kernel
        self._rows = GrowingFeatures(features, kernel, dimension, seed)
        steps = StepParameters(task, algorithm, lam, epsilon, average, average_from, horizon)
        self.runs = Runs(step_rules(steps))
        self.parameters: dict[str, Any] = {
            "kernel": kernel,
            "features": features,
            "dimension": dimension,
            "seed": seed,
            **steps._asdict(),
        }
        self.class_weight = [float(weight) for weight in class_weight]
        if not all(weight > 0.0 for weight in self.class_weight):
            raise ValueError("class weights must be greater than zero")
        self._first = FirstSamples(
            dimension if features == "nystrom" else 0,
            TARGET_SAMPLES if self.regression else 0,
            settles_by_one=True,
        )
        self.n_classes = 0
        self.scale = TargetScale()
        self._forget()

    def _forget(self) -> None:
        """Return to step 0; the map and the scale of the targets are kept."""
        count = 1 if self.regression else self.n_classes + 1
        self.runs.begin(count, self._rows.width)

    @property
    def features(self) -> FeatureMap | None:
        """The feature map; None before any sample."""
        return self._rows.map

    @property
    def regression(self) -> bool:
        """Whether the task is regression."""
        return bool(self.parameters["task"] == "regression")

    @property
    def run(self) -> Run:
        """The run with the given horizon; with "auto" the one with the largest weight."""
        return self.runs.best

    @property
    def steps(self) -> int:
        """j, the number of samples learned."""
        return self.run.steps

    @property
    def frozen(self) -> bool:
        """Whether the feature map and the scale of the targets are final."""
        return self._first.settled

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays that the learner holds."""
        return self.runs.nbytes + self._first.nbytes + self._rows.nbytes

    def begin(self, X: Matrix, y: NDArray[Any], cut: float = EIGENVALUE_CUT) -> None:
        """Make the map and the targets' scale from these samples, and forget everything learned.

        They replace the first samples of the stream, and are not learned.

        X: (n, d) rows.
        y: (n,) class numbers or targets.
        cut: of Nystrom's eigenvalues (`asset.nystrom.nystrom_map`).
        """
        self._settle_on(X, y, cut)
        self._first.settle()
        self._forget()

    def absorb(self, X: Matrix, y: NDArray[Any], *, weight: Weights = None) -> AssetAnswers:
        """Take one step for each of n >= 0 samples in order.

        X: (n, d) finite rows.
        y: (n,) int64 class numbers, where a new class has the next number; or finite float64
            targets.
        weight: (n,) float64 sample weights > 0; None if all are 1.

        Raises TypeError for sparse rows after dense ones, or dense after sparse, and ValueError for
        targets beyond 1e100.
        """
        if self.regression:
            check_targets(y)
            untrained = self.steps == 0
            return regression_answers(self._learn_all(X, y, weight), untrained)
        n_before = self.n_classes
        return classification_answers(self._learn_all(X, y, weight), y, n_before, self.n_classes)

    def _learn_all(self, X: Matrix, y: NDArray[Any], weight: Weights) -> list[Float64Array]:
        """Learn rows and, while the learner settles, the first samples again; returns scores."""
        width = 1 if self.regression else self.n_classes
        scores = [np.empty((0, width))]
        for _, part in self._first.parts(X, y, weight):
            scores.append(self._learn(*part))
            if first := self._first.keep(part):
                self._settle_on(first.X, first.y[:TARGET_SAMPLES])
                self._forget()
                self._learn(*first)
        return scores

    def _settle_on(self, X: Matrix, y: NDArray[Any], cut: float = EIGENVALUE_CUT) -> None:
        """Make the feature map and the scale of the targets from first samples."""
        self._rows.make(X, cut)
        if self.regression:
            self.scale = target_scale(y)

    def _learn(self, X: Matrix, y: NDArray[Any], weight: Weights) -> Float64Array:
        """Take steps for rows in order; returns the scores before each, (n, classes)."""
        if self.features is None:
            self._settle_on(X, y[:TARGET_SAMPLES])
            self._forget()
        self.widen(X)
        if not self.regression:
            self.meet_classes(int(y.max()) + 1)
        return np.concatenate(
            [
                self.step(*self.features_of(take_rows(X, part)), y[part], weights_of(weight, part))
                for part in self._rows.blocks(X, len(y))
            ]
        )

    def widen(self, X: Matrix) -> None:
        """Append columns for new features of sparse rows."""
        self._rows.widen(X)
        self.runs.widen(self._rows.width)

    def features_of(self, X: Matrix) -> tuple[Float64Array, NDArray[np.int64] | None]:
        """Return the features of rows and their columns, the arguments of `step`."""
        return self._rows.transform(X)

    def step(
        self,
        V: Float64Array,
        columns: NDArray[np.int64] | None,
        y: NDArray[Any],
        weight: Weights = None,
    ) -> Float64Array:
        """Take a step for each of n rows of features.

        V: (n, D), or (n, columns) if columns are given.
        columns: of V, ascending; V is zero in others. None for all.
        y, weight: (n,) as in `absorb`.

        Returns the predictions before each step: (n, classes) scores, or (n, 1) targets.
        """
        if self.regression:
            centre, unit = self.scale
            target = (y - centre) / unit
            weights = as_numbers(weight, len(y))
            return centre + unit * self.runs.step(V, columns, target, weights, 1)
        self.meet_classes(int(y.max()) + 1)
        weights = as_numbers(weight, len(y))
        if self.class_weight:
            class_weights = np.ones(max(self.n_classes, len(self.class_weight)))
            class_weights[: len(self.class_weight)] = self.class_weight
            weights = weights * class_weights[y]
        return self.runs.step(V, columns, y.astype(np.float64), weights, self.n_classes)

    def meet_classes(self, count: int) -> None:
        """Add iterates for classes 0 to count - 1, before their first samples."""
        for _ in range(self.n_classes, count):
            self.runs.meet_class()
            self.n_classes += 1

    def view(self) -> AssetView:
        """Return an immutable view for predictions. Raises RuntimeError before any sample."""
        if self.features is None:
            raise RuntimeError("no sample has been absorbed yet")
        gamma, b = self.runs.averaged()
        model = self.features, gamma, b, expansion(self.features, gamma), self.n_classes
        return AssetView(self.parameters["task"], *model, *self.scale)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the plain arrays from which `restore` continues bit for bit."""
        arrays = {
            "counts": np.array([self.n_classes], np.int64),
            "target_scale": np.array(self.scale),
        }
        return self.runs.state() | arrays | self._rows.arrays() | self._first.state("")

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the state of a learner with the same parameters."""
        self.n_classes = int(state["counts"][0])
        self.scale = TargetScale(*(float(value) for value in state["target_scale"]))
        self.runs.restore(state)
        self._rows.restore(state)
        self._first.restore("", state)
