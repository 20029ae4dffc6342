"""A kind of head, described as data: which calls teach it, what it can do, how results are shown.

`heads.kinds` lists them all.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.array_checks import Arrays
from wolfstream.service.heads.fit import Fit, Observe, Window
from wolfstream.service.heads.scores import Score
from wolfstream.service.samples.targets import Label, Targets
from wolfstream.service.spec.heads import HeadName, LearningCall
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.rows.seen import Seen

H = TypeVar("H")


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
