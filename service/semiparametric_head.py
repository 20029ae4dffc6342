"""The head that is fitted on request: a window of recent samples, and the last fit of one.

Samples of every learning call pass through the window. What they do to it is all that `absorb`
does, beside judging the present fit on them; a refit (`service.refits`) takes the window, and
`adopt` takes in what came of it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidSamples, Untrained
from service.fits import Fit
from service.head import Answers, LabelKey
from service.kernel_spec import has_auto_gamma, kernel_with
from service.learner import check_norms
from service.names import NamedRows
from service.prediction import cost_of_expansion
from service.samples import Samples
from service.scores import Errors
from service.spec import ModelSpec
from service.targets import LARGEST_TARGET, Targets
from service.window import RecentSamples
from solver.kernels import largest_square_norm
from solver.rows import Float64Array, Matrix, SparseRows
from solver.semiparametric import SemiparametricView, predict_semiparametric, view_from_arrays

# Numbers in a full window: 128 MB.
LARGEST_WINDOW_NUMBERS = 1 << 24
_LARGEST_SQUARE_NORM = 1e100
# In multiplications: a kernel value in float64, written to memory (2 to 20 ns).
_COST_OF_VALUE = 50


class FittedView(NamedTuple):
    """An immutable picture of the head. model: None before the first refit."""

    model: SemiparametricView | None
    stats: dict[str, Any]

    @property
    def classes(self) -> None:
        """There are none."""
        return

    @property
    def trained(self) -> bool:
        """Whether there has been a refit."""
        return self.model is not None

    @property
    def fit(self) -> dict[str, Any]:
        """Which refit answers: its job, and the sequence of its window."""
        told = self.stats["fit"]
        return {"job": told["job"], "sequence": told["sequence"]}

    def predict(self, X: Matrix) -> tuple[list[float], list[float]]:
        """A number for each row, twice; raises Untrained, InvalidSamples."""
        if self.model is None:
            raise Untrained(
                "the semiparametric head has not been fitted yet; ask for it with POST .../refit"
            )
        most = min(largest_square_norm(self.model.kernel), _LARGEST_SQUARE_NORM)
        check_norms(_dense(X), most)
        said = predict_semiparametric(self.model, X).tolist()
        return said, list(said)

    def cost(self, rows: int, entries: int) -> int:
        """Multiplications of a prediction; see `HeadView.cost`."""
        if self.model is None:
            return 0
        values = rows * len(self.model.dual_coef)
        return cost_of_expansion(self.model.rows.exact, rows, entries) + values * _COST_OF_VALUE


class SemiparametricHead:
    """The window, the fit that is served, and its prequential score."""

    def __init__(self, spec: ModelSpec) -> None:
        own = spec.semiparametric
        assert own is not None
        self._own = own
        self._kernel = own.kernel or spec.kernel
        self._window = RecentSamples(own.window)
        self._score = Errors()
        self._fit: Fit | None = None
        self._model: SemiparametricView | None = None

    def check(self, samples: Samples, drafted: set[LabelKey], most_classes: int) -> set[LabelKey]:
        """Refuse rows that no refit could take; there are no labels to meet."""
        del most_classes
        if isinstance(samples.X, NamedRows):
            detail = "must be arrays of numbers: the bases of the semiparametric head count them"
            raise InvalidSamples(
                "a model with a semiparametric head does not take named numbers",
                [{"pointer": "/x", "detail": detail}],
            )
        self._check_width(samples.X.shape[1])
        check_norms(samples.X, self._largest_square_norm())
        return drafted

    def _check_width(self, width: int) -> None:
        wanted = max((getattr(basis, "feature", -1) for basis in self._own.basis), default=-1)
        if wanted >= width:
            detail = f"has {width} numbers; feature {wanted} of a basis function is beyond them"
            raise InvalidSamples(
                "the rows do not have the features that the spec's basis names",
                [{"row": 0, "pointer": "/x/0", "detail": detail}],
            )
        if width * self._own.window > LARGEST_WINDOW_NUMBERS:
            most = LARGEST_WINDOW_NUMBERS // self._own.window
            detail = f"has {width} numbers; a window of {self._own.window} rows takes {most}"
            raise InvalidSamples(
                "the rows are too long for the spec's window; choose a smaller one",
                [{"row": 0, "pointer": "/x/0", "detail": detail}],
            )

    def _largest_square_norm(self) -> float:
        kernel = kernel_with(self._kernel, 1.0)
        if kernel.type == "polynomial" and has_auto_gamma(self._kernel):
            return 1e12
        return min(largest_square_norm(kernel), _LARGEST_SQUARE_NORM)

    def absorb(self, X: Matrix, y: Targets) -> Answers:
        """Judge the fit on samples, then let them into the window; live and in replay."""
        assert not isinstance(y, list)
        rows = _dense(X)
        said = self._said(rows)
        judged = ~np.isnan(said)
        self._score.count((said - y)[judged])
        self._window.add(rows, y)
        told = [value if value == value else None for value in said.tolist()]
        return Answers(told, list(told))

    def _said(self, rows: Float64Array) -> Float64Array:
        """Predictions; NaN before the first fit, and where one is beyond what y can be."""
        if self._model is None:
            return np.full(len(rows), np.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            said = predict_semiparametric(self._model, rows)
        said[~(np.abs(said) <= LARGEST_TARGET)] = np.nan
        return said

    def window(self) -> tuple[Float64Array, Float64Array]:
        """The rows and targets to be fitted, copied, the oldest first."""
        return self._window.in_order()

    def adopt(self, fit: Fit) -> None:
        """From now on this fit is served."""
        self._model = view_from_arrays(fit.arrays, fit.model)
        self._fit = fit

    def view(self) -> FittedView:
        """What predictions and descriptions read from now on."""
        stats = {
            "window": len(self._window),
            "bytes": self._window.nbytes,
            "fit": self._fit.plain if self._fit else None,
            "prequential": self._score.told(),
        }
        return FittedView(self._model, stats)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain data and arrays from which `restore` goes on bit for bit."""
        plain: dict[str, Any] = {**self._score.state(), "fit": None}
        arrays = self._window.state()
        if self._fit:
            plain["fit"] = [self._fit.plain, self._fit.model]
            arrays |= {f"fit.{name}": array for name, array in self._fit.arrays.items()}
        return plain, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state."""
        self._score.restore(plain)
        self._window.restore(arrays)
        if plain["fit"]:
            own = {n.removeprefix("fit."): a for n, a in arrays.items() if n.startswith("fit.")}
            told, model = plain["fit"]
            self.adopt(Fit(told, model, own))


def _dense(X: Matrix) -> Float64Array:
    """The rows of a model that takes arrays only."""
    assert not isinstance(X, SparseRows)
    return X
