"""The view of a working set, for both tasks: its members, their sequences, and its description."""

import math
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.kernel import check_norms
from wolfstream.service.heads.online_learner import cost_of_expansion
from wolfstream.solver.adaptive.gradients import Gradient
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.answers import Answer
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.stream.reasons import MemberPulls
from wolfstream.solver.working_set.summary import Sizes, Summary, summary_of
from wolfstream.solver.working_set.view import WorkingSetView

# Before the first sample, and for heads without an objective.
NO_CERTIFICATE: dict[str, Any] = dict.fromkeys(("objective", "gap", "relative_gap"))


def certificate(objective: Float64Array, gap: Float64Array) -> dict[str, Any]:
    """Return the sums of the pairs' objectives and gaps, and the worst pair's relative gap.

    The sum of the gaps bounds how far the sum of the objectives is from its optimum.

    Args:
        objective: the objective of each pair, (pairs,).
        gap: the gap of each pair, (pairs,); NaN where unknown, which makes the result None.
    """
    if len(gap) == 1:  # two classes, the usual case after each block: fast, without arrays
        value, only_gap = float(objective[0]), _known(float(gap[0]))
        relative = None if only_gap is None or value == 0.0 else only_gap / abs(value)
        return {"objective": value, "gap": only_gap, "relative_gap": relative}
    share = gap / np.where(objective != 0.0, np.abs(objective), math.nan)
    return {
        "objective": float(objective.sum()),
        "gap": _known(float(gap.sum())),
        "relative_gap": _known(float(share.max())),
    }


def gap_text(report: Mapping[str, Any]) -> str:
    """Return the gap of a report and the samples that it covers, as text."""
    if report["gap"] is None:
        return "no gap, because the kernel is not positive semidefinite on these samples"
    relative = "" if report["relative_gap"] is None else f", {report['relative_gap']:.2g} relative"
    return f"gap {report['gap']:.3g}{relative} over {report['gap_over']}"


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


_NAME = "sequences"
# With more changes than this, those that no member needs are dropped.
_MOST = 4096


class Sequences:
    """The model's sequence at which each of a head's samples came.

    A head numbers the samples that it has learned, 0, 1, 2, ...; the model's sequence counts the
    samples of all heads. Their difference changes when samples of another head come between, and
    after a rollback. Each change is stored for as long as the head has members that came after it.

    Views share the lists, which only grow, and are replaced when changes are dropped.
    """

    def __init__(self) -> None:
        # From number _first[k] on, sequence = number + _offset[k]; unknown before _first[0].
        self._first: list[int] = []
        self._offset: list[int] = []
        self._most = _MOST  # the number of changes above which some are dropped

    def note(self, seen: int, before: int, sequence: int) -> None:
        """Record the sequence up to which the head has learned.

        Args:
            seen: the number of samples that the head has learned.
            before: the number at the last call.
            sequence: the model's sequence, that of the last sample.
        """
        offset = sequence - seen + 1
        if not self._offset and sequence == seen:
            before = 0  # the head has learned all samples of the model
        if not self._offset or self._offset[-1] != offset:
            self._first.append(before)
            self._offset.append(offset)

    def of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sequence of each sample, given their numbers; -1 if unknown."""
        sequences = []
        for number in numbers.tolist():
            place = bisect_right(self._first, number) - 1
            sequences.append(number + self._offset[place] if number >= 0 <= place else -1)
        return np.array(sequences, np.int64)

    @property
    def crowded(self) -> bool:
        """Whether changes that no member needs should be dropped."""
        return len(self._first) > self._most

    def keep(self, numbers: NDArray[np.int64]) -> None:
        """Drop the changes that none of these samples needs, except the last."""
        places = np.searchsorted(np.array(self._first), numbers, side="right") - 1
        needed = sorted({*places[places >= 0].tolist(), len(self._first) - 1})
        self._first = [self._first[place] for place in needed]
        self._offset = [self._offset[place] for place in needed]
        self._most = max(_MOST, 2 * len(needed))

    def view(self) -> "Sequences":
        """Return an immutable view for other threads."""
        other = Sequences()
        other._first, other._offset = self._first, self._offset
        return other

    def state(self) -> dict[str, NDArray[Any]]:
        """Return an array for `restore`; nothing if nothing is known."""
        if not self._first:
            return {}
        return {_NAME: np.array([self._first, self._offset], np.int64)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        if _NAME in arrays:
            self._first, self._offset = arrays[_NAME].tolist()


_INDEFINITE = (
    "the kernel is not positive semidefinite on these samples: nothing certifies the objective, "
    "and predictions may be poor; create the model again with coef0 >= 0 or another kernel"
)
_ROUNDED = (
    "kernel values are so large that their rounding hides the objective: scale the features, or "
    "choose coef0 >= 0 for a polynomial kernel"
)


class StreamSetView(Protocol):
    """An immutable view of a set as a learner of a stream's model."""

    def predict(self, X: Matrix, /) -> Answer:
        """Return the set's predictions for finite rows."""

    def pulls(self, x: Matrix, wanted: int, other: int, /) -> MemberPulls | None:
        """Return how members pull one row to a class; None of a set without members."""

    def gradient(self, x: Float64Array, direction: Float64Array, /) -> Gradient:
        """Return the gradient of sum_k direction_k score_k, or of direction_0 times the value."""


class SetView(NamedTuple):
    """An immutable view of the set.

    Attributes:
        model: the solver's view; None before the first sample.
        learner: the learner's view, which predicts; None before the first sample.
        sizes: what else the description needs of the set; None before the first sample.
        past_nbytes: bytes of the past samples that are stored to estimate widths.
        more_stats: fields of the description about how the set learns.
        square_norm_limit: bound on ||x||^2 of a row.
        sequences: the model's sequences at which the samples came.
    """

    model: WorkingSetView | None
    learner: StreamSetView | None
    sizes: Sizes | Summary | None
    past_nbytes: int
    more_stats: dict[str, Any]
    square_norm_limit: float
    sequences: Sequences

    @property
    def stats(self) -> dict[str, Any]:
        """The set's part of the description, which few views are asked for."""
        model, sizes = self.model, self.sizes
        if model is None or sizes is None:
            return {"size": 0, "support_vectors": 0, **NO_CERTIFICATE, **self.more_stats}
        summary = sizes if isinstance(sizes, Summary) else summary_of(model, sizes)
        return {**set_stats(model, summary, self.past_nbytes), **self.more_stats}

    @property
    def learners(self) -> list[dict[str, Any]]:
        """An empty list: the head has a single learner."""
        return []

    @property
    def gauges(self) -> dict[str, float | None]:
        """The sizes of the set."""
        model, sizes = self.model, self.sizes
        if model is None or sizes is None:
            return {
                "set_size": 0,
                "support_vectors": 0,
                "head_memory_bytes": None,
                "indefinite": 0.0,
            }
        support = sizes.support_vectors if isinstance(sizes, Summary) else model.n_support
        return {
            "set_size": sizes.size,
            "support_vectors": support,
            "head_memory_bytes": sizes.nbytes + self.past_nbytes,
            "indefinite": float(sizes.indefinite),
        }

    def predict(self, X: Matrix, _: object = None) -> Answer:
        """Return codes or values, and decisions, for finite rows. Raises InvalidSamples."""
        assert self.learner is not None
        check_norms(X, self.square_norm_limit)
        return self.learner.predict(X)

    def pulls(self, x: Matrix, wanted: int, other: int) -> MemberPulls | None:
        """Return how members pull one row to a class; None of a set without members."""
        assert self.learner is not None
        pulls = self.learner.pulls(x, wanted, other)
        if pulls is None:
            return None
        return pulls._replace(sequence=self.sequences.of(pulls.sequence - 1))

    def gradient(self, x: Float64Array, direction: Float64Array, _: object = None) -> Gradient:
        """Return the gradient of sum_k direction_k score_k, or of direction_0 times the value."""
        assert self.learner is not None
        return self.learner.gradient(x, direction)

    def cost(self, rows: int, entries: int) -> int:
        """Return the number of multiplications of a prediction; see `HeadView.cost`."""
        return 0 if self.model is None else cost_of_expansion(self.model.rows.exact, rows, entries)


def set_stats(model: WorkingSetView, summary: Summary, past_nbytes: int) -> dict[str, Any]:
    """Return a set's part of a description.

    Args:
        model: the solver's view.
        summary: the solver's summary of the set.
        past_nbytes: bytes of the past samples that are stored to estimate widths.
    """
    stats = {
        "size": summary.size,
        "support_vectors": summary.support_vectors,
        **certificate(-model.q, model.gap),
        "bytes": summary.nbytes + past_nbytes,
        "work_per_sample": summary.work_per_sample,
    }
    # With a positive semidefinite kernel, an unknown gap means that q is all rounding error.
    hidden = not summary.indefinite and bool(np.isnan(model.gap).any())
    if hidden or summary.rounded:
        stats |= NO_CERTIFICATE
    if summary.indefinite:
        stats["warning"] = _INDEFINITE
    elif summary.rounded or hidden:
        stats["warning"] = _ROUNDED
    return stats
