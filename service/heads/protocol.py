"""The interface of a model's heads, which learn in order and publish views.

A head has five methods: `check` before samples enter the journal, `absorb` after, `view` for
everyone else, `state` and `restore` around a restart. A `Kind` describes the rest of one kind of
head as data: which calls teach it, what else it can do, how its results are shown. `kinds` lists
them all.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.heads.answers import Answers, Predictions
from service.heads.array_checks import Arrays
from service.heads.changes import Change
from service.heads.fit import Fit, Observe, Window
from service.heads.scores import Score
from service.samples.targets import Label, Targets
from service.samples.validation import Samples
from service.spec.heads import HeadName, LearningCall
from service.spec.model import ModelSpec
from solver.arrays import Float64Array
from solver.kernels.functions import Kernel
from solver.rows.matrix import Matrix
from solver.rows.sample_weights import Weights
from solver.rows.seen import Seen
from solver.stream.explanations import Contest
from solver.stream.labels import LabelKey
from solver.stream.reasons import MemberPulls, Slope
from solver.stream.votes import NOTHING_HEARD, HeadAnswer, Heard

H = TypeVar("H")


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


class Passes(Protocol):
    """Learning the same samples again and again, without a server."""

    @property
    def score(self) -> Score:
        """Return a score that has counted nothing yet."""

    def learn(self, part: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        """Learn the samples of these numbers; what the score counts of the predictions before."""

    def standing(self) -> dict[str, Any]:
        """Return `objective`, `gap` and what the gap is over; empty if there is no objective."""


class Asked(NamedTuple):
    """What `wolfstream train` was asked for, of which a head makes its part of the spec.

    options: those of `spec.heads.HEAD_OPTIONS` that have a value, except class weights.
    weights: of classes, as the spec has them. samples: how many there are.
    """

    algorithm: str
    options: Mapping[str, Any]
    weights: list[dict[str, Any]]
    tol: float
    samples: int


@dataclass(frozen=True)
class Refitting(Generic[H]):
    """How a head is refitted to a window of recent samples.

    window: copies of its rows, targets and weights, the oldest first. solve: fits a window on any
    thread, for a job of this id (None without a server). adopt: serves a fit from now on.
    """

    window: Callable[[H], tuple[Float64Array, Float64Array, Weights]]
    solve: Callable[[Window, str | None, Observe], Fit]
    adopt: Callable[[H, Fit], None]


class PairsProblem(NamedTuple):
    """What a batch solver is given besides the rows: each one's class number and ridge, (n,)."""

    kernel: Kernel
    codes: NDArray[np.int64]
    ridge: Float64Array


@dataclass(frozen=True)
class Pairs(Generic[H]):
    """How a head takes over the solutions of a batch solver.

    problem: of all labels, which the head meets. most: bound on the support vectors.
    spec_with: returns the spec with room for them, given the requested bound, if any.
    adopt: takes over support vectors, their class numbers and weights, into a fresh head.
    """

    problem: Callable[[H, list[Label]], PairsProblem]
    most: int
    spec_with: Callable[[ModelSpec, int, int | None], ModelSpec]
    adopt: Callable[[H, list[Label], Matrix, NDArray[np.int64], Float64Array], None]


class SavedHead(NamedTuple):
    """A head as a model file has it, before anything of it is trusted.

    plain, arrays: of its state, without its calibration. width: of prepared rows; None if they are
    sparse. texts: how many texts and codes of each row it crosses.
    """

    plain: Mapping[str, Any]
    arrays: Arrays
    width: int | None
    texts: int


@dataclass(frozen=True)
class Kind(Generic[H]):
    """One kind of head.

    build: a fresh one, as the spec asks for it.
    calls: the learning calls whose journal entries and responses name it. learns_all: whether
        samples of the other calls teach it, too. listens: whether it hears the others' votes
        and the rows' texts.
    prepared: whether it needs prepared rows.
    specs, exercises: models that between them reach all code that this kind compiles, and what
        compiles it for one of them, on dense or on sparse rows; several, by name, where they can
        be compiled side by side, the longest first. later: such code that only some data reach, so
        that no start and no request waits until it is compiled. code: what of a spec decides which
        compiled code its head runs.
    spec_part: its part of the spec for `wolfstream train`.
    reported: what a report of training takes from its description. outcome, summary: a report's
        result in a phrase, and in a few lines.
    passes, pairs, refitting: how it is trained in these ways; None if it is not.
    merge: makes a fresh one that of all samples that several have learned; raises ValueError for
        heads that cannot be merged.
    check_saved: raises WrongArrays unless what a saved head has belongs together, given a fresh one
        of the spec; None where `engine.saved_arrays` knows all of its arrays.
    beside: what its view says of rows beside another head's prediction, in a column of its name;
        None for a head that predicts. One that has it predicts nothing.
    """

    name: HeadName
    build: Callable[[ModelSpec], H]
    calls: tuple[LearningCall, ...]
    specs: Callable[[], Iterator[ModelSpec]]
    exercises: Mapping[str, Callable[[ModelSpec, bool], None]]
    code: Callable[[ModelSpec], Hashable]
    spec_part: Callable[[Asked], dict[str, Any]]
    reported: tuple[str, ...]
    outcome: Callable[[Mapping[str, Any]], str]
    summary: Callable[[Mapping[str, Any]], list[str]]
    later: Mapping[str, Callable[[ModelSpec, bool], None]] = field(default_factory=dict)
    learns_all: bool = False
    listens: bool = False
    prepared: bool = False
    passes: Callable[[H, Seen, Targets], Passes] | None = None
    pairs: Pairs[H] | None = None
    refitting: Refitting[H] | None = None
    merge: Callable[[H, Sequence[H]], None] | None = None
    check_saved: Callable[[H, SavedHead], None] | None = None
    beside: Callable[[Any, Matrix], list[Any]] | None = None
