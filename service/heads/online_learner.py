"""Interfaces of the online learner in a head, and of its view; what both cost."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.kernel import (
    check_norms,
    kernel_with,
    largest_product,
    square_norm_limit,
)
from wolfstream.service.samples.labels import Label
from wolfstream.service.spec.kernel import has_auto_gamma
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.bandwidth import Learner
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.prepare.named_rows import NamedRows, Rows
from wolfstream.solver.rows.answers import Answer
from wolfstream.solver.rows.head_rows import Hints
from wolfstream.solver.rows.matrix import Matrix, SparseRows, n_nonzeros, n_rows
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.stream.calibrated_classifier import LearnerView
from wolfstream.solver.stream.kernel_learner import Horizon, KernelLearner


class Batch(NamedTuple):
    """Facts about samples that a model is going to learn.

    Attributes:
        rows: the number of samples.
        block: the number of samples learned at a time.
        width: the numbers in a prepared row; for sparse rows, the stored numbers on average.
        features: the number of distinct features that the model will know.
        new_features: the number of features that are new to the model.
        sparse: whether rows have names instead of columns.
        texts: the number of texts in a row that a head may learn from.
        new_classes: the number of labels that are new to the model.
        changing: whether columns may still change, in which case heads are built again.
    """

    rows: int
    block: int
    width: int
    features: int
    new_features: int = 0
    sparse: bool = False
    texts: int = 0
    new_classes: int = 0
    changing: bool = False


def new_class_bytes(present: int, classes: int, new: int) -> int:
    """Return the bytes of new classes, assuming that each takes as much as a present one.

    Args:
        present: the bytes of the present classes.
        classes: the number of present classes.
        new: the number of new classes.
    """
    return present * new // max(classes, 1)


L = TypeVar("L", bound=Learner)


class HeadLearner(KernelLearner[L]):
    """A learner with the spec's kernel.

    Args:
        spec: the model's spec.
        build: returns a new solver with a kernel.
        horizon: see `KernelLearner`.
    """

    def __init__(
        self, spec: ModelSpec, build: Callable[[Kernel], L], horizon: Horizon = None
    ) -> None:
        self._spec_kernel = spec.kernel
        self._prepared = spec.prepare is not None
        # The last limit on ||x||^2, and the gamma for which it was computed.
        self._limit: tuple[float | None, float] = None, square_norm_limit(spec.kernel)
        super().__init__(
            kernel_with(spec.kernel, 1.0),
            build,
            auto=has_auto_gamma(spec.kernel),
            largest_product=largest_product(spec.kernel.type),
            horizon=horizon,
        )

    @property
    def estimated_widths(self) -> dict[str, float | None]:
        """The estimated widths, for the description; {} if the spec sets them."""
        gamma = self.gamma
        widths: dict[str, float | None] = {} if gamma is None else {"gamma": gamma}
        return {**widths, "horizon": self.horizon} if self._horizon == "auto" else widths

    def check(self, rows: Rows) -> None:
        """Refuse rows whose kernel values would overflow. Raises InvalidSamples.

        Rows of a model that prepares them need no check: preparation bounds them.
        """
        if not self._prepared or isinstance(rows, NamedRows):
            check_norms(rows, self.square_norm_limit())

    def square_norm_limit(self) -> float:
        """Return the largest ||x||^2 of a row that the learner accepts."""
        gamma = self.gamma
        if self._spec_kernel.type == "polynomial" and not self.frozen:
            gamma = None
        if gamma != self._limit[0]:
            self._limit = gamma, square_norm_limit(self._spec_kernel, gamma)
        return self._limit[1]


# Learns samples given their indices, rows, codes or targets, and weights; returns the predictions
# just before.
Relearn: TypeAlias = Callable[[NDArray[np.int64], Matrix, NDArray[Any], Weights], Answer]


class DescribedView(LearnerView, Protocol):
    """An immutable view of a learner in a head, which is also described."""

    @property
    def model(self) -> object | None:
        """The solver's view; None before the first sample."""

    @property
    def stats(self) -> dict[str, Any]:
        """The learner's part of the model's description."""

    @property
    def gauges(self) -> dict[str, float | None]:
        """Metric name -> value for monitoring; None while it is unknown."""

    @property
    def learners(self) -> list[dict[str, Any]]:
        """Descriptions of its learners, with their weights; [] if there is only one."""

    def cost(self, rows: int, entries: int) -> int:
        """Return the number of multiplications of a prediction.

        Args:
            rows: the number of rows.
            entries: the number of values in all rows; in sparse rows, of stored values.
        """


class OnlineLearner(Protocol):
    """Learns class codes or targets, in order."""

    def check(self, rows: Rows, /) -> None:
        """Raise InvalidSamples for rows that could not be learned."""

    def growth(self, batch: Batch, /) -> int:
        """Return an upper bound on the bytes that learning a batch adds."""

    @property
    def voters(self) -> tuple[str, ...]:
        """The names of the heads whose votes it gets."""

    def absorb(self, X: Matrix, y: NDArray[Any], hints: Hints, weight: Weights, /) -> Sequence[Any]:
        """Learn rows; return the answers of consecutive parts, with `prediction` and `decision`.

        Args:
            X: rows, (n, d).
            y: codes or targets, (n,).
            hints: the votes of other heads, and the rows' texts.
            weight: the weight of each sample, (n,); None if all are 1.
        """

    def columns(self, parts: Sequence[Any], /) -> dict[str, list[Any]]:
        """Return the columns of `Answers` besides prediction and decision."""

    def date(self, sequence: int, /) -> None:
        """Set the model's sequence, that of the last sample learned."""

    def keep_dates(self, former: Any, /) -> None:
        """Take over the sequences of the learner it replaces; both learned the same samples."""

    def relearning(self, samples: int, codes: Float64Array | None, /) -> Relearn:
        """Return a function that learns parts of samples, in one or more passes.

        Args:
            samples: the number of all samples, n.
            codes: the codes of their texts, (n, texts), if they have any.
        """

    def standing(self) -> dict[str, Any]:
        """Return the objective over the stored samples and its gap, if the learner has any."""

    def view(self) -> DescribedView:
        """Return an immutable view of the learner."""

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain data and arrays from which `restore` continues bit for bit."""

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], /) -> None:
        """Restore what `state` returned."""


class ClassLearner(OnlineLearner, Protocol):
    """An online learner of class codes."""

    def meet(self, label: Label, /) -> None:
        """Prepare for a new class, which gets the next code."""


class WithoutMembers:
    """Base of online learners that store no samples."""

    def date(self, _: int) -> None:
        """Do nothing: no stored sample has a sequence."""

    def keep_dates(self, _: object) -> None:
        """Do nothing: no stored sample has a sequence."""

    def columns(self, _: Sequence[Answer]) -> dict[str, list[Any]]:
        """Return {}: an answer has only predictions and decisions."""
        return {}

    def relearning(self: OnlineLearner, _: int, codes: Float64Array | None) -> Relearn:
        """Return a function that learns parts of samples, in one or more passes."""

        def relearn(part: NDArray[np.int64], X: Matrix, y: NDArray[Any], weight: Weights) -> Answer:
            answer: Answer
            hints = Hints(codes=None if codes is None else codes[part])
            (answer,) = self.absorb(X, y, hints, weight)
            return answer

        return relearn

    def standing(self) -> dict[str, Any]:
        """Return {}: there is no objective over all samples so far."""
        return {}


COST_OF_ROW = 1000
COST_OF_DECISION = 400  # of a row, including its text in the response
COST_OF_FUNCTION = 50  # a cosine or an exponential
COST_OF_CROSSED = 4000  # looking up the weights of a text, a code or a pair of them
_COST_OF_LOOKUP = 30  # finding a number of a sparse row


def cost_of_expansion(stored: Matrix, rows: int, entries: int) -> int:
    """Return the multiplications of a kernel expansion over stored rows; see `HeadView.cost`."""
    return rows * COST_OF_ROW + cost_of_products(stored, rows, entries)


def cost_of_products(stored: Matrix, rows: int, entries: int) -> int:
    """Return the multiplications of all products of rows with stored rows."""
    if isinstance(stored, SparseRows):
        # Each stored number is looked up once, and multiplied with each row at most once.
        lookups = _COST_OF_LOOKUP * n_nonzeros(stored)
        return lookups + rows * (n_rows(stored) + n_nonzeros(stored))
    return entries * n_rows(stored)
