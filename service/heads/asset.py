"""ASSET as a head of classes or of numbers: subgradient steps on approximate features (P5)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.heads.classification import ClassificationHead
from wolfstream.service.heads.exercises import exercise
from wolfstream.service.heads.kernel import check_norms
from wolfstream.service.heads.kind import Kind, TrainingChoice
from wolfstream.service.heads.new_head import new_head
from wolfstream.service.heads.online_learner import (
    COST_OF_DECISION,
    COST_OF_FUNCTION,
    COST_OF_ROW,
    Batch,
    HeadLearner,
    WithoutMembers,
    cost_of_products,
    new_class_bytes,
)
from wolfstream.service.heads.regression import RegressionHead
from wolfstream.service.heads.saved_arrays import (
    ANY,
    COUNT,
    FROM_ZERO,
    POSITIVE,
    SUM,
    WIDTH,
    Arrays,
    Bounds,
    SavedHead,
    check_counts,
    check_floats,
    check_numbers,
    check_shape,
    n_saved_rows,
    require,
    shape_of,
)
from wolfstream.service.heads.saved_rows import check_rows
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.spec.working_set import weights_by_label
from wolfstream.solver.adaptive.gradients import Gradient
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.features import dimension_of
from wolfstream.solver.asset.identity import IdentityMap
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.nystrom import NystromMap
from wolfstream.solver.asset.view import AssetView
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.labels import Label, key_of
from wolfstream.solver.rows.answers import Answer
from wolfstream.solver.rows.matrix import Matrix, n_rows
from wolfstream.solver.stream.paper_learners import AssetLearnerView, new_asset
from wolfstream.solver.stream.parameters import AssetParameters

# Not every larger integer is a 64-bit float.
_LARGEST_COUNT = 2.0**53
_ITERATE_SUMS = ("rest", "before")
_ITERATE_NUMBERS = (
    *("scale", "square_norm", "b", "scale_sum", "b_sum", "b_before", "moved", "factor"),
)
_PROGRESS = tuple(
    f"progress_{name}"
    for name in ("steps", "square_norms", "loss", "target", "weight", "square_weight")
)

ASSET_NUMBERS: Bounds = (
    (r"(course\d+_)?progress_steps", COUNT),
    (r"(course\d+_)?(progress_\w+|square_norm|weight)", FROM_ZERO),
    (r"(course\d+_)?(direction|rest|before|b|b_sum|b_before|scale|scale_sum|moved|factor)", SUM),
    (r"lost", FROM_ZERO),
    (r"auto_gamma", WIDTH),
    (r"target_scale", (ANY, POSITIVE)),
)


def check_asset(saved: SavedHead) -> None:
    """Raise WrongArrays unless the iterates of a head fit its feature map and its rows."""
    check_rows(saved)
    if "direction" in saved.arrays:
        _check_iterates(saved.arrays, saved.blank, saved.n_classes, saved.dimension)
        _check_kind_of_rows(saved.arrays, saved.sparse)


def _check_iterates(
    arrays: Arrays, empty: Arrays, n_classes: int | None, dimension: int | None
) -> None:
    """Check the iterates, one for each class, and the feature map."""
    check_counts(arrays, 1, n_classes if n_classes is not None else 0)
    require(shape_of("direction", arrays)[:1] != (), "direction", "has no iterates")
    iterates, width = (*shape_of("direction", arrays), 0)[:2]
    require(iterates > int(arrays["counts"][0]), "direction", "has too few iterates")
    runs = [name.removesuffix("direction") for name in empty if name.endswith("direction")]
    for run in runs:
        _check_run(run, arrays, empty, (iterates, width))
    if "lost" in empty:
        check_shape("lost", arrays, (len(runs),))
        check_floats("lost", arrays)
    check_shape("target_scale", arrays, (2,))
    check_floats("target_scale", arrays)
    if "frequency" in arrays:
        # The map has spare rows for features that may come.
        check_shape("frequency", arrays, (None, width))
        check_shape("phase", arrays, (width,))
    if "whitening" in arrays:
        landmarks = n_saved_rows("landmarks", arrays)
        check_shape("whitening", arrays, (landmarks, width))
        check_floats("whitening", arrays)
    if "width" in arrays:
        check_shape("width", arrays, (2,))
        check_numbers("width", arrays, None)
        columns, sparse = (int(number) for number in arrays["width"])
        require(columns == width and sparse < 2, "width", "is not the width of the iterates")
    for name in ("frequency", "phase", "origin"):
        if name in arrays:
            check_floats(name, arrays)
    if "origin" in arrays and arrays["origin"].size:
        check_shape("origin", arrays, (dimension,))


def _check_kind_of_rows(arrays: Arrays, sparse: bool) -> None:
    """Check that the feature map, if there is one, suits the model's rows, dense or sparse."""
    what = "is of another kind of rows than the model's"
    if "frequency" in arrays:
        require((arrays["origin"].size == 0) == sparse, "origin", what)
        if not sparse:
            check_shape("frequency", arrays, (len(arrays["origin"]), None))
    if "whitening" in arrays:
        require(("landmarks_indptr" in arrays) == sparse, "landmarks", what)
    if "width" in arrays:
        require(bool(arrays["width"][1]) == sparse, "width", what)


def _check_run(run: str, arrays: Arrays, empty: Arrays, shape: tuple[int, int]) -> None:
    """Check the iterates of one run, given the prefix of their names."""
    averages = len(empty[f"{run}rest"]) == len(empty[f"{run}direction"])
    check_shape(f"{run}direction", arrays, shape)
    for name in _ITERATE_SUMS:
        check_shape(run + name, arrays, (shape[0] if averages else 0, shape[1]))
    for name in _ITERATE_NUMBERS:
        check_shape(run + name, arrays, (shape[0],))
    for name in _PROGRESS:
        check_shape(run + name, arrays, (1,))
    check_shape(f"{run}weight", arrays, (2,))
    for name in ("direction", *_ITERATE_SUMS, *_ITERATE_NUMBERS, *_PROGRESS, "weight"):
        check_floats(run + name, arrays)
    for name in ("direction", *_ITERATE_SUMS, *_ITERATE_NUMBERS, "weight"):
        # Only a model with one iterate may lack the score of a row.
        require(not np.isnan(arrays[run + name]).any(), run + name, "has numbers missing")
    steps = arrays[f"{run}progress_steps"][0]
    require(0.0 <= steps <= _LARGEST_COUNT, f"{run}progress_steps", "is not a number of steps")


# kernel -> its approximate features
_FEATURES = {
    "rbf": ("fourier", "nystrom"),
    "polynomial": ("nystrom",),
    "linear": ("identity", "nystrom"),
}


# Vectors of a linear function: its iterate and sums, and one more as room for a new class.
_VECTORS_PER_CLASS = 4


class AveragedIteratesView(NamedTuple):
    """An immutable view of the averaged iterates.

    Attributes:
        model: the solver's view; None before the first sample.
        stats: the learner's part of the description.
        runs: parameters and weight of each run; empty if there is only one.
        square_norm_limit: bound on ||x||^2 of a row.
        features: for sparse rows, one more than the largest feature index learned.
    """

    model: AssetView | None
    stats: dict[str, Any]
    runs: list[dict[str, Any]]
    square_norm_limit: float
    features: int

    @property
    def learners(self) -> list[dict[str, Any]]:
        """The runs with their weights, if there are several."""
        return self.runs

    @property
    def gauges(self) -> dict[str, float | None]:
        """The memory of the learner."""
        return {"head_memory_bytes": self.stats["bytes"]}

    def predict(self, X: Matrix, _: object = None) -> Answer:
        """Return codes or values, and decisions, for finite rows. Raises InvalidSamples."""
        assert self.model is not None
        check_norms(X, self.square_norm_limit)
        return AssetLearnerView(self.model, self.features).predict(X)

    def pulls(self, _: Matrix, wanted: int, other: int) -> None:
        """Return None: ASSET has no members."""

    def gradient(self, x: Float64Array, direction: Float64Array, _: object = None) -> Gradient:
        """Return the gradient of sum_k direction_k score_k, or of direction_0 times the value."""
        assert self.model is not None
        return AssetLearnerView(self.model, self.features).gradient(x, direction)

    def cost(self, rows: int, entries: int) -> int:
        """Return the number of multiplications of a prediction; see `HeadView.cost`."""
        if self.model is None:
            return 0
        features = self.model.features
        iterates, columns = len(self.model.coefficients), int(self.model.coefficients.shape[1])
        each = COST_OF_ROW + iterates * COST_OF_DECISION
        if isinstance(features, IdentityMap):
            return rows * each + entries * iterates
        each += columns * (COST_OF_FUNCTION + iterates)
        if isinstance(features, NystromMap):
            return rows * each + cost_of_products(features.landmarks.exact, rows, entries)
        return rows * each + entries * columns


class AssetLearner(WithoutMembers, HeadLearner[Asset]):
    """ASSET with the settings of a spec; a `ClassLearner` and an `OnlineLearner`."""

    voters = ()

    def __init__(self, spec: ModelSpec) -> None:
        assert spec.asset is not None
        self._spec = spec.asset
        self._weight_of = weights_by_label(spec.asset.class_weight)
        # The weights of the known classes, by code. A new learner starts with them.
        self._weights: list[float] = []
        super().__init__(spec, partial(_asset, spec, self._weights))

    def meet(self, label: Label) -> None:
        """Give a new class its weight, if any class has one."""
        if self._weight_of:
            weight = self._weight_of.get(key_of(label), 1.0)
            self._weights.append(weight)
            self.current.class_weight.append(weight)

    def growth(self, batch: Batch) -> int:
        """Return the most bytes a batch adds: new features widen the map, classes add iterates."""
        learner, spec = self.current, self._spec
        dimension = spec.dimension or batch.features
        map_bytes = batch.new_features * dimension * 8 if spec.features == "fourier" else 0
        if learner.steps:
            new = batch.new_classes
            return map_bytes + (
                new_class_bytes(learner.nbytes, learner.n_classes, new) if new else 0
            )
        iterates = _VECTORS_PER_CLASS * (1 + batch.new_classes) * dimension * 8
        landmarks = dimension * batch.width * 8 if spec.features == "nystrom" else 0
        return map_bytes + landmarks + iterates

    def view(self) -> AveragedIteratesView:
        """Return an immutable view of the iterates."""
        learner = self.current
        return AveragedIteratesView(
            learner.view() if learner.steps else None,
            self._stats(learner) | self.estimated_widths,
            _runs(learner),
            self.square_norm_limit(),
            self.features,
        )

    def _stats(self, learner: Asset) -> dict[str, Any]:
        spec, features = self._spec, learner.features
        stats: dict[str, Any] = {
            "algorithm": spec.algorithm,
            "features": spec.features,
            "dimension": None if features is None else dimension_of(features),
            "steps": learner.steps,
            "bytes": learner.nbytes,
        }
        if spec.horizon == "auto":
            stats["horizon"] = learner.run.horizon
        if spec.features == "nystrom":
            used = n_rows(features.landmarks.exact) if isinstance(features, NystromMap) else 0
            stats["landmarks"] = {"used": used, "frozen": learner.frozen}
        return stats


def _runs(learner: Asset) -> list[dict[str, Any]]:
    """Return the weight and losses of each run, if there are several."""
    runs = learner.runs
    if len(runs.each) == 1 or not learner.steps:
        return []
    worth = zip(runs.each, runs.weight.tolist(), runs.recent_loss.tolist(), strict=True)
    return [
        {
            "learner": "asset",
            "horizon": run.horizon,
            "average": run.rule.averages,
            "weight": weight,
            "recent_loss": recent,
            "overall_loss": None,
        }
        for run, weight, recent in worth
    ]


def _asset(spec: ModelSpec, class_weight: Sequence[float], kernel: Kernel) -> Asset:
    asset = spec.asset
    assert asset is not None
    parameters = AssetParameters(
        algorithm=asset.algorithm,
        features=asset.features,
        dimension=asset.dimension or 1,  # identity ignores it
        epsilon=asset.epsilon or 0.0,  # classification ignores it
        lam=asset.lam,
        average=asset.average,
        average_from=asset.average_from,
        horizon=asset.horizon,
    )
    return new_asset(kernel, parameters, spec.task, spec.seed, class_weight)


def _build(spec: ModelSpec) -> ClassificationHead[AssetLearner] | RegressionHead:
    return new_head(spec.task, AssetLearner(spec))


def _specs() -> Iterator[ModelSpec]:
    """Yield each kernel with each of its approximate features, for both tasks."""
    for kernel, kernel_features in _FEATURES.items():
        for features in kernel_features:
            asset: dict[str, Any] = {"features": features}
            if features != "identity":
                asset["dimension"] = 16
            spec = {"kernel": {"type": kernel}, "asset": asset, "working_set": None}
            yield ModelSpec.model_validate(spec)
            yield ModelSpec.model_validate({**spec, "task": "regression"})


def _spec_part(choice: TrainingChoice) -> dict[str, Any]:
    return {"algorithm": choice.algorithm, **choice.options, "class_weight": choice.weights}


def _summary(report: Mapping[str, Any]) -> list[str]:
    return [f"{report['steps']:,} steps of {report['algorithm']} on {report['dimension']} features"]


KIND = Kind(
    name="asset",
    build=_build,
    calls=("asset",),
    specs=_specs,
    exercises={"all": lambda spec, sparse: exercise(_build, spec, sparse)},
    code=lambda spec: (spec.task, spec.kernel.type, spec.asset and spec.asset.features),
    check_saved=lambda _, saved: check_asset(saved),
    numbers=ASSET_NUMBERS,
    spec_part=_spec_part,
    reported=("dimension", "steps"),
    outcome=lambda report: f"{report['steps']:,} steps",
    summary=_summary,
    passes=lambda head, X, y, weight: head.passes(X, y, weight),
)
