"""The working set as a head of numbers: SFW or MSFW online, with a tube (P1, P2)."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.exercises import exercise
from wolfstream.service.heads.kind import KERNELS
from wolfstream.service.heads.online_learner import Batch, HeadLearner, Relearn
from wolfstream.service.heads.regression import RegressionHead
from wolfstream.service.heads.set_view import NO_CERTIFICATE, Sequences, SetView
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.spec.working_set import WorkingSetSpec
from wolfstream.solver.frank_wolfe.steps import STEP_NAMES
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.answers import Answer
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.stream.paper_learners import ValueSetLearnerView
from wolfstream.solver.working_set.regression import RegressionSet, ValueSetAnswers


def _new_set(spec: WorkingSetSpec, kernel: Kernel) -> RegressionSet:
    assert spec.epsilon is not None
    return RegressionSet(
        kernel,
        spec.C,
        spec.epsilon,
        spec.algorithm,
        spec.corrective_steps,
        spec.max_size,
        spec.gram_bytes_max,
    )


class RegressionSetLearner(HeadLearner[RegressionSet]):
    """A working set for regression, with the settings of a spec; an `OnlineLearner`."""

    voters = ()

    def __init__(self, spec: ModelSpec) -> None:
        assert spec.working_set is not None
        super().__init__(spec, partial(_new_set, spec.working_set))

    def growth(self, batch: Batch) -> int:
        """Return an upper bound on the bytes that learning a batch adds."""
        return self.current.growth(batch.rows, batch.block, batch.width)

    def columns(self, parts: Sequence[ValueSetAnswers]) -> dict[str, list[Any]]:
        """Return which samples were admitted to the set, and the kind of step of each."""
        return {
            "admitted": [bool(value) for part in parts for value in part.admitted],
            "step": [STEP_NAMES[kind] for part in parts for kind in part.step.tolist()],
        }

    def date(self, _: int) -> None:
        """Do nothing: the members of this set have no sequences."""

    def keep_dates(self, _: object) -> None:
        """Do nothing: the members of this set have no sequences."""

    def relearning(self, samples: int, _: object = None) -> Relearn:
        """Return a function that learns parts of n samples and stores no sample twice."""
        entered, learned = np.full(samples, -1, np.int64), 0

        def relearn(part: NDArray[np.int64], X: Matrix, y: NDArray[Any], weight: Weights) -> Answer:
            nonlocal learned
            if learned >= samples:  # another pass over samples too few to settle the set
                self.current.settle()
            learned += len(part)
            answers = self.current.absorb(X, y, entered[part], weight=weight)
            entered[part] = answers.entered
            return answers

        return relearn

    def standing(self) -> dict[str, Any]:
        """Return the objective and the duality gap of the set."""
        stats = self.view().stats
        return {**{name: stats[name] for name in NO_CERTIFICATE}, "gap_over": "the set"}

    def view(self) -> SetView:
        """Return an immutable view of the set."""
        learner = self.current
        model = learner_view = summary = None
        if learner.seen:
            model = learner.view()
            learner_view, summary = ValueSetLearnerView(model), learner.summary(model)
        limit, widths = self.square_norm_limit(), self.estimated_widths
        return SetView(model, learner_view, summary, 0, {**widths}, limit, Sequences())


def build(spec: ModelSpec) -> RegressionHead:
    """Return a new regression head for a spec."""
    return RegressionHead(RegressionSetLearner(spec))


def specs() -> Iterator[ModelSpec]:
    """Yield each kernel with a set small enough to evict samples, and rbf in both precisions."""
    for kernel, C in (*((kernel, 1.0) for kernel in KERNELS), ("rbf", 1e6)):
        working_set = {"max_size": 16, "corrective_steps": 1, "C": C}
        spec = {"kernel": {"type": kernel}, "working_set": working_set, "asset": None}
        yield ModelSpec.model_validate({**spec, "task": "regression"})


def exercise_tube(spec: ModelSpec, sparse: bool) -> None:
    """Run all that a set of numbers does, including what it does only after many steps."""
    learners: list[RegressionSetLearner] = []

    def built(spec: ModelSpec) -> RegressionHead:
        learners.append(RegressionSetLearner(spec))
        return RegressionHead(learners[-1])

    exercise(built, spec, sparse)
    learners[0].current.set.refresh()


def compiled_code(spec: ModelSpec) -> tuple[str, ...]:
    """Return what the compiled code depends on: the kernel, and the type of its values."""
    precision = RegressionSetLearner(spec).current.set.precision
    return "regression", spec.kernel.type, precision.dtype.name
