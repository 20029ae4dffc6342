"""The custom head: a learner of another distribution, with the promises of all heads.

Each row is predicted before it is learned. A view holds the learner's arrays, as a file does, and
makes a learner of them when the first prediction is asked for, in whatever process.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.errors import Invalid, ServerFailed
from wolfstream.service.heads.batch import Batch
from wolfstream.service.heads.classification import ClassificationHead
from wolfstream.service.heads.cost import COST_OF_ROW
from wolfstream.service.heads.entry_points import learner_class
from wolfstream.service.heads.guarded import GuardedLearner, LearnerFailed
from wolfstream.service.heads.kind import Kind
from wolfstream.service.heads.new_head import new_head
from wolfstream.service.heads.online_learner import WithoutMembers
from wolfstream.service.heads.regression import RegressionHead
from wolfstream.service.heads.saved_arrays import SavedHead, WrongArrays
from wolfstream.service.samples.labels import Label
from wolfstream.service.spec.custom import CustomSpec
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.adaptive.gradients import Gradient
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.named_rows import Rows
from wolfstream.solver.rows.matrix import Matrix, SparseRows, n_rows, to_csr
from wolfstream.solver.rows.sample_weights import Weights, as_numbers
from wolfstream.solver.stream.value_head import Values
from wolfstream.solver.stream.votes import Answer, Decisions, Hints

NAME: HeadName = "custom"
# Probabilities of less count as this much.
LEAST_PROBABILITY = 1e-4
# The features of sparse rows share this many columns.
SPARSE_COLUMNS = 4096
# Half of the step by which a column of a prepared row is moved to see what it changes: half of the
# column's standard deviation.
_HALF_STEP = 0.25
# No prediction of others' code runs on the event loop.
_COST = 1000 * COST_OF_ROW
_PREFIX = "custom_"


class _Origin(NamedTuple):
    """What a learner is made with, besides the options of its spec."""

    spec: CustomSpec
    regression: bool
    seed: int

    def new(self) -> GuardedLearner:
        """Return a learner that has learned nothing. Raises Invalid, LearnerFailed."""
        name, options = self.spec.learner, deepcopy(self.spec.options)
        made = partial(learner_class(name), options, regression=self.regression, seed=self.seed)
        return GuardedLearner(name, made)


@dataclass(frozen=True, eq=False)
class CustomView:
    """An immutable view of a learner.

    Attributes:
        learner: name of its entry point.
        options, regression, seed: that it is made with.
        classes: how many it has learned; 0 of numbers.
        samples: how many it has learned.
        arrays: its state.
    """

    learner: str
    options: dict[str, Any]
    regression: bool
    seed: int
    classes: int
    samples: int
    arrays: dict[str, NDArray[Any]]

    @property
    def model(self) -> object | None:
        """The view itself; None before the first sample."""
        return self if self.samples else None

    @property
    def stats(self) -> dict[str, Any]:
        """The name of the learner, and its memory."""
        return {"learner": self.learner, "bytes": _n_bytes(self.arrays)}

    @property
    def gauges(self) -> dict[str, float | None]:
        """The memory of the learner."""
        return {"head_memory_bytes": _n_bytes(self.arrays)}

    @property
    def learners(self) -> list[dict[str, Any]]:
        """Nothing: it is a single learner."""
        return []

    def predict(self, X: Matrix, _: Hints) -> Answer:
        """Return codes or values, and decisions, of finite rows. Raises ServerFailed."""
        with _LOCK:
            restored = _RESTORED.setdefault(self, _Restored())
        try:
            with restored.lock:
                if restored.learner is None:
                    restored.learner = self._restore()
                return _answer(restored.learner, dense_rows(X), self.classes, self.classes)
        except LearnerFailed as failure:
            raise ServerFailed(str(failure)) from failure

    def _restore(self) -> GuardedLearner:
        spec = CustomSpec(learner=self.learner, options=self.options)
        learner = _Origin(spec, self.regression, self.seed).new()
        learner.restore(self.arrays)
        return learner

    def pulls(self, _: Matrix, wanted: int, other: int) -> None:
        """Return None: it has no members that are known."""

    def gradient(self, x: Float64Array, direction: Float64Array, hints: Hints) -> Gradient:
        """Return secants instead: nothing is known of the learner but its predictions.

        Each column is moved by a quarter of its standard deviation to either side.
        """
        d = len(x)
        steps = _HALF_STEP * np.eye(d)
        decision = self.predict(np.concatenate([x + steps, x - steps]), hints).decision
        if decision.ndim == 2:
            along = decision @ direction
        else:
            along = decision * (direction[0] if len(direction) == 1 else direction[1])
        return Gradient(np.nan_to_num((along[:d] - along[d:]) / (2.0 * _HALF_STEP)))

    def cost(self, rows: int, entries: int) -> int:
        """Return the number of multiplications of a prediction; see `HeadView.cost`."""
        del entries
        return rows * _COST


class _Restored:
    """The learner of a view, for one thread at a time; None before the first prediction."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.learner: GuardedLearner | None = None


# Of views that were asked for predictions, as long as the views live. _LOCK guards the dictionary.
_RESTORED: WeakKeyDictionary[CustomView, _Restored] = WeakKeyDictionary()
_LOCK = Lock()


class CustomOnlineLearner(WithoutMembers):
    """A custom learner as a `ClassLearner` and an `OnlineLearner`."""

    voters = ()

    def __init__(self, spec: ModelSpec) -> None:
        assert spec.custom is not None
        self._origin = _Origin(spec.custom, spec.task == "regression", spec.seed)
        try:
            self._learner = self._origin.new()
        except LearnerFailed as failure:  # code of others, and options of anybody
            detail = str(failure)
            raise Invalid(detail, [{"pointer": "/custom/options", "detail": detail}]) from None
        self._classes = self._samples = 0
        # Its state as of the last sample, which views share and nobody changes.
        self._arrays: dict[str, NDArray[Any]] = {}
        # Samples and bytes when the learner's memory was last looked at; None before that.
        self._measured: tuple[int, int] | None = None
        # The most that a sample has added to the learner's memory, on average between two looks.
        self._sample_bytes = 0.0

    def check(self, rows: Rows) -> None:
        """Accept all finite rows."""

    def growth(self, batch: Batch) -> int:
        """Return the bytes that samples add if each adds as much as any has so far, on average."""
        return int(batch.rows * self._sample_bytes)

    def meet(self, label: Label) -> None:
        """Do nothing: the first sample of a class is enough."""

    def absorb(self, X: Matrix, y: NDArray[Any], _: Hints, weight: Weights) -> list[Answer]:
        """Predict each row, then learn it. Raises LearnerFailed, also if it has no state."""
        rows, weights, learner = dense_rows(X), as_numbers(weight, len(y)), self._learner
        total = 0 if self._origin.regression else max(self._classes, int(y.max(initial=-1)) + 1)
        answers: list[Answer] = []
        for i in range(len(y)):
            part = slice(i, i + 1)
            if self._samples:
                answers.append(_answer(learner, rows[part], self._classes, total))
            else:
                answers.append(_nothing(total, regression=self._origin.regression))
            learner.learn(rows[part], y[part], weights[part])
            self._samples += 1
            if not self._origin.regression:
                self._classes = max(self._classes, int(y[i]) + 1)
        self._take_state()
        prediction = np.concatenate([answer.prediction for answer in answers])
        decision = np.concatenate([answer.decision for answer in answers])
        if self._origin.regression:
            return [Values(prediction)]
        return [Decisions(prediction, decision)]

    def view(self) -> CustomView:
        """Return a view of the learner as it is now."""
        (spec, regression, seed), arrays = self._origin, self._arrays
        return CustomView(
            spec.learner, spec.options, regression, seed, self._classes, self._samples, arrays
        )

    def _take_state(self) -> None:
        self._arrays = self._learner.state()
        n_bytes = _n_bytes(self._arrays)
        if self._measured is not None and self._samples > self._measured[0]:
            grown = (n_bytes - self._measured[1]) / (self._samples - self._measured[0])
            self._sample_bytes = max(self._sample_bytes, grown)
        self._measured = self._samples, n_bytes

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain data and arrays, from which `restore` goes on bit for bit."""
        arrays = {f"{_PREFIX}{name}": array for name, array in self._arrays.items()}
        return {"class_count": self._classes, "samples": self._samples}, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take a state."""
        self._classes, self._samples = plain["class_count"], plain["samples"]
        if self._samples:
            self._learner.restore(_own(arrays))
            self._take_state()


def dense_rows(X: Matrix) -> Float64Array:
    """Return rows as arrays; the features of sparse rows share `SPARSE_COLUMNS` columns."""
    if not isinstance(X, SparseRows):
        return X
    values, features, ends = to_csr(X)
    rows = np.zeros((n_rows(X), min(X.width, SPARSE_COLUMNS)))
    row = np.repeat(np.arange(len(rows)), np.diff(ends))
    np.add.at(rows, (row, features % SPARSE_COLUMNS), values)
    return rows


def _nothing(classes: int, *, regression: bool) -> Answer:
    """Return the answer about one row before the first sample."""
    if regression:
        return Values(np.array([np.nan]))
    return Decisions(np.array([-1]), _decision(np.full((1, classes), np.nan)))


def _answer(learner: GuardedLearner, X: Float64Array, classes: int, total: int) -> Answer:
    """Return a learner's answer about rows.

    Args:
        learner: that has learned a sample.
        X: rows, (n, d).
        classes: how many it has learned; 0 of numbers.
        total: how many classes the answer is about.
    """
    answer = learner.predict(X, classes)
    if not classes:
        return Values(answer)
    answer = np.nan_to_num(answer)
    scores = np.full((len(X), total), np.log(LEAST_PROBABILITY))
    scores[:, :classes] = np.log(np.maximum(answer, LEAST_PROBABILITY))
    return Decisions(scores[:, :classes].argmax(axis=1), _decision(scores))


def _decision(scores: Float64Array) -> Float64Array:
    """Return decisions about rows, given (n, K) scores of the classes."""
    if scores.shape[1] == 2:
        return np.asarray(scores[:, 1] - scores[:, 0])
    return scores[:, 0] if scores.shape[1] == 1 else scores


def _n_bytes(arrays: Mapping[str, NDArray[Any]]) -> int:
    return sum(array.nbytes for array in arrays.values())


def _own(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the learner's arrays by their own names."""
    return {
        name.removeprefix(_PREFIX): array
        for name, array in arrays.items()
        if name.startswith(_PREFIX)
    }


def _build(spec: ModelSpec) -> ClassificationHead[CustomOnlineLearner] | RegressionHead:
    return new_head(spec.task, CustomOnlineLearner(spec))


def _check_saved(
    head: ClassificationHead[CustomOnlineLearner] | RegressionHead, saved: SavedHead
) -> None:
    """Check what of a saved head is not the learner's own; that may refuse its arrays itself."""
    classes, samples = saved.plain["class_count"], saved.plain["samples"]
    most = saved.n_classes or 0
    if type(classes) is not int or not 0 <= classes <= most:
        raise WrongArrays("its custom head has an impossible number of classes")
    if type(samples) is not int or not 0 <= samples < 2**53:
        raise WrongArrays("its custom head has an impossible number of samples")
    if samples:
        assert isinstance(head.learner, CustomOnlineLearner)
        try:
            head.learner.restore(saved.plain, saved.arrays)
        except LearnerFailed as failure:  # code of others, and arrays of anybody
            raise WrongArrays(f"its custom head cannot be restored: {failure}") from None


KIND = Kind(
    name=NAME,
    build=_build,
    calls=("samples", "asset"),
    specs=lambda: iter(()),
    exercises={},
    code=lambda _: None,
    spec_part=lambda _: {},
    reported=("learner", "bytes"),
    outcome=lambda report: f"{report['learner']}, {report['bytes'] / 1e6:.1f} MB",
    summary=lambda report: [f"{report['learner']}, {report['bytes'] / 1e6:.1f} MB"],
    learns_all=True,
    prepared=True,
    passes=lambda head, X, y, weight: head.passes(X, y, weight),
    check_saved=_check_saved,
    numbers=None,
)
