"""The interfaces of a model's heads and of their views.

The life of a sample in a head: `check` before it is written to the log, `absorb` after, `view` for
everyone else, `state` and `restore` around a restart. What does not concern samples, such as how a
kind of head is built and reported, is in `heads.kind`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

from numpy.typing import NDArray

from wolfstream.service.heads.answers import Answers, Predictions
from wolfstream.service.heads.batch import Batch
from wolfstream.service.heads.changes import Change
from wolfstream.service.samples.labels import Label
from wolfstream.service.samples.tasks import Targets
from wolfstream.service.samples.validation import Costs, Samples
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.stream.explanations import Contest
from wolfstream.solver.stream.labels import LabelKey
from wolfstream.solver.stream.reasons import HeadGradient, MemberPulls
from wolfstream.solver.stream.votes import NO_INPUTS, HeadAnswer, HeadInputs


class HeadView(Protocol):
    """An immutable view of a head, which predicts and is described."""

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
    def label_counts(self) -> Sequence[int]:
        """How often each label was met; [] for a head of numbers."""

    @property
    def scores(self) -> dict[str, Any]:
        """Scores of classes, `recent` and `overall`; see `heads.class_scores`. {} for numbers."""

    @property
    def calibration(self) -> dict[str, Any]:
        """How good its probabilities, sets and intervals are; see `solver.calibration`."""

    @property
    def learners(self) -> list[dict[str, Any]]:
        """Descriptions of the head's learners, with their weights; [] if it is a single one."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """The last changes: rises of the loss of predictions; see `heads.changes`."""

    @property
    def n_changes(self) -> int:
        """The number of all changes."""

    def latest(self, n: int, /) -> list[tuple[Any, Any]]:
        """Return the last n predictions that were scored, and their labels or targets."""

    @property
    def source(self) -> dict[str, Any]:
        """The fields of a response that say what has predicted, besides the head's name."""

    @property
    def lacks(self) -> str:
        """Why it cannot predict yet, such as "has met no sample: one is needed"; "" if it can."""

    def predict(self, X: Matrix, inputs: HeadInputs = NO_INPUTS, /) -> Predictions:
        """Return predictions and decisions for finite rows. Raises Untrained, InvalidSamples.

        inputs: the votes of the other heads on the rows, and the rows' texts, if this head listens.
        """

    def probabilities(self, head_answer: HeadAnswer, /) -> dict[str, Any]:
        """Return `probability`, or for numbers `standard_deviation`: how certain predictions are.

        Raises Untrained if no label of a prediction has come yet that would tell.
        """

    def covering(self, head_answer: HeadAnswer, confidence: float, /) -> dict[str, Any]:
        """Return `prediction_set` or, for numbers, `prediction_interval`: what holds the truth.

        confidence: how often it should, between 0 and 1.

        Raises Untrained as `probabilities` does.
        """

    def cheapest(self, head_answer: HeadAnswer, costs: Costs, /) -> dict[str, Any]:
        """Return the labels with the least cost, as `prediction`, and their `expected_cost`.

        Raises Untrained as `probabilities` does, and InvalidSamples for labels that were not met
        and for heads of numbers.
        """

    def contests(self, head_answer: HeadAnswer, /) -> Sequence[Contest] | None:
        """See `solver.stream.explanations.ExplainableHead`."""

    def pulls(self, x: Matrix, wanted: int, other: int, /) -> MemberPulls | None:
        """See `solver.stream.explanations.ExplainableHead`."""

    def gradient(
        self, x: Float64Array, direction: Float64Array, inputs: HeadInputs, /
    ) -> HeadGradient:
        """See `solver.stream.reasons.DifferentiableHead`."""

    def cost(self, rows: int, entries: int) -> int:
        """Return the number of multiplications of a prediction, to decide where it may run.

        Args:
            rows: their number.
            entries: the numbers in all rows; of sparse rows only those that are given.
        """


class Head(Protocol):
    """A learner with its prequential score. Only the writer's thread uses it."""

    @property
    def classes(self) -> Sequence[Label] | None:
        """The labels met, in the order in which they came; None for a head of numbers."""

    def check(self, samples: Samples, drafted: set[LabelKey], most_classes: int) -> set[LabelKey]:
        """Refuse what could not be learned, before it is written to the log.

        Args:
            samples: of a request.
            drafted: new labels of samples that precede these in the log.
            most_classes: bound on the classes of a model.

        Returns the drafted labels with those that these samples bring. Raises InvalidSamples.
        """

    def growth(self, batch: Batch, /) -> int:
        """Return the bytes that the head may need beyond those that it has, at most.

        Samples are refused if there is no room for them. So an estimate may be too high, but it is
        0 where nothing grows.
        """

    def absorb(
        self,
        X: Matrix,
        y: Any,
        inputs: HeadInputs = NO_INPUTS,
        weight: Weights = None,
        earlier_predictions: Sequence[Any] | None = None,
        /,
    ) -> Answers:
        """Learn samples in order, each after it was predicted; the same live and in replay.

        Args:
            X: rows, (n, d).
            y: labels or targets, (n,), of the head's task.
            inputs: the votes of the other heads before they learned each row, and the rows' texts,
                if this head listens.
            weight: how much each sample counts in what is learned, (n,); in scores each counts
                once.
            earlier_predictions: what this head predicted when the rows came, long before their
                labels. The score counts that, and not what the head would predict by now.
        """

    def date_changes(self, sequence: int, /) -> None:
        """Set the model's sequence, for the samples and changes since the last call."""

    def keep_score(self, former: Self, /) -> None:
        """Take over the score of a head that learned the same samples in another form."""

    def view(self) -> HeadView:
        """Return what predictions and descriptions read from now on."""

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain data and arrays, from which `restore` goes on bit for bit."""

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take a state."""


class HeadWithPredictions(NamedTuple):
    """A head that learns rows which it predicted before; see `Head.absorb`."""

    head: Head
    earlier_predictions: Sequence[Any]

    def absorb(self, X: Matrix, y: Targets, inputs: HeadInputs, weight: Weights, /) -> Answers:
        """Let the head learn, and its score count what it predicted then."""
        return self.head.absorb(X, y, inputs, weight, self.earlier_predictions)
