"""The bank of adaptive learners, as a head of classes or of numbers.

The predictions of the other heads for a row, made before they learn it, are the votes of further
experts of the bank.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.heads.classification import ClassificationHead
from wolfstream.service.heads.exercises import exercise, rows_to_learn
from wolfstream.service.heads.kind import Kind, TrainingChoice
from wolfstream.service.heads.new_head import by_task, new_head
from wolfstream.service.heads.online_learner import (
    COST_OF_CROSSED,
    COST_OF_DECISION,
    COST_OF_FUNCTION,
    COST_OF_ROW,
    Batch,
    WithoutMembers,
    new_class_bytes,
)
from wolfstream.service.heads.protocol import Head
from wolfstream.service.heads.regression import RegressionHead
from wolfstream.service.heads.saved_arrays import SavedHead, WrongArrays
from wolfstream.service.heads.saved_bank import BANK_NUMBERS, PAST_NUMBERS, check_bank, check_past
from wolfstream.service.heads.saved_calibration import CALIBRATION_NUMBERS
from wolfstream.service.heads.saved_trees import PREFIX, TREE_NUMBERS, check_trees
from wolfstream.service.samples.tasks import TASKS
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.adaptive.bank import BankLearner, BankLearnerView
from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.expert_weights import ExpertWeights
from wolfstream.solver.adaptive.gradients import Gradient
from wolfstream.solver.adaptive.label_past import PREFIX as PAST
from wolfstream.solver.adaptive.settings import FOREVER, Pins
from wolfstream.solver.adaptive.texts import TextLearners, text_scores
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.named_rows import Rows
from wolfstream.solver.prepare.row_form import PreparationParameters
from wolfstream.solver.rows.answers import Answer
from wolfstream.solver.rows.head_rows import Hints, RawRows
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.stream.model import StreamModel
from wolfstream.solver.stream.votes import HeadInputs
from wolfstream.solver.trees.schedule import FIRST

NAME: HeadName = "adaptive"
# Heads that do not vote in the bank: itself, and the one that predicts nothing.
_SILENT: tuple[HeadName, ...] = (NAME, "novelty")
# The description before the first sample.
_STATS: dict[str, Any] = {"learners": 0, "bytes": 0, "work_per_sample": 0}


class BankView(NamedTuple):
    """An immutable view of a bank.

    Attributes:
        model: the bank's view, which predicts; None before the first sample.
        stats: the bank's part of the description.
        expert_weights: weights and losses of the experts; None before the first sample.
        numbers: the multiplications of predicting a row.
    """

    model: BankLearnerView | None
    stats: dict[str, Any]
    expert_weights: ExpertWeights | None
    numbers: int

    @property
    def learners(self) -> list[dict[str, Any]]:
        """Parameters, weight and losses of each expert."""
        return [] if self.expert_weights is None else self.expert_weights.rows()

    @property
    def gauges(self) -> dict[str, float | None]:
        """The memory of the bank."""
        return {"head_memory_bytes": self.stats["bytes"]}

    def predict(self, X: Matrix, hints: Hints) -> Answer:
        """Return the bank's predictions for finite rows."""
        assert self.model is not None
        return self.model.predict(X, hints)

    def pulls(self, _: Matrix, wanted: int, other: int) -> None:
        """Return None: a bank has no members."""

    def gradient(self, x: Float64Array, direction: Float64Array, hints: Hints) -> Gradient:
        """Return the gradient of sum_k direction_k score_k, or of direction_0 times the value."""
        assert self.model is not None
        return self.model.gradient(x, direction, hints)

    def cost(self, rows: int, entries: int) -> int:
        """Return the number of multiplications of a prediction; see `HeadView.cost`."""
        return rows * (COST_OF_ROW + COST_OF_DECISION + self.numbers) + entries


class AdaptiveLearner(WithoutMembers, BankLearner):
    """The bank that a spec describes; a `ClassLearner` and an `OnlineLearner`."""

    def __init__(self, spec: ModelSpec) -> None:
        voters = [name for name in spec.heads if name not in _SILENT]
        assert spec.adaptive is not None
        super().__init__(
            spec.task,
            voters,
            temporal=spec.temporal,
            seed=spec.seed,
            pins=pins_of(spec),
            class_weight=spec.adaptive.class_weight,
        )
        self._expert_weights: ExpertWeights | None = None
        self._chunk = 0

    @property
    def samples(self) -> int:
        """The number of samples learned."""
        return 0 if self.current is None else self.current.samples

    def check(self, rows: Rows) -> None:
        """Accept all finite rows: they are scaled and clipped before they are learned."""

    def growth(self, batch: Batch) -> int:
        """Return an upper bound on the bytes that learning a batch adds.

        A bank allocates most of its memory with the first samples and with new classes; the
        weights of new texts and the rows of trees grow with samples.
        """
        bank, n_classes = self.current, 0
        if bank is not None and not batch.changing:
            new = batch.new_classes
            grown = new_class_bytes(self.nbytes, bank.learners.targets, new) if new else 0
            grown += bank.learners.growth(bank.samples, batch.rows)
            return grown + (0 if self.trees is None else self.trees.growth(batch.rows))
        if isinstance(bank, AdaptiveClassifier):
            n_classes = bank.n_classes
        columns = None if batch.sparse else batch.width
        classes, rows = n_classes + batch.new_classes, self.samples + batch.rows
        return max(self.blank_bytes(columns, batch.texts, classes, rows) - self.nbytes, 0)

    def view(self) -> BankView:
        """Return an immutable view of the bank."""
        bank, figures = self.current, self.figures()
        if bank is None or figures is None:
            return BankView(None, _STATS, None, 0)
        model, learners, nbytes, work = figures
        stats = {"learners": learners, "bytes": nbytes, "work_per_sample": work}
        crossed = COST_OF_CROSSED * bank.learners.lookups
        numbers = self.width * (COST_OF_FUNCTION + learners) + crossed
        return BankView(model, stats, self._standing_weights(), numbers)

    def _standing_weights(self) -> ExpertWeights:
        """Return recent weights and losses of the experts (`BankLearner.standing_chunk`)."""
        if self._expert_weights is None or self._chunk != self.standing_chunk:
            self._expert_weights, self._chunk = self.all_expert_weights(), self.standing_chunk
        return self._expert_weights


def pins_of(spec: ModelSpec) -> Pins:
    """Return the settings of a spec that replace default experts of its bank."""
    bank = spec.adaptive
    assert bank is not None
    return Pins(
        _in_samples(bank.horizons), bank.steps, bank.neighbours, _in_samples(bank.naive_bayes)
    )


def _in_samples(horizons: Sequence[int | None] | None) -> list[float] | None:
    if horizons is None:
        return None
    return [FOREVER if horizon is None else float(horizon) for horizon in horizons]


def _build(spec: ModelSpec) -> ClassificationHead[AdaptiveLearner] | RegressionHead:
    return new_head(spec.task, AdaptiveLearner(spec), log_scores=True)


def _specs() -> Iterator[ModelSpec]:
    """Yield both tasks, and regression with `temporal`, where earlier targets are inputs."""
    numbers = {"task": "regression", "working_set": None, "asset": None}
    for spec in (numbers | {"task": "classification"}, numbers, numbers | {"temporal": True}):
        yield ModelSpec.model_validate(spec)


def _exercise_texts(spec: ModelSpec, sparse: bool) -> None:
    if not sparse:
        one_row = np.ones((1, 1))
        learners = TextLearners((1.0,), 1, regression=spec.task == "regression")
        learners.absorb(one_row, one_row, np.ones(1))
        text_scores(learners.view(), one_row)


def _exercise_trees(spec: ModelSpec, sparse: bool) -> None:
    """Learn until trees predict, with words and with more codes than there are bins."""
    if sparse or spec.temporal is True:
        return
    head: Head = _build(spec)
    y = TASKS[spec.task].example(2 * FIRST, ["a", "b"])
    X = np.stack([np.unique(y, return_inverse=True)[1], np.arange(len(y)) // 2], 1, dtype=float)
    words = np.array([-5.0, -3.0, -1.0])[np.arange(len(X)) % 3]
    raw = RawRows(X, (1,), words[:, None])
    head.absorb(X, y, HeadInputs({}, None, raw))
    head.view().predict(X[:1], HeadInputs({}, None, raw.part(slice(0, 1))))


def _exercise_chain(_: ModelSpec, sparse: bool) -> None:
    if sparse:
        return
    model = StreamModel(
        "classification", "working_set", preparing=PreparationParameters(), temporal="auto", seed=0
    )
    X = rows_to_learn()
    model.absorb(X, [i % 2 for i in range(len(X))])
    model.view().predict(X[:1])


def _code(spec: ModelSpec) -> Hashable:
    return spec.task, spec.task == "regression" and spec.temporal is True


def _spec_part(_: TrainingChoice) -> dict[str, Any]:
    return {}


def _outcome(report: Mapping[str, Any]) -> str:
    return f"{report['learners']} learners"


def _summary(report: Mapping[str, Any]) -> list[str]:
    return [f"{report['learners']} learners, {report['bytes'] / 1e6:.1f} MB"]


def _check_saved(
    head: ClassificationHead[AdaptiveLearner] | RegressionHead, saved: SavedHead
) -> None:
    assert isinstance(head.learner, AdaptiveLearner)
    n_classes = saved.n_classes
    if saved.plain["begun"] is True and head.learner.class_weights is not None:
        counts = saved.plain.get("class_counts")
        if not isinstance(counts, list) or len(counts) != n_classes:
            raise WrongArrays("its bank does not count the samples of each class")
        if not all(type(count) is int and 0 <= count <= saved.sequence for count in counts):
            raise WrongArrays("its bank has an impossible count of a class")
    trees = {name: array for name, array in saved.arrays.items() if name.startswith(PREFIX)}
    if trees or "trees" in saved.plain:
        check_trees(trees, saved.plain.get("trees"), n_classes)
    past = {name: array for name, array in saved.arrays.items() if name.startswith(PAST)}
    if past and not head.learner.uses_past:
        raise WrongArrays("its bank has earlier labels, which its spec does not use")
    if head.learner.uses_past and saved.plain["begun"] is True:
        check_past(past, n_classes)
    joining = trees.keys() | past.keys()
    bank = {name: array for name, array in saved.arrays.items() if name not in joining}
    check_bank(saved._replace(arrays=bank), head.learner.blank)


KIND = Kind(
    name=NAME,
    build=_build,
    calls=("samples", "asset"),
    specs=_specs,
    exercises={
        "all": lambda spec, sparse: exercise(_build, spec, sparse),
        "trees": _exercise_trees,
    },
    later={"texts": _exercise_texts, "chain": by_task({"classification": _exercise_chain})},
    code=_code,
    spec_part=_spec_part,
    reported=("learners", "bytes"),
    outcome=_outcome,
    summary=_summary,
    learns_all=True,
    listens=True,
    prepared=True,
    passes=lambda head, X, y, weight: head.passes(X, y, weight),
    check_saved=_check_saved,
    numbers=(*BANK_NUMBERS, *TREE_NUMBERS, *PAST_NUMBERS, *CALIBRATION_NUMBERS),
)
