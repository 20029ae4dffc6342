"""The view of a working set, for both tasks, and its part of a description."""

from typing import Any, NamedTuple, Protocol

import numpy as np

from wolfstream.service.heads.certificate import NO_CERTIFICATE, certificate
from wolfstream.service.heads.cost import cost_of_expansion
from wolfstream.service.heads.kernel import check_norms
from wolfstream.service.heads.sequences import Sequences
from wolfstream.solver.adaptive.gradients import Gradient
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.stream.reasons import MemberPulls
from wolfstream.solver.stream.votes import Answer
from wolfstream.solver.working_set.summary import Sizes, Summary, summary_of
from wolfstream.solver.working_set.view import WorkingSetView

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
