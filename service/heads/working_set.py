"""The working set as a head of classes: SFW or MSFW online (P1).

For regression, `KIND` builds the head of `regression_set` instead.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads import regression_set
from wolfstream.service.heads.classification import ClassificationHead
from wolfstream.service.heads.exercises import (
    exercise_adoption,
    exercise_classes,
    exercise_eviction,
    exercise_heirs,
    exercise_predictions,
    exercise_wide_rows,
    rows_of_kind,
)
from wolfstream.service.heads.kernel import check_norms
from wolfstream.service.heads.kind import (
    KERNELS,
    Exercise,
    Kind,
    Pairs,
    PairsProblem,
    TrainingChoice,
)
from wolfstream.service.heads.new_head import by_task
from wolfstream.service.heads.online_learner import Batch, HeadLearner, Relearn
from wolfstream.service.heads.saved_set import SET_NUMBERS, check_set
from wolfstream.service.heads.set_view import (
    NO_CERTIFICATE,
    Sequences,
    SetView,
    gap_text,
)
from wolfstream.service.samples.labels import Label
from wolfstream.service.spec.heads import DEFAULT_SET, LARGEST_SET
from wolfstream.service.spec.kernel import has_auto_gamma
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.spec.working_set import WorkingSetSpec, weights_by_label
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.frank_wolfe.steps import STEP_NAMES
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.labels import key_of
from wolfstream.solver.rows.answers import Answer
from wolfstream.solver.rows.matrix import Matrix, take_rows
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.stream.paper_learners import new_working_set
from wolfstream.solver.stream.parameters import SetParameters
from wolfstream.solver.working_set.answers import SetAnswers
from wolfstream.solver.working_set.learner import WorkingSet


def _new_set(
    spec: WorkingSetSpec,
    compact: bool,
    weights: Sequence[float],
    heaviest: float,
    kernel: Kernel,
) -> WorkingSet:
    """Return an empty set.

    Args:
        spec: the head's part of the model's spec.
        compact: see `new_working_set`.
        weights: of the known classes, by code.
        heaviest: the largest weight that a class may have.
        kernel: with a number as gamma.
    """
    parameters = SetParameters(
        spec.algorithm,
        spec.C,
        spec.corrective_steps,
        spec.max_size,
        spec.gram_bytes_max,
        scores=spec.scores,
    )
    return new_working_set(kernel, parameters, weights, heaviest, compact=compact)


class SetLearner(HeadLearner[WorkingSet]):
    """A working set with the settings of a spec; a `ClassLearner`."""

    voters = ()  # it learns without the other heads' votes

    def __init__(self, spec: ModelSpec) -> None:
        working_set = spec.working_set
        assert working_set is not None
        self._weight_of = weights_by_label(working_set.class_weight)
        # The weights of the known classes, by code. A new set starts with them.
        self._weights: list[float] = []
        self._sequences = Sequences()  # of the samples seen
        self._dated = 0  # samples seen at the last call of `date`
        heaviest = max([1.0, *self._weight_of.values()])
        # Who names a width, or has no bank, wants the set itself: exact to its last bits.
        compact = spec.adaptive is not None and has_auto_gamma(spec.kernel)
        build = partial(_new_set, working_set, compact, self._weights, heaviest)
        super().__init__(spec, build, working_set.horizon)

    def growth(self, batch: Batch) -> int:
        """Return an upper bound on the bytes that learning a batch adds."""
        past = self.past_growth(0 if batch.sparse else batch.width)
        return past + self.current.growth(batch.rows, batch.block, batch.width)

    def meet(self, label: Label) -> None:
        """Give a new class its weight."""
        weight = self._weight_of.get(key_of(label), 1.0)
        self._weights.append(weight)
        self.current.ridges.class_weight.append(weight)

    def date(self, sequence: int) -> None:
        """Set the model's sequence, that of the last sample learned."""
        seen = self.seen
        self._sequences.note(seen, self._dated, sequence)
        self._dated = seen
        if self._sequences.crowded:
            self._sequences.keep(self.kept_numbers())

    def keep_dates(self, former: Self) -> None:
        """Take over the sequences of the learner it replaces; both learned the same samples."""
        self._sequences, self._dated = former._sequences, former._dated

    def columns(self, parts: Sequence[SetAnswers]) -> dict[str, list[Any]]:
        """Return which samples were admitted to the set, and the kind of step of each."""
        return {
            "admitted": [bool(value) for part in parts for value in part.admitted],
            "step": [_STEPS[bits] for part in parts for bits in part.step.tolist()],
        }

    def relearning(self, samples: int, _: object = None) -> Relearn:
        """Return a function that learns parts of n samples, again and again, and stores none twice.

        Args:
            samples: n.
        """
        # (n,) the numbers under which samples were stored; -1 where one was not.
        entered = np.full(samples, -1, np.int64)

        def relearn(
            part: NDArray[np.int64], X: Matrix, codes: NDArray[np.int64], weight: Weights
        ) -> Answer:
            answers = self.current.absorb(X, codes, entered[part], weight)
            entered[part] = answers.entered
            return answers

        return relearn

    def standing(self) -> dict[str, Any]:
        """Return the objective and the duality gap of the set."""
        stats = self.view().stats
        return {**{name: stats[name] for name in NO_CERTIFICATE}, "gap_over": "the set"}

    def view(self) -> SetView:
        """Return an immutable view of the set."""
        learner = model = sizes = None
        more, past_nbytes = self.estimated_widths, 0
        if (figures := self.figures()) is not None:
            learner, model, sizes, past_nbytes, work = figures
            more = {"search_work_per_sample": work, **more}
        limit, sequences = self.square_norm_limit(), self._sequences.view()
        return SetView(model, learner, sizes, past_nbytes, more, limit, sequences)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain data and arrays from which `restore` continues bit for bit."""
        plain, arrays = super().state()
        return plain, arrays | self._sequences.state()

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        super().restore(plain, arrays)
        self._sequences.restore(arrays)
        self._dated = self.seen


def _step_names(bits: int) -> str:
    """Return the names of the kinds of steps that a sample took, joined by +.

    bits: bit k is set if the problem of any pair of classes took a step of kind k.
    """
    return "+".join(name for kind, name in enumerate(STEP_NAMES) if bits >> kind & 1)


# Bits -> names.
_STEPS = [_step_names(bits) for bits in range(1 << len(STEP_NAMES))]


def _build(spec: ModelSpec) -> ClassificationHead[SetLearner]:
    return ClassificationHead(SetLearner(spec))


def _specs() -> Iterator[ModelSpec]:
    """Yield each kernel with a set small enough to evict samples, and rbf in both precisions."""
    for kernel, C in (*((kernel, 1.0) for kernel in KERNELS), ("rbf", 1e6)):
        working_set = {"max_size": 64, "corrective_steps": 1, "C": C}
        spec = {"kernel": {"type": kernel}, "working_set": working_set, "asset": None}
        yield ModelSpec.model_validate(spec)
    yield from regression_set.specs()


def _exercise_steps(spec: ModelSpec, sparse: bool) -> None:
    """Learn so few rows that none is evicted; another part compiles eviction."""
    learner, X = SetLearner(spec).current, rows_of_kind(sparse)
    for rows in (slice(0, 1), slice(1, 40)):
        part = take_rows(X, rows)
        learner.absorb(part, np.arange(rows.stop - rows.start) % 2)


def _exercise_predictions(spec: ModelSpec, sparse: bool) -> None:
    fresh, restored = SetLearner(spec).current, SetLearner(spec).current
    X = rows_of_kind(sparse)
    exercise_predictions(fresh, restored, X)
    check_norms(X, math.inf)


def _exercise_wide_rows(spec: ModelSpec, sparse: bool) -> None:
    if not sparse:
        exercise_wide_rows(SetLearner(spec).current)


def _exercise_members(
    run: Callable[[WorkingSet, Matrix], object],
) -> Callable[[ModelSpec, bool], None]:
    def exercise(spec: ModelSpec, sparse: bool) -> None:
        run(SetLearner(spec).current, rows_of_kind(sparse))

    return _for_classes(exercise)


def _exercise_classes(spec: ModelSpec, sparse: bool) -> None:
    fresh, restored = SetLearner(spec).current, SetLearner(spec).current
    exercise_classes(fresh, restored, rows_of_kind(sparse))


def _for_classes(exercise: Exercise) -> Exercise:
    """Return an exercise that skips regression, whose set is compiled as one part."""
    return by_task({"classification": exercise})


def _code(spec: ModelSpec) -> tuple[str, ...]:
    """Return what the compiled code depends on: the kernel, and the type of its values."""
    return spec.kernel.type, SetLearner(spec).current.precision.dtype.name


def _spec_part(choice: TrainingChoice) -> dict[str, Any]:
    """Return the head's part of a spec.

    A batch solution is trained further by MSFW. The horizon is None: in passes over a file no
    sample is older than others.
    """
    return {
        "max_size": DEFAULT_SET,
        **choice.options,
        "horizon": None,
        "algorithm": choice.algorithm if choice.algorithm in ("sfw", "msfw") else "msfw",
        "class_weight": choice.weights,
    }


def _problem(head: ClassificationHead[SetLearner], labels: list[Label]) -> PairsProblem:
    codes = np.array(head.meet(labels), np.int64)
    learner = head.learner.current
    ridge = learner.ridges.class_ridges(len(head.classes))
    return PairsProblem(learner.kernel, codes, ridge[codes])


def _spec_with(spec: ModelSpec, support_vectors: int, requested: int | None) -> ModelSpec:
    """Return the spec with twice the room that the support vectors need, or the requested bound."""
    assert spec.working_set is not None
    with_room = min(max(DEFAULT_SET, 2 * support_vectors), LARGEST_SET)
    bound = max(requested or with_room, support_vectors)
    working_set = spec.working_set.model_copy(update={"max_size": bound})
    return spec.model_copy(update={"working_set": working_set})


def _adopt(
    head: ClassificationHead[SetLearner],
    classes: list[Label],
    X: Matrix,
    codes: NDArray[np.int64],
    alpha: Float64Array,
) -> None:
    """Begin with a batch solution; see `WorkingSet.adopt`."""
    head.meet(classes)
    head.learner.current.adopt(X, codes, alpha)


def _outcome(report: Mapping[str, Any]) -> str:
    return f"{report['support_vectors']:,} support vectors, {gap_text(report)}"


def _summary(report: Mapping[str, Any]) -> list[str]:
    stopped = ""
    if not report["complete"] and report["gap_over"] == "all samples":
        stopped = ", above --tol"
    return [
        f"{report['support_vectors']:,} support vectors, {report['size']:,} samples in the set",
        f"objective {report['objective']:.6g}, {gap_text(report)}{stopped}",
    ]


KIND: Kind[Any] = Kind(
    name="working_set",
    build=by_task({"classification": _build, "regression": regression_set.build}),
    calls=("samples",),
    specs=_specs,
    exercises={
        "steps": by_task(
            {"classification": _exercise_steps, "regression": regression_set.exercise_tube}
        ),
        "predictions": _for_classes(_exercise_predictions),
        # In this order the two compiling processes finish at about the same time, and adoption is
        # compiled before the other parts adopt. Heirs are the members that take over the weight of
        # evicted ones.
        "heirs": _exercise_members(exercise_heirs),
        "eviction": _exercise_members(exercise_eviction),
        "adoption": _exercise_members(exercise_adoption),
    },
    later={
        "three classes": _for_classes(_exercise_classes),
        "wide rows": _for_classes(_exercise_wide_rows),
    },
    code=by_task({"classification": _code, "regression": regression_set.compiled_code}),
    check_saved=lambda head, saved: check_set(saved, of_numbers=head.classes is None),
    numbers=SET_NUMBERS,
    spec_part=_spec_part,
    reported=("size", "support_vectors"),
    outcome=_outcome,
    summary=_summary,
    passes=lambda head, X, y, weight: head.passes(X, y, weight),
    pairs=Pairs(_problem, LARGEST_SET, _spec_with, _adopt),
)
