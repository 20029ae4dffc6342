"""ASSET as a head of classes or of numbers: subgradient steps on approximate features (P5)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wolfstream.service.heads.batch import Batch, new_class_bytes
from wolfstream.service.heads.classification import ClassificationHead
from wolfstream.service.heads.cost import (
    COST_OF_DECISION,
    COST_OF_FUNCTION,
    COST_OF_ROW,
    cost_of_products,
)
from wolfstream.service.heads.exercise import exercise
from wolfstream.service.heads.kernel import check_norms
from wolfstream.service.heads.kind import Kind, TrainingChoice
from wolfstream.service.heads.new_head import new_head
from wolfstream.service.heads.online_learner import HeadLearner, WithoutMembers
from wolfstream.service.heads.regression import RegressionHead
from wolfstream.service.heads.saved_asset import ASSET_NUMBERS, check_asset
from wolfstream.service.spec.class_weight import weights_by_label
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.adaptive.gradients import Gradient
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.features import dimension_of
from wolfstream.solver.asset.identity import IdentityMap
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.nystrom import NystromMap
from wolfstream.solver.asset.view import AssetView
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import Matrix, n_rows
from wolfstream.solver.stream.labels import Label, key_of
from wolfstream.solver.stream.paper_learners import AssetLearnerView, new_asset
from wolfstream.solver.stream.parameters import AssetParameters
from wolfstream.solver.stream.votes import Answer

# kernel -> its approximate features
_FEATURES = {
    "rbf": ("fourier", "nystrom"),
    "polynomial": ("nystrom",),
    "linear": ("identity", "nystrom"),
}


# Vectors of a machine: its iterate and sums, and one more as room for a new class.
_VECTORS_OF_MACHINE = 4


class MachinesView(NamedTuple):
    """An immutable view of the averaged machines.

    Attributes:
        model: the solver's view; None before the first sample.
        stats: the learner's part of the description.
        courses: parameters and weight of each course; empty if there is only one.
        square_norm_limit: bound on ||x||^2 of a row.
        features: for sparse rows, one more than the largest feature index learned.
    """

    model: AssetView | None
    stats: dict[str, Any]
    courses: list[dict[str, Any]]
    square_norm_limit: float
    features: int

    @property
    def learners(self) -> list[dict[str, Any]]:
        """The courses with their weights, if there are several."""
        return self.courses

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
        """See `solver.stream.class_head.LearnerView`."""
        assert self.model is not None
        return AssetLearnerView(self.model, self.features).gradient(x, direction)

    def cost(self, rows: int, entries: int) -> int:
        """Return the number of multiplications of a prediction; see `HeadView.cost`."""
        if self.model is None:
            return 0
        features = self.model.features
        machines, columns = len(self.model.coefficients), int(self.model.coefficients.shape[1])
        each = COST_OF_ROW + machines * COST_OF_DECISION
        if isinstance(features, IdentityMap):
            return rows * each + entries * machines
        each += columns * (COST_OF_FUNCTION + machines)
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
        super().__init__(spec, lambda kernel: _asset(spec, kernel, self._weights))

    def meet(self, label: Label) -> None:
        """Give a new class its weight, if any class has one."""
        if self._weight_of:
            weight = self._weight_of.get(key_of(label), 1.0)
            self._weights.append(weight)
            self.current.class_weight.append(weight)

    def growth(self, batch: Batch) -> int:
        """Return the most bytes a batch adds: new features widen the map, classes add machines."""
        learner, spec = self.current, self._spec
        dimension = spec.dimension or batch.features
        map_bytes = batch.new_features * dimension * 8 if spec.features == "fourier" else 0
        if learner.steps:
            new = batch.new_classes
            return map_bytes + (
                new_class_bytes(learner.nbytes, learner.n_classes, new) if new else 0
            )
        machines = _VECTORS_OF_MACHINE * (1 + batch.new_classes) * dimension * 8
        landmarks = dimension * batch.width * 8 if spec.features == "nystrom" else 0
        return map_bytes + landmarks + machines

    def view(self) -> MachinesView:
        """Return an immutable view of the machines."""
        learner = self.current
        return MachinesView(
            learner.view() if learner.steps else None,
            self._stats(learner) | self.estimated_widths,
            _courses(learner),
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
            stats["horizon"] = learner.course.horizon
        if spec.features == "nystrom":
            used = n_rows(features.landmarks.exact) if isinstance(features, NystromMap) else 0
            stats["landmarks"] = {"used": used, "frozen": learner.frozen}
        return stats


def _courses(learner: Asset) -> list[dict[str, Any]]:
    """Return the weight and losses of each course, if there are several."""
    courses = learner.courses
    if len(courses.each) == 1 or not learner.steps:
        return []
    worth = zip(courses.each, courses.weight.tolist(), courses.recent_loss.tolist(), strict=True)
    return [
        {
            "learner": "asset",
            "horizon": course.horizon,
            "average": course.rule.averages,
            "weight": weight,
            "recent_loss": recent,
            "overall_loss": None,
        }
        for course, weight, recent in worth
    ]


def _asset(spec: ModelSpec, kernel: Kernel, class_weight: Sequence[float]) -> Asset:
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
