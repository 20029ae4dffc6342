"""A solver that learns online for one kernel, whose gamma the stream settles if it is "auto"."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.bandwidth import AutoGamma, Learner
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import Matrix, SparseRows, largest_feature
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.stream.labels import Label
from wolfstream.solver.stream.moved_classes import FollowingSet
from wolfstream.solver.stream.paper_learners import SetLearnerView
from wolfstream.solver.stream.votes import Answer
from wolfstream.solver.working_set.auto_widths import AutoWidths
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.past import MOST_KEPT
from wolfstream.solver.working_set.summary import Summary
from wolfstream.solver.working_set.view import WorkingSetView
from wolfstream.solver.working_set.width_search import NEVER

L = TypeVar("L", bound=Learner)

# In how many samples members of a working set fade; "auto" finds it, with None they never do.
Horizon: TypeAlias = Literal["auto"] | int | None
# Wider rows are learned without a horizon: a past of them would take too much memory.
_MOST_COLUMNS = 2048


class SetFigures(NamedTuple):
    """A working set that has met a class, and figures for its description.

    view: to predict with. members: the set of it. past_nbytes: see `KernelLearner`.
    search_work_per_sample: see `AutoWidths`; 0 where there is no search.
    """

    view: SetLearnerView
    members: WorkingSetView
    summary: Summary
    past_nbytes: int
    search_work_per_sample: int


class KernelLearner(Generic[L]):
    """A learner of a kernel. It does not listen to other heads.

    kernel: with the gamma to begin with. auto: whether the first samples settle gamma. build:
    makes a fresh learner for a kernel. largest_product: of `kernels.bandwidth.gamma_from_rows`.
    horizon: of a working set with an rbf kernel, in samples (`working_set.auto_widths`); it is
    for dense rows of at most 2,048 numbers. With "auto", gamma is found as it is there.
    gamma: the estimate so far; None if gamma is given. horizon: in how many samples members
    fade at present; None if they do not.
    features: of sparse rows, one more than the largest feature number that was learned.
    """

    def __init__(
        self,
        kernel: Kernel,
        build: Callable[[Kernel], L],
        *,
        auto: bool,
        largest_product: float = math.inf,
        horizon: Horizon = None,
    ) -> None:
        self.features = 0
        self.gamma: float | None = None
        self.horizon: float | None = None
        self._horizon = horizon
        self._kernel, self._build, self._is_auto = kernel, build, auto
        self._following: FollowingSet | None = None
        self._auto: AutoGamma[L] | None = None
        self._fixed: L | None = None
        if auto:
            self._auto = AutoGamma(partial(_build_with, build, kernel), largest_product)
            self._note_widths()
        else:
            self._fixed = build(kernel)

    @property
    def following(self) -> FollowingSet | None:
        """The working set whose members fade; None of other learners."""
        return self._following

    @property
    def _fading(self) -> AutoWidths | None:
        return None if self._following is None else self._following.set

    @property
    def current(self) -> L:
        """The learner; another one whenever its widths are found again."""
        if self._fading is not None:
            return cast(L, self._fading.learner)
        learner = self._auto.learner if self._auto else self._fixed
        assert learner is not None
        return learner

    def _note_widths(self) -> None:
        fading = self._fading
        if self._auto is not None:
            self.gamma = self._auto.gamma if fading is None else fading.widths.gamma
        if fading is not None:
            self.horizon = None if fading.widths.horizon == NEVER else fading.widths.horizon

    @property
    def seen(self) -> int:
        """How many samples a working set has seen."""
        if self._fading is not None:
            return self._fading.seen
        learner = self.current
        assert isinstance(learner, WorkingSet)
        return learner.seen

    def kept_numbers(self) -> NDArray[np.int64]:
        """The places, among all samples that a working set has seen, of those that may be members.

        In ascending order, from 0; those that are not known are left out.
        """
        if self._fading is not None:
            return self._fading.kept_numbers()
        learner = self.current
        assert isinstance(learner, WorkingSet)
        numbers = learner.store.number[learner.store.held_slots()]
        return np.sort(numbers[numbers >= 0])

    @property
    def past_nbytes(self) -> int:
        """The bytes that are kept to find the widths, and to see classes move."""
        return 0 if self._following is None else self._following.past_nbytes

    def past_growth(self, columns: int) -> int:
        """Return the most bytes by which that can grow with rows of so many columns.

        Once it has half of what it can take, it has nearly all of what it will.
        """
        if self._horizon is None:
            return 0
        most, held = past_bytes(columns), self.past_nbytes
        return most - held if 2 * held < most else 0

    def figures(self) -> SetFigures | None:
        """Return the figures of a working set; None before its first class."""
        learner = self.current
        assert isinstance(learner, WorkingSet)
        if not learner.n_classes:
            return None
        members = learner.view()
        fading = self._fading
        view = SetLearnerView(members if fading is None else fading.timed(members))
        work = 0 if fading is None else fading.search_work_per_sample
        return SetFigures(view, members, learner.summary(members), self.past_nbytes, work)

    def view(self) -> Any:
        """Return an immutable view of the learner; of one whose members fade, a `TimedView`."""
        return self.current.view() if self._fading is None else self._fading.view()

    @property
    def frozen(self) -> bool:
        """Whether gamma is final."""
        return self._auto is None or self._auto.frozen

    def meet(self, label: Label) -> None:
        """A class needs no preparation."""

    def absorb(
        self, X: Matrix, y: NDArray[Any], _: object = None, weight: Weights = None
    ) -> list[Answer]:
        """Learn rows with class numbers or targets; returns the learner's answers part by part."""
        if self._fades(X):
            if self._following is None:
                self._following = self.new_following()
            faded = self._following.absorb(X, y, weight)
            self._note_widths()
            return list(faded)
        if self._auto:
            answers = [answer for _, answer in self._auto.absorb(X, y, weight)]
            self._note_widths()
        else:
            answers = [self.current.absorb(X, y, weight=weight)]
        if isinstance(X, SparseRows):
            self.features = max(self.features, largest_feature(X) + 1)
        return answers

    def _fades(self, X: Matrix) -> TypeGuard[Float64Array]:
        if self._horizon is None or isinstance(X, SparseRows):
            return False
        return bool(X.shape[1] <= _MOST_COLUMNS)

    def _new_fading(self) -> AutoWidths:
        gamma = None if self._is_auto else self._kernel.gamma
        horizon = None if self._horizon == "auto" else float(self._horizon or NEVER)
        build = cast(Callable[[Kernel], WorkingSet], self._build)
        return AutoWidths(partial(_build_with, build, self._kernel), gamma, horizon)

    def new_learner(self, kernel: Kernel) -> L:
        """Return a new learner for a kernel, whose gamma is a number."""
        return self._build(kernel)

    def new_following(self) -> FollowingSet:
        """Return a working set whose members fade, before its first sample."""
        return FollowingSet(self._new_fading())

    def go_on_from(self, learner: L | FollowingSet, like: "KernelLearner[L]") -> None:
        """Have a learner that was made of others; like: one of these, with the same parameters."""
        self.features = like.features
        if isinstance(learner, FollowingSet):
            self._following = learner
        elif self._auto is None:
            self._fixed = learner
        else:
            assert like.gamma is not None
            self._auto.go_on_from(learner, like.gamma)
        self._note_widths()

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain data and arrays from which `restore` goes on bit for bit."""
        own = self._following or self._auto or self.current
        return {"features": self.features}, own.state()

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state."""
        self.features = plain["features"]
        if "widths" in arrays:
            self._following = self.new_following()
            self._following.restore(arrays)
        elif self._auto:
            self._auto.restore(arrays)
        else:
            self.current.restore(arrays)
        self._note_widths()


def past_bytes(columns: int) -> int:
    """Return the most bytes of the past that a horizon asks for, of dense rows."""
    return 0 if columns > _MOST_COLUMNS else MOST_KEPT * columns * 8


def _build_with(build: Callable[[Kernel], L], kernel: Kernel, gamma: float) -> L:
    return build(kernel._replace(gamma=gamma))
