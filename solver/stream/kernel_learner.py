"""An online solver for one kernel, whose gamma is chosen from the stream if it is "auto"."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.bandwidth import AutoGamma, Learner
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.labels import Label
from wolfstream.solver.rows.answers import Answer
from wolfstream.solver.rows.matrix import Matrix, SparseRows, largest_feature
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.stream.paper_learners import SetLearnerView
from wolfstream.solver.stream.relabelling import RelabellingSet
from wolfstream.solver.working_set.auto_widths import AutoWidths
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.past import MOST_KEPT
from wolfstream.solver.working_set.summary import Sizes
from wolfstream.solver.working_set.view import WorkingSetView
from wolfstream.solver.working_set.width_search import NEVER

L = TypeVar("L", bound=Learner)

# Samples after which members of a working set fade; "auto" chooses it, with None they never fade.
Horizon: TypeAlias = Literal["auto"] | int | None
# Wider rows are learned without a horizon: past rows would take too much memory.
_MOST_COLUMNS = 2048


class SetFigures(NamedTuple):
    """A view of a working set that has met a class, and figures for its description."""

    view: SetLearnerView
    members: WorkingSetView
    sizes: Sizes  # for `summary_of`
    past_nbytes: int  # see `KernelLearner`
    search_work_per_sample: int  # see `AutoWidths`; 0 without a search


class KernelLearner(Generic[L]):
    """A learner for a kernel. It takes no votes of other heads.

    kernel: with the gamma to begin with.
    build: returns a learner for a kernel that has learned nothing.
    auto: whether gamma is chosen from the first samples.
    largest_product: see `kernels.bandwidth.gamma_from_rows`.
    horizon: of a working set with an rbf kernel, in samples (`working_set.auto_widths`), which also
        chooses an "auto" gamma; only for dense rows of at most 2,048 numbers.
    gamma: the chosen gamma so far; None if gamma is given.
    features: of sparse rows, one more than the largest feature number that was learned.

    The attribute `horizon` is the number of samples after which members fade at present; None if
    they do not.
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
        self._kernel, self.build, self._is_auto = kernel, build, auto
        self._relabelling_set: RelabellingSet | None = None
        self._auto: AutoGamma[L] | None = None
        self._fixed: L | None = None
        if auto:
            self._auto = AutoGamma(partial(_build_with, build, kernel), largest_product)
            self._update_widths()
        else:
            self._fixed = build(kernel)

    @property
    def relabelling_set(self) -> RelabellingSet | None:
        """The working set whose members fade; None of other learners."""
        return self._relabelling_set

    @property
    def _fading(self) -> AutoWidths | None:
        return None if self._relabelling_set is None else self._relabelling_set.set

    @property
    def current(self) -> L:
        """The learner; it is replaced whenever widths are chosen again."""
        if self._fading is not None:
            return cast(L, self._fading.learner)
        learner = self._auto.learner if self._auto else self._fixed
        assert learner is not None
        return learner

    def _update_widths(self) -> None:
        fading = self._fading
        if self._auto is not None:
            self.gamma = self._auto.gamma if fading is None else fading.widths.gamma
        if fading is not None:
            self.horizon = None if fading.widths.horizon == NEVER else fading.widths.horizon

    @property
    def seen(self) -> int:
        """The number of samples that a working set has seen."""
        if self._fading is not None:
            return self._fading.seen
        learner = self.current
        assert isinstance(learner, WorkingSet)
        return learner.seen

    def kept_numbers(self) -> NDArray[np.int64]:
        """Return the numbers of the samples that are stored and may be members, ascending from 0.

        Samples whose number is not known are left out.
        """
        if self._fading is not None:
            return self._fading.kept_numbers()
        learner = self.current
        assert isinstance(learner, WorkingSet)
        numbers = learner.store.number[learner.store.occupied_slots()]
        return np.sort(numbers[numbers >= 0])

    @property
    def past_nbytes(self) -> int:
        """Bytes of past samples, which choose widths and detect permuted labels."""
        return 0 if self._relabelling_set is None else self._relabelling_set.past_nbytes

    def past_growth(self, columns: int) -> int:
        """Return the most bytes by which `past_nbytes` can grow with rows of `columns` columns.

        Beyond half of the maximum it hardly grows.
        """
        if self._horizon is None:
            return 0
        most, stored = past_bytes(columns), self.past_nbytes
        return most - stored if 2 * stored < most else 0

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
        return SetFigures(view, members, learner.sizes(), self.past_nbytes, work)

    def view(self) -> Any:
        """Return an immutable view of the learner; a `TimedView` if its members fade."""
        return self.current.view() if self._fading is None else self._fading.view()

    @property
    def frozen(self) -> bool:
        """Whether gamma is final."""
        return self._auto is None or self._auto.frozen

    def meet(self, label: Label) -> None:
        """Do nothing: a class needs no preparation."""

    def absorb(
        self, X: Matrix, y: NDArray[Any], _: object = None, weight: Weights = None
    ) -> list[Answer]:
        """Learn rows in order; return the answers to them before that, part by part.

        X: n rows.
        y: (n,) class codes or targets.
        weight: (n,) weights of the rows.
        """
        if self._fades(X):
            if self._relabelling_set is None:
                self._relabelling_set = self.new_relabelling_set()
            set_answers = self._relabelling_set.absorb(X, y, weight)
            self._update_widths()
            return list(set_answers)
        if self._auto:
            answers = [answer for _, answer in self._auto.absorb(X, y, weight)]
            self._update_widths()
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
        build = cast(Callable[[Kernel], WorkingSet], self.build)
        return AutoWidths(partial(_build_with, build, self._kernel), gamma, horizon)

    def new_relabelling_set(self) -> RelabellingSet:
        """Return a working set whose members fade that has learned nothing."""
        return RelabellingSet(self._new_fading())

    def go_on_from(self, learner: L | RelabellingSet, like: "KernelLearner[L]") -> None:
        """Continue with a learner that was merged from others.

        learner: the merged one.
        like: one of the others, with the same parameters.
        """
        self.features = like.features
        if isinstance(learner, RelabellingSet):
            self._relabelling_set = learner
        elif self._auto is None:
            self._fixed = learner
        else:
            assert like.gamma is not None
            self._auto.go_on_from(learner, like.gamma)
        self._update_widths()

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain data and arrays from which `restore` continues bit for bit."""
        own = self._relabelling_set or self._auto or self.current
        return {"features": self.features}, own.state()

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self.features = plain["features"]
        if "widths" in arrays:
            self._relabelling_set = self.new_relabelling_set()
            self._relabelling_set.restore(arrays)
        elif self._auto:
            self._auto.restore(arrays)
        else:
            self.current.restore(arrays)
        self._update_widths()


def past_bytes(columns: int) -> int:
    """Return the most bytes of past dense rows that a horizon needs."""
    return 0 if columns > _MOST_COLUMNS else MOST_KEPT * columns * 8


def _build_with(build: Callable[[Kernel], L], kernel: Kernel, gamma: float) -> L:
    return build(kernel._replace(gamma=gamma))
