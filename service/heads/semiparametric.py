"""The semiparametric head: a window of recent samples, and a function fitted to one (P3).

Samples of every learning call are added to the window, after the current fit has predicted them. A
refit, which a client requests, solves the problem over a copy of the window on another thread.
`adopt` then serves its result.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wolfstream.service.errors import InvalidSamples, Untrained
from wolfstream.service.heads.decomposition import basis_to_text, fit_window
from wolfstream.service.heads.exercises import rows_to_learn
from wolfstream.service.heads.fit import Fit, Window
from wolfstream.service.heads.kernel import check_norms, kernel_limit, square_norm_limit
from wolfstream.service.heads.kind import KERNELS, Kind, RefitMethod, TrainingChoice
from wolfstream.service.heads.learner_head import ValueView
from wolfstream.service.heads.online_learner import Batch, cost_of_expansion
from wolfstream.service.heads.protocol import Answers, Predictions
from wolfstream.service.heads.saved_calibration import calibration_arrays, with_calibration
from wolfstream.service.heads.saved_rows import check_expansion
from wolfstream.service.heads.value_scores import Errors
from wolfstream.service.samples.numbers import LARGEST_TARGET
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.spec.semiparametric import DEFAULT_WINDOW, LARGEST_WINDOW
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.values import ValueCalibration, ValueConfidence
from wolfstream.solver.labels import LabelKey
from wolfstream.solver.rows.answers import Values
from wolfstream.solver.rows.matrix import Matrix, SparseRows
from wolfstream.solver.rows.sample_weights import Weights, as_numbers, weights_of
from wolfstream.solver.semiparametric.view import (
    SemiparametricView,
    predict_semiparametric,
    value_gradient,
    view_from_arrays,
)
from wolfstream.solver.stream.reasons import HeadGradient
from wolfstream.solver.stream.votes import NO_INPUTS, HeadAnswer, HeadInputs

_FIRST_ROWS = 64


class RecentSamples:
    """A ring buffer of at most `most` rows, with their targets and weights.

    It grows by doubling and never shrinks.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._X: Float64Array = np.empty((0, 0))
        self._y: Float64Array = np.empty(0)
        self._weight: Weights = None  # None until a sample has a weight
        self._seen = 0  # samples ever added

    def __len__(self) -> int:
        return min(self._seen, self._most)

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        weights = 0 if self._weight is None else self._weight.nbytes
        return self._X.nbytes + self._y.nbytes + weights

    def growth(self, samples: int, width: int) -> int:
        """Return an upper bound on the bytes that `samples` more rows of this width add."""
        needed = min(self._seen + samples, self._most)
        if needed <= len(self._y):
            return 0
        return min(max(2 * needed, _FIRST_ROWS), self._most) * (width + 2) * 8 - self.nbytes

    def add(self, X: Float64Array, y: Float64Array, weight: Weights = None) -> None:
        """Add rows (n, d), targets and weights (n,), and drop the oldest beyond the bound."""
        if not len(y):
            return
        self._make_room(min(self._seen + len(y), self._most), X.shape[1])
        first = max(len(y) - self._most, 0)
        slots = (self._seen + np.arange(first, len(y))) % self._most
        self._X[slots], self._y[slots] = X[first:], y[first:]
        if weight is not None and self._weight is None:
            self._weight = np.ones(len(self._y))
        if self._weight is not None:
            self._weight[slots] = as_numbers(weight, len(y))[first:]
        self._seen += len(y)

    def in_order(self) -> tuple[Float64Array, Float64Array, Weights]:
        """Return copies of the rows, targets and weights, oldest first."""
        slots = np.arange(self._seen - len(self), self._seen) % self._most
        return self._X[slots], self._y[slots], weights_of(self._weight, slots)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of the samples."""
        X, y, weight = self.in_order()
        weights = {} if weight is None else {"window_weight": weight}
        return {"window_X": X, "window_y": y, **weights}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self._seen, self._weight = 0, None
        weight = arrays.get("window_weight")
        self.add(arrays["window_X"], arrays["window_y"], weight)

    def _make_room(self, rows: int, width: int) -> None:
        """Enlarge the ring. Its rows are in order, because it has not wrapped yet."""
        if rows <= len(self._y):
            return
        capacity = min(max(rows, 2 * len(self._y), _FIRST_ROWS), self._most)
        X, y = np.empty((capacity, width)), np.empty(capacity)
        n = len(self)
        if n:
            X[:n], y[:n] = self._X[:n], self._y[:n]
        self._X, self._y = X, y
        if self._weight is not None:
            self._weight = np.concatenate([self._weight[:n], np.ones(capacity - n)])


# The most numbers that a full window may hold: 128 MB.
LARGEST_WINDOW_NUMBERS = 1 << 24
# The cost of computing and writing a float64 kernel value (2 to 20 ns), in multiplications.
_COST_OF_VALUE = 50


@dataclass(frozen=True, eq=False)
class FittedView(ValueView):
    """An immutable view of the head."""

    score: Errors
    confidence: ValueConfidence
    model: SemiparametricView | None  # None before the first refit
    figures: dict[str, Any]  # `stats`, without the scores

    @property
    def stats(self) -> dict[str, Any]:
        """The window, the fit, and the prequential scores."""
        return {**self.figures, "prequential": self.score.to_dict()}

    @property
    def gauges(self) -> dict[str, float | None]:
        """The sizes of the window and of the fit."""
        fit = self.figures["fit"]
        return {
            "window_samples": self.figures["window"],
            "support_vectors": fit and fit["support_vectors"],
            "head_memory_bytes": self.figures["bytes"],
        }

    @property
    def source(self) -> dict[str, Any]:
        """The refit that predicts: its job, and the sequence of its window."""
        fit = self.figures["fit"]
        return {"fit": {"job": fit["job"], "sequence": fit["sequence"]}} if fit else {}

    @property
    def lacks(self) -> str:
        """Why it cannot predict yet; "" if it can."""
        return "has not been fitted yet: a refit of its window is needed" if not self.model else ""

    def predict(self, X: Matrix, inputs: HeadInputs = NO_INPUTS) -> Predictions:
        """Return numbers both as predictions and as decisions. Raises Untrained, InvalidSamples."""
        if self.model is None:
            raise Untrained(f"the head {self.lacks}")
        check_norms(_dense(X), kernel_limit(self.model.kernel))
        del inputs
        values = Values(predict_semiparametric(self.model, X))
        prediction = values.prediction.tolist()
        return Predictions(prediction, list(prediction), HeadAnswer(None, [values]))

    @override
    def gradient(
        self, x: Float64Array, direction: Float64Array, _: HeadInputs = NO_INPUTS
    ) -> HeadGradient:
        assert self.model is not None
        return HeadGradient(direction[0] * value_gradient(self.model, x), {})

    @override
    def cost(self, rows: int, entries: int) -> int:
        if self.model is None:
            return 0
        values = rows * len(self.model.dual_coef)
        return cost_of_expansion(self.model.rows.exact, rows, entries) + values * _COST_OF_VALUE


class SemiparametricHead:
    """The window, the fit that predicts, and a prequential score."""

    classes = None

    def __init__(self, spec: ModelSpec) -> None:
        semiparametric = spec.semiparametric
        assert semiparametric is not None
        self._spec = semiparametric
        self._kernel = semiparametric.kernel or spec.kernel
        self._window = RecentSamples(semiparametric.window)
        self._score = Errors()
        self._calibration = ValueCalibration()
        # The fit that predicts, and its function; None before the first refit.
        self._fit: Fit | None = None
        self._model: SemiparametricView | None = None

    def check(self, samples: Samples, drafted: set[LabelKey], most_classes: int) -> set[LabelKey]:
        """Refuse rows that no refit could use. Labels do not matter."""
        del most_classes
        if not isinstance(samples.X, np.ndarray):
            detail = "must be arrays of numbers: basis functions refer to features by their index"
            raise InvalidSamples(
                "a model with a semiparametric head does not accept named numbers",
                [{"pointer": "/x", "detail": detail}],
            )
        self._check_width(samples.X.shape[1])
        check_norms(samples.X, square_norm_limit(self._kernel))
        return drafted

    def _check_width(self, width: int) -> None:
        largest = max((getattr(basis, "feature", -1) for basis in self._spec.basis), default=-1)
        if largest >= width:
            detail = f"has {width} numbers, but feature {largest} of a basis function is needed"
            raise InvalidSamples(
                "the rows lack features that the spec's basis uses",
                [{"row": 0, "pointer": "/x/0", "detail": detail}],
            )
        if width * self._spec.window > LARGEST_WINDOW_NUMBERS:
            most = LARGEST_WINDOW_NUMBERS // self._spec.window
            detail = f"has {width} numbers; a window of {self._spec.window} rows takes {most}"
            raise InvalidSamples(
                "the rows are too long for the spec's window; create the model with a smaller one",
                [{"row": 0, "pointer": "/x/0", "detail": detail}],
            )

    def growth(self, batch: Batch) -> int:
        """Return an upper bound on the bytes that learning a batch adds."""
        return self._window.growth(batch.rows, batch.width)

    def absorb(
        self,
        X: Matrix,
        y: Float64Array,
        inputs: HeadInputs = NO_INPUTS,
        weight: Weights = None,
        earlier_predictions: Sequence[Any] | None = None,
    ) -> Answers:
        """Predict samples with the fit, then add them to the window; live and in replay."""
        del inputs
        rows = _dense(X)
        predicted = self._predictions(rows)
        judged = predicted
        if earlier_predictions is not None:
            judged = np.array(earlier_predictions, np.float64)
        self._score.count(y, judged)
        self._calibration.absorb(predicted, y)
        self._window.add(rows, y, weight)
        column = [value if value == value else None for value in predicted.tolist()]
        return Answers(column, list(column), HeadAnswer(None, [Values(predicted)]))

    def _predictions(self, rows: Float64Array) -> Float64Array:
        """Return predictions; NaN before the first fit, and beyond the largest target."""
        if self._model is None:
            return np.full(len(rows), np.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            predicted = predict_semiparametric(self._model, rows)
        predicted[~(np.abs(predicted) <= LARGEST_TARGET)] = np.nan
        return predicted

    def window(self) -> tuple[Float64Array, Float64Array, Weights]:
        """Return copies of the window's rows, targets and weights, oldest first."""
        return self._window.in_order()

    @property
    def fit(self) -> Fit | None:
        """The fit that predicts; None before the first refit."""
        return self._fit

    def adopt(self, fit: Fit) -> None:
        """Predict with this fit from now on."""
        self._model = view_from_arrays(fit.arrays, fit.model)
        self._fit = fit

    def date_changes(self, sequence: int) -> None:
        """Give the changes since the last call the model's present sequence."""
        self._score.changes.date(sequence)

    def keep_score(self, former: Self) -> None:
        """Take over the score of the head that this one replaces; both learned the same samples."""
        self._score, self._calibration = former._score, former._calibration

    def view(self) -> FittedView:
        """Return an immutable view for predictions and descriptions."""
        stats = {
            "window": len(self._window),
            "bytes": self._window.nbytes,
            "fit": self._fit.plain if self._fit else None,
        }
        return FittedView(self._score.copy(), self._calibration.view(), self._model, stats)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain data and arrays from which `restore` continues bit for bit."""
        plain: dict[str, Any] = {**self._score.state(), "fit": None}
        arrays = self._window.state() | with_calibration(self._calibration.state())
        if self._fit:
            plain["fit"] = [self._fit.plain, self._fit.model]
            arrays |= {f"fit.{name}": array for name, array in self._fit.arrays.items()}
        return plain, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self._score.restore(plain)
        self._calibration.restore(calibration_arrays(arrays))
        self._window.restore(arrays)
        if plain["fit"]:
            fit = {n.removeprefix("fit."): a for n, a in arrays.items() if n.startswith("fit.")}
            description, model = plain["fit"]
            self.adopt(Fit(description, model, fit))


def _dense(X: Matrix) -> Float64Array:
    """Return rows as an array: `check` has refused all others."""
    assert not isinstance(X, SparseRows)
    return X


def _specs() -> Iterator[ModelSpec]:
    """Yield each kernel with each solver."""
    for kernel in KERNELS:
        for solver in ("pdsg", "mpd"):
            yield ModelSpec.model_validate(
                {
                    "task": "regression",
                    "kernel": {"type": kernel},
                    "asset": None,
                    "semiparametric": {"solver": solver, "tol": 0.1},
                }
            )


def _exercise(spec: ModelSpec, sparse: bool) -> None:
    """Fit windows that are solved as a whole and by decomposition, and predict with the fits."""
    if sparse:
        return  # the head refuses sparse rows
    X = rows_to_learn()
    head, y = SemiparametricHead(spec), np.sin(X[:, 0])
    large = np.random.default_rng(1).standard_normal((600, 3))
    for rows in (X[:20], large):
        window = Window("semiparametric", 0, rows, np.sin(rows[:, 0]), spec)
        head.adopt(fit_window(window, "", lambda _: None))
        head.absorb(X, y)
    for rows in (X[:1], X):
        head.view().predict(rows)


def _spec_part(choice: TrainingChoice) -> dict[str, Any]:
    """Return the head's part of a spec; by default the window holds all samples, if it can."""
    window = min(max(choice.samples, DEFAULT_WINDOW), LARGEST_WINDOW)
    return {"tol": choice.tol, "window": window, **choice.options}


def _outcome(report: Mapping[str, Any]) -> str:
    vectors = report["support_vectors"]
    return f"{vectors:,} support vectors, KKT violation {report['kkt_violation']:.3g}"


def _summary(report: Mapping[str, Any]) -> list[str]:
    parts = [f"{part['beta']:.6g} {basis_to_text(part['basis'])}" for part in report["beta"]]
    return [
        f"{_outcome(report)}, {report['window']:,} samples in the window",
        " + ".join(["y = kernel part", *parts]).replace("+ -", "- "),
    ]


KIND = Kind(
    name="semiparametric",
    build=SemiparametricHead,
    calls=("samples",),
    specs=_specs,
    exercises={"all": _exercise},
    code=lambda spec: (spec.kernel.type, spec.semiparametric and spec.semiparametric.solver),
    check_saved=lambda _, saved: check_expansion(saved),
    numbers=(),
    spec_part=_spec_part,
    reported=("window",),
    outcome=_outcome,
    summary=_summary,
    learns_all=True,
    refitting=RefitMethod(SemiparametricHead.window, fit_window, SemiparametricHead.adopt),
)
