"""The interface of a model's heads, which learn in order and publish views.

A head has five methods: `check` before samples enter the journal, `absorb` after, `view` for
everyone else, `state` and `restore` around a restart. `heads.kind` has the rest of one kind of
head.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

from numpy.typing import NDArray

from wolfstream.service.heads.answers import Answers, Predictions
from wolfstream.service.heads.changes import Change
from wolfstream.service.samples.targets import Label, Targets
from wolfstream.service.samples.validation import Samples
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.stream.explanations import Contest
from wolfstream.solver.stream.labels import LabelKey
from wolfstream.solver.stream.reasons import MemberPulls, Slope
from wolfstream.solver.stream.votes import NOTHING_HEARD, HeadAnswer, Heard


class HeadView(Protocol):
    """An immutable picture of a head: the model to predict with, and its description."""

    @property
    def classes(self) -> tuple[Label, ...] | None:
        """The labels met, in the order in which they came; None for a head of numbers."""

    @property
    def stats(self) -> dict[str, Any]:
        """The head's part of the model's description."""

    @property
    def gauges(self) -> dict[str, float | None]:
        """Numbers to watch, by the names of their metrics; None for one that is not known yet."""

    @property
    def rare_classes(self) -> list[Label]:
        """The labels that are so rare that they may be mistakes."""

    @property
    def calibration(self) -> dict[str, Any]:
        """The quality of its probabilities, sets and intervals; see `solver.calibration`."""

    @property
    def learners(self) -> list[dict[str, Any]]:
        """Describe each of the head's learners and its weight; empty if it is one learner."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """The last times at which the predictions became worse; see `heads.changes`."""

    @property
    def n_changes(self) -> int:
        """How often the predictions became worse in all."""

    def latest(self, n: int, /) -> list[tuple[Any, Any]]:
        """Return at most the last n predictions that were scored, and their labels or targets."""

    @property
    def source(self) -> dict[str, Any]:
        """The fields of a response that say what predicted, besides the head."""

    @property
    def lacks(self) -> str:
        """What must come before it can predict: "has met no sample: one is needed"; else ""."""

    def predict(self, X: Matrix, heard: Heard = NOTHING_HEARD, /) -> Predictions:
        """Return predictions and decisions for finite rows. Raises Untrained, InvalidSamples.

        heard: what the other heads predict for them, and their texts, if this one listens.
        """

    def probabilities(self, head_answer: HeadAnswer, /) -> dict[str, Any]:
        """Return how certain predictions are: `probability`, or `standard_deviation` for numbers.

        Raises Untrained if no label of a prediction has come yet that would tell.
        """

    def covering(self, head_answer: HeadAnswer, confidence: float, /) -> dict[str, Any]:
        """Return what contains the truth so often: `prediction_set`s, or `prediction_interval`s.

        confidence: between 0 and 1. Raises Untrained as `probabilities`.
        """

    def contests(self, head_answer: HeadAnswer, /) -> Sequence[Contest] | None:
        """See `solver.stream.explanations.Explaining`."""

    def pulls(self, x: Matrix, wanted: int, other: int, /) -> MemberPulls | None:
        """See `solver.stream.explanations.Explaining`."""

    def slope(self, x: Float64Array, direction: Float64Array, heard: Heard, /) -> Slope:
        """See `solver.stream.reasons.Sloped`."""

    def cost(self, rows: int, entries: int) -> int:
        """Return the multiplications of a prediction, to decide where it may run.

        entries: numbers in all rows, those that are not given left out if they are sparse.
        """


class Head(Protocol):
    """A learner with its prequential score. Only the writer's thread uses it."""

    @property
    def classes(self) -> Sequence[Label] | None:
        """The labels met, in the order in which they came; None for a head of numbers."""

    def check(self, samples: Samples, drafted: set[LabelKey], most_classes: int) -> set[LabelKey]:
        """Refuse what could not be learned, before it enters the journal.

        drafted: new labels of samples that precede these in the journal. Returns them with
        those that these bring. Raises InvalidSamples.
        """

    def absorb(
        self,
        X: Matrix,
        y: Targets,
        heard: Heard = NOTHING_HEARD,
        weight: Weights = None,
        foretold: Sequence[Any] | None = None,
        /,
    ) -> Answers:
        """Learn samples in order, test-then-train; the same for live requests and for replay.

        heard: the predictions of the other heads before they learned each row, and the rows' texts,
        if this one listens.
        weight: (n,) how much each sample counts in what is learned; in scores each counts once.
        foretold: what this head predicted when the rows came, long before their labels: the score
        counts it, and not what the head would predict by now.
        """

    def date_changes(self, sequence: int, /) -> None:
        """Set the model's sequence for the samples and changes since the last call."""

    def keep_score(self, former: Self, /) -> None:
        """Take over the score of a head that learned the same samples in another form."""

    def view(self) -> HeadView:
        """Return what predictions and descriptions read from now on."""

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain data and arrays from which `restore` goes on bit for bit."""

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state."""


class Foretelling(NamedTuple):
    """A head that learns rows which it predicted before; see `Head.absorb`."""

    head: Head
    foretold: Sequence[Any]

    def absorb(self, X: Matrix, y: Targets, heard: Heard, weight: Weights, /) -> Answers:
        """Have the head learn, and count what it predicted then."""
        return self.head.absorb(X, y, heard, weight, self.foretold)
