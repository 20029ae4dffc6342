"""The custom head: a learner from another Python distribution, run as a head.

Each row is predicted before it is learned. A view holds the learner's arrays, as a model file does,
and restores a learner from them at its first prediction, in whatever process that happens.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.errors import Invalid, ServerFailed, visible
from wolfstream.service.heads.classification import ClassificationHead
from wolfstream.service.heads.entry_points import CustomLearner, learner_class
from wolfstream.service.heads.kind import Kind
from wolfstream.service.heads.new_head import new_head
from wolfstream.service.heads.online_learner import COST_OF_ROW, Batch, WithoutMembers
from wolfstream.service.heads.regression import RegressionHead
from wolfstream.service.heads.saved_arrays import SavedHead, WrongArrays
from wolfstream.service.samples.labels import Label
from wolfstream.service.samples.numbers import LARGEST_TARGET
from wolfstream.service.spec.custom import CustomSpec
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.adaptive.gradients import Gradient
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.named_rows import Rows
from wolfstream.solver.rows.answers import Answer, Decisions, Values
from wolfstream.solver.rows.head_rows import Hints
from wolfstream.solver.rows.matrix import Matrix, SparseRows, n_rows, to_csr
from wolfstream.solver.rows.sample_weights import Weights, as_numbers

_LONGEST_TEXT = 500
_LONGEST_NAME = 200


class LearnerFailed(Exception):
    """The code of a third-party learner failed; the message names the learner."""


@contextmanager
def third_party_code(learner: str, failed: str = "failed") -> Iterator[None]:
    """Turn all exceptions except KeyboardInterrupt into LearnerFailed.

    Args:
        learner: the name of the learner whose code runs.
        failed: what the message says about the learner.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise LearnerFailed(f"the learner {learner!r} {failed}: {_text_of(error)}") from error


class GuardedLearner:
    """A third-party learner. Each method raises LearnerFailed."""

    def __init__(self, name: str, make: Callable[[], CustomLearner]) -> None:
        self._name = name
        with third_party_code(name, "does not take these options"):
            self._learner = make()

    def learn(self, X: Float64Array, y: NDArray[Any], weight: Float64Array) -> None:
        """Have the learner learn samples. Raises LearnerFailed."""
        with third_party_code(self._name):
            self._learner.learn(X.copy(), y.copy(), weight.copy())

    def predict(self, X: Float64Array, classes: int) -> Float64Array:
        """Return (n, classes) probabilities or, if `classes` is 0, (n,) numbers.

        Values that are not finite or exceed the largest target are replaced by NaN.
        """
        with third_party_code(self._name):
            answer = np.array(self._learner.predict(X.copy()), np.float64)
            wanted = (len(X), classes) if classes else (len(X),)
            if answer.shape != wanted:
                raise ValueError(f"its predictions have shape {answer.shape}, expected {wanted}")
        return np.where(np.abs(answer) <= LARGEST_TARGET, answer, np.nan)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of its arrays, checked to be fit for a model file."""
        with third_party_code(self._name):
            return {_checked_name(name): _numbers(name, a) for name, a in self._items()}

    def _items(self) -> Any:
        state = self._learner.state()
        if not isinstance(state, Mapping):
            raise TypeError(f"its state is a {type(state).__name__}, not a dictionary")
        return state.items()

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Have the learner restore what `state` returned. Raises LearnerFailed."""
        with third_party_code(self._name):
            self._learner.restore({name: array.copy() for name, array in arrays.items()})


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise ValueError(
            f"its state has an array named {ascii(name)[:_LONGEST_NAME]}: names must be printable "
            f"strings of at most {_LONGEST_NAME} characters"
        )
    return name


def _numbers(name: str, array: Any) -> NDArray[Any]:
    numbers = np.array(array)
    numbers = numbers.astype(numbers.dtype.newbyteorder("="))
    if numbers.dtype.kind not in "biuf":  # as in any model file
        raise TypeError(f"its state has an array {name!r} of {numbers.dtype}, not of numbers")
    return numbers


def _text_of(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # __str__ is third-party code, too
        text = ""
    text = visible(text[:_LONGEST_TEXT])[:_LONGEST_TEXT]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


NAME: HeadName = "custom"
# Smaller probabilities are raised to this.
LEAST_PROBABILITY = 1e-4
# Features of sparse rows are hashed to this many columns.
SPARSE_COLUMNS = 4096
# A secant moves a column by this much to either side, in units of its standard deviation.
_HALF_STEP = 0.25
# So high that third-party code never predicts on the event loop.
_COST = 1000 * COST_OF_ROW
_PREFIX = "custom_"


class _Origin(NamedTuple):
    """What a learner is created from."""

    spec: CustomSpec
    regression: bool
    seed: int

    def new(self) -> GuardedLearner:
        """Return a new learner. Raises Invalid, LearnerFailed."""
        name, options = self.spec.learner, deepcopy(self.spec.options)
        create = partial(learner_class(name), options, regression=self.regression, seed=self.seed)
        return GuardedLearner(name, create)


@dataclass(frozen=True, eq=False)
class CustomView:
    """An immutable view of a learner.

    Attributes:
        learner: the name of its entry point.
        options, regression, seed: the arguments that it is created with.
        classes: the number of classes learned; 0 for regression.
        samples: the number of samples learned.
        arrays: the learner's state.
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
        """An empty list: the head has a single learner."""
        return []

    def predict(self, X: Matrix, _: Hints) -> Answer:
        """Return codes or values, and decisions, for finite rows. Raises ServerFailed."""
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
        """Return None: the members of a custom learner, if any, are unknown."""

    def gradient(self, x: Float64Array, direction: Float64Array, hints: Hints) -> Gradient:
        """Return secants in place of a gradient: only the learner's predictions are known.

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
    """A view's learner, used by one thread at a time."""

    def __init__(self) -> None:
        self.lock = Lock()  # held while the learner is restored or predicts
        self.learner: GuardedLearner | None = None  # None before the first prediction


# view -> its learner, once it has predicted, for as long as the view lives. _LOCK guards it.
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
        except LearnerFailed as failure:  # third-party code, and options from a client
            detail = str(failure)
            raise Invalid(detail, [{"pointer": "/custom/options", "detail": detail}]) from None
        self._classes = self._samples = 0
        # The learner's state after the last sample. Views share it; it is never changed in place.
        self._arrays: dict[str, NDArray[Any]] = {}
        # Samples and bytes when the learner's memory was last measured; None before that.
        self._measured: tuple[int, int] | None = None
        # The largest average growth in bytes per sample between two measurements.
        self._sample_bytes = 0.0

    def check(self, rows: Rows) -> None:
        """Accept all finite rows."""

    def growth(self, batch: Batch) -> int:
        """Return the bytes that samples add at the largest growth per sample measured so far."""
        return int(batch.rows * self._sample_bytes)

    def meet(self, label: Label) -> None:
        """Do nothing: a learner meets a class with its first sample."""

    def absorb(self, X: Matrix, y: NDArray[Any], _: Hints, weight: Weights) -> list[Answer]:
        """Predict each row, then learn it. Raises LearnerFailed, also if `state` fails."""
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
        """Return an immutable view of the learner."""
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
        """Return plain data and arrays from which `restore` continues bit for bit."""
        arrays = {f"{_PREFIX}{name}": array for name, array in self._arrays.items()}
        return {"class_count": self._classes, "samples": self._samples}, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
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
    """Return the answer for a row before the first sample: no prediction."""
    if regression:
        return Values(np.array([np.nan]))
    return Decisions(np.array([-1]), _decision(np.full((1, classes), np.nan)))


def _answer(learner: GuardedLearner, X: Float64Array, classes: int, total: int) -> Answer:
    """Return a learner's predictions for rows.

    Args:
        learner: a learner that has learned at least one sample.
        X: rows, (n, d).
        classes: the number of classes that it has learned; 0 for regression.
        total: the number of classes to answer for; those not learned yet get the least score.
    """
    answer = learner.predict(X, classes)
    if not classes:
        return Values(answer)
    answer = np.nan_to_num(answer)
    scores = np.full((len(X), total), np.log(LEAST_PROBABILITY))
    scores[:, :classes] = np.log(np.maximum(answer, LEAST_PROBABILITY))
    return Decisions(scores[:, :classes].argmax(axis=1), _decision(scores))


def _decision(scores: Float64Array) -> Float64Array:
    """Return the decisions for (n, K) scores of the classes."""
    if scores.shape[1] == 2:
        return np.asarray(scores[:, 1] - scores[:, 0])
    return scores[:, 0] if scores.shape[1] == 1 else scores


def _n_bytes(arrays: Mapping[str, NDArray[Any]]) -> int:
    return sum(array.nbytes for array in arrays.values())


def _own(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the learner's arrays under the names that the learner gave them."""
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
    """Check the counts of a saved head, then let the learner check its own arrays."""
    classes, samples = saved.plain["class_count"], saved.plain["samples"]
    most = saved.n_classes or 0
    if type(classes) is not int or not 0 <= classes <= most:
        raise WrongArrays("its custom head has an impossible number of classes")
    if type(samples) is not int or not 0 <= samples <= saved.sequence:
        raise WrongArrays("its custom head has an impossible number of samples")
    if samples:
        assert isinstance(head.learner, CustomOnlineLearner)
        try:
            head.learner.restore(saved.plain, saved.arrays)
        except LearnerFailed as failure:  # third-party code, and arrays from a client
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
