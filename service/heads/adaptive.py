"""The bank of adaptive learners under a head of classes or of numbers.

It listens: what the other heads say of a row before they learn it is the vote of one more expert.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from service.heads.classification import ClassificationHead, Relearn
from service.heads.cost import COST_OF_DECISION, COST_OF_FUNCTION, COST_OF_ROW
from service.heads.exercise import exercise
from service.heads.protocol import Asked, Kind
from service.heads.regression import RegressionHead
from service.samples.named_rows import Rows
from service.samples.targets import Label
from service.spec.heads import HeadName
from service.spec.model import ModelSpec
from solver.adaptive.classifier import AdaptiveClassifier
from solver.adaptive.regressor import AdaptiveRegressor, predict_values
from solver.adaptive.ridge import CHUNK
from solver.adaptive.standing import Standing
from solver.adaptive.view import predict_classes
from solver.arrays import Float64Array
from solver.rows.matrix import Matrix, SparseRows

NAME: HeadName = "adaptive"
_STATS: dict[str, Any] = {"learners": 0, "bytes": 0}


class Bank(Protocol):
    """A bank of either task."""

    samples: int

    @property
    def nbytes(self) -> int:
        """Memory of its arrays in bytes."""

    kinds: list[dict[str, Any]]

    def absorb(self, X: Matrix, y: NDArray[Any], external: Float64Array | None, /) -> Any:
        """Answers for rows before they are learned."""

    def view(self) -> Any:
        """An immutable picture."""

    def standing(self) -> Standing:
        """What each learner is worth."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Plain arrays."""

    def restore(self, state: Mapping[str, NDArray[Any]], /) -> None:
        """Take over a state."""


class _Values(NamedTuple):
    """A regressor's answers in the form of other learners' answers."""

    prediction: Float64Array

    @property
    def decision(self) -> Float64Array:
        return self.prediction


class BankView(NamedTuple):
    """An immutable picture of a bank; model: None before the first sample.

    standing: None before the first sample. numbers: multiplications of a row.
    """

    model: Any
    stats: dict[str, Any]
    standing: Standing | None
    predicts: Callable[[Any, Matrix, Float64Array | None], tuple[NDArray[Any], Float64Array]]
    numbers: int

    @property
    def learners(self) -> list[dict[str, Any]]:
        """Parameters, weight and losses of each learner."""
        return [] if self.standing is None else self.standing.rows()

    @property
    def gauges(self) -> dict[str, float | None]:
        """The memory of the bank."""
        return {"head_memory_bytes": self.stats["bytes"]}

    def predict(self, X: Matrix, votes: Float64Array | None) -> tuple[NDArray[Any], Float64Array]:
        """Class numbers or values, and decisions, of finite rows."""
        return self.predicts(self.model, X, votes)

    def cost(self, rows: int, entries: int) -> int:
        """Multiplications of a prediction; see `HeadView.cost`."""
        return rows * (COST_OF_ROW + COST_OF_DECISION + self.numbers) + entries


class BankLearner:
    """A bank as the spec has it; a `ClassLearner` and an `OnlineLearner`.

    The first rows decide whether it is one of dense rows, and of how many columns.
    """

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec
        self.voters: tuple[HeadName, ...] = tuple(n for n in spec.heads if n != NAME)
        self._bank: Bank | None = None
        self._columns: int | None = None
        self._standing: Standing | None = None
        self._chunk = 0

    def meet(self, label: Label) -> None:
        """A class needs no preparation."""

    def check(self, rows: Rows) -> None:
        """All finite rows can be learned: they are scaled and clipped first."""

    def absorb(self, X: Matrix, y: NDArray[Any], votes: Float64Array | None = None) -> list[Any]:
        """Learn rows with class numbers or targets; returns the bank's answers."""
        bank = self._bank_for(None if isinstance(X, SparseRows) else X.shape[1])
        answers = bank.absorb(X, y, votes)
        return [_Values(answers) if self._spec.task == "regression" else answers]

    def columns(self, _: list[Any]) -> dict[str, list[Any]]:
        """There is no more to answer than a prediction and its decision."""
        return {}

    def probability(self, parts: list[Any]) -> Float64Array | None:
        """The bank's own."""
        (answers,) = parts
        found: Float64Array = answers.probability
        return found

    def relearning(self, _: int) -> Relearn:
        """Learns parts of a stream, whether or not they were learned before."""

        def relearn(_: NDArray[np.int64], X: Matrix, y: NDArray[Any]) -> Any:
            (answers,) = self.absorb(X, y)
            return answers.prediction

        return relearn

    def standing(self) -> dict[str, Any]:
        """There is no objective over all samples so far."""
        return {}

    def view(self) -> BankView:
        """The bank as it is now."""
        bank, predicts = self._bank, _PREDICTS[self._spec.task]
        if bank is None or not bank.samples:
            return BankView(None, _STATS, None, predicts, 0)
        stats = {"learners": len(bank.kinds), "bytes": bank.nbytes}
        standing = self._standing_of(bank)
        return BankView(bank.view(), stats, standing, predicts, self._numbers)

    def _standing_of(self, bank: Bank) -> Standing:
        """What the learners are worth; their losses as of the last full chunk."""
        chunk = bank.samples // CHUNK
        if self._standing is None or chunk != self._chunk:
            self._standing, self._chunk = bank.standing(), chunk
        return self._standing

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain data and arrays from which `restore` goes on bit for bit."""
        if self._bank is None:
            return {"begun": False}, {}
        return {"begun": True, "columns": self._columns}, self._bank.state()

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state."""
        if plain["begun"]:
            self._bank_for(plain["columns"]).restore(arrays)

    def _bank_for(self, columns: int | None) -> Bank:
        if self._bank is None:
            spec, self._columns = self._spec, columns
            of_task = AdaptiveRegressor if spec.task == "regression" else AdaptiveClassifier
            bank = of_task(
                columns, seed=spec.seed, external_experts=self.voters, temporal=spec.temporal
            )
            width = bank.inputs.features.dimension
            self._numbers = width * (COST_OF_FUNCTION + len(bank.kinds))
            self._bank = bank
        return self._bank


def _classes(view: Any, X: Matrix, votes: Float64Array | None) -> tuple[NDArray[Any], Float64Array]:
    answers = predict_classes(view, X, votes)
    return answers.prediction, answers.decision


def _values(view: Any, X: Matrix, votes: Float64Array | None) -> tuple[NDArray[Any], Float64Array]:
    found = predict_values(view, X, votes)
    return found, found


_PREDICTS = {"classification": _classes, "regression": _values}


def _build(spec: ModelSpec) -> ClassificationHead[BankLearner] | RegressionHead:
    learner = BankLearner(spec)
    return RegressionHead(learner) if spec.task == "regression" else ClassificationHead(learner)


def _specs() -> Iterator[ModelSpec]:
    """Both tasks, with and without the labels before a row."""
    for task in ("classification", "regression"):
        for temporal in (False, True):
            given = {"task": task, "temporal": temporal, "working_set": None, "asset": None}
            yield ModelSpec.model_validate(given)


def _code(spec: ModelSpec) -> Hashable:
    return spec.task, spec.temporal


def _spec_part(_: Asked) -> dict[str, Any]:
    return {}


def _outcome(report: Mapping[str, Any]) -> str:
    return f"{report['learners']} learners"


def _summary(report: Mapping[str, Any]) -> list[str]:
    return [f"{report['learners']} learners, {report['bytes'] / 1e6:.1f} MB"]


KIND = Kind(
    name=NAME,
    build=_build,
    calls=("samples", "asset"),
    specs=_specs,
    exercises={"all": lambda spec, sparse: exercise(_build, spec, sparse)},
    code=_code,
    spec_part=_spec_part,
    reported=("learners", "bytes"),
    outcome=_outcome,
    summary=_summary,
    learns_all=True,
    listens=True,
    prepared=True,
    passes=lambda head, X, y: head.passes(X, y),
)
