"""A model of a stream in process: what a server's default model computes, in the same bits."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

from solver.asset.learner import Asset
from solver.asset.view import AssetView
from solver.kernels.functions import Kernel
from solver.prepare.columns import Kind, Preparation, PreparationView, layout_of, prepared
from solver.rows.matrix import Matrix, SparseRows
from solver.stream.bank import BankLearner
from solver.stream.class_head import ClassHead, ClassHeadView, LearnerView
from solver.stream.kernel_learner import KernelLearner
from solver.stream.labels import Label
from solver.stream.paper_learners import (
    AssetPicture,
    SetPicture,
    new_asset,
    new_working_set,
)
from solver.stream.parameters import AssetParameters, Missing, SetParameters, Task
from solver.stream.turns import absorb_in_turn, votes_for
from solver.stream.value_head import ValueHead, ValueHeadView
from solver.stream.votes import Said
from solver.working_set.learner import WorkingSet

# The learner of the papers that learns the samples, too.
Taught = Literal["working_set", "asset"]
BANK = "adaptive"
LISTENERS = frozenset({BANK})
# The heads that a bank listens to; those that are not taught stay silent.
VOTERS: dict[Task, tuple[str, ...]] = {
    "classification": ("working_set", "asset"),
    "regression": ("asset",),
}

Head = ClassHead[Any] | ValueHead[Any]
HeadView = ClassHeadView | ValueHeadView


class StreamView(NamedTuple):
    """An immutable picture of a model. heads: those that can predict."""

    preparation: PreparationView | None
    heads: dict[str, HeadView]

    def predict(self, X: Matrix) -> Said:
        """What the bank says of rows, of the kind and width that were learned.

        Numbers may be NaN, which is missing.
        """
        if self.preparation is not None and not isinstance(X, SparseRows):
            X = prepared(self.preparation, X)

        def ask(name: str) -> Said:
            return self.heads[name].predict(X)

        return self.heads[BANK].predict(X, votes_for(BANK, self.heads, LISTENERS, ask))


class StreamModel:
    """Prepared rows, a learner of the papers, and a bank that listens to it and answers.

    taught: which learner that is. missing: see `parameters.Missing`. temporal: whether the labels
    or targets before a row may be used for it. seed: of all randomness.

    The first rows decide whether rows are dense, of so many numbers, or sparse. Sparse rows are
    learned as they come.
    """

    def __init__(
        self, task: Task, taught: Taught, *, missing: Missing, temporal: bool, seed: int
    ) -> None:
        self.taught, self._missing = taught, missing
        self._parameters = {
            "task": task,
            "taught": taught,
            "missing": missing,
            "temporal": temporal,
            "seed": seed,
        }
        self._columns = 0
        self._preparation: Preparation | None = None
        self._view: StreamView | None = None
        self._paper = _new_learner(task, taught, seed)
        self._bank = BankLearner(task, VOTERS[task], temporal=temporal, seed=seed)
        self._heads: dict[str, Head] = {
            taught: _head(task, self._paper, ()),
            BANK: _head(task, self._bank, self._bank.voters),
        }

    @property
    def classes(self) -> tuple[Label, ...] | None:
        """The labels that were met, in the order of their numbers; None of numbers."""
        return _classes(self._heads[BANK])

    def absorb(self, X: Matrix, y: Any) -> Said:
        """Learn rows in order with labels or targets; what was said of each before it was learned.

        X: finite, or NaN where dense numbers are missing. y: n labels, or (n,) float64.
        """
        self._view = None
        rows = self._prepared(X)
        names = list(self._heads)
        said = absorb_in_turn(self._heads, names, LISTENERS, lambda _: None, BANK, rows, y)
        return said[BANK]

    def view(self) -> StreamView:
        """The model as it is now, made when it is asked for. Raises ValueError before samples."""
        if self._view is None:
            self._view = self._new_view()
        return self._view

    def _new_view(self) -> StreamView:
        bank = self._bank.view()
        if bank is None:
            raise ValueError("no sample has been absorbed yet")
        heads = {BANK: _view(self._heads[BANK], bank)}
        if (classes := _classes(self._heads[self.taught])) is None or len(classes) > 1:
            heads[self.taught] = _view(self._heads[self.taught], _picture(self._paper))
        preparation = None if self._preparation is None else self._preparation.view()
        return StreamView(preparation, heads)

    def __getstate__(self) -> dict[str, Any]:
        """All that goes on bit for bit where it is unpickled, as plain data and arrays."""
        paper, of_paper = self._paper.state()
        bank, of_bank = self._bank.state()
        return {
            "parameters": self._parameters,
            "preparation": None if self._preparation is None else self._preparation.state(),
            "columns": self._columns,
            "classes": {name: _classes(head) for name, head in self._heads.items()},
            "paper": (paper, of_paper),
            "bank": (bank, of_bank),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["parameters"])  # type: ignore[misc]
        if state["preparation"] is not None:
            self._columns = state["columns"]
            self._preparation = self._new_preparation()
            self._preparation.restore(state["preparation"])
        for name, head in self._heads.items():
            if isinstance(head, ClassHead):
                head.meet(state["classes"][name])
        self._paper.restore(*state["paper"])
        self._bank.restore(*state["bank"])

    def standing(self) -> list[dict[str, Any]]:
        """What each learner of the bank is worth; see `adaptive.standing`."""
        return [] if self._bank.current is None else self._bank.current.standing().rows()

    def _prepared(self, X: Matrix) -> Matrix:
        if isinstance(X, SparseRows):
            return X
        if self._preparation is None:
            self._columns = X.shape[1]
            self._preparation = self._new_preparation()
        return self._preparation.absorb(X)

    def _new_preparation(self) -> Preparation:
        kinds: list[Kind] = ["number"] * self._columns
        return Preparation(layout_of(kinds, indicators=self._missing == "indicator"))


def _new_learner(task: Task, taught: Taught, seed: int) -> KernelLearner[Any]:
    """The working set or ASSET with the defaults of a spec."""
    build: Callable[[Kernel], WorkingSet | Asset]
    if taught == "asset":
        build = partial(new_asset, own=AssetParameters(), task=task, seed=seed)
        return KernelLearner(Kernel("rbf", 1.0), build, auto=True)
    own = SetParameters()
    build = partial(new_working_set, own=own)
    return KernelLearner(Kernel("rbf", 1.0), build, auto=True, horizon=own.horizon)


def _head(task: Task, learner: KernelLearner[Any] | BankLearner, voters: tuple[str, ...]) -> Head:
    return ValueHead(learner, voters) if task == "regression" else ClassHead(learner, voters)


def _classes(head: Head) -> tuple[Label, ...] | None:
    return None if isinstance(head, ValueHead) else tuple(head.classes)


def _view(head: Head, learner: LearnerView) -> HeadView:
    if isinstance(head, ValueHead):
        return ValueHeadView(learner, head.voters)
    return ClassHeadView(learner, tuple(head.classes), head.voters)


def _picture(learner: KernelLearner[Any]) -> LearnerView:
    view = learner.view()
    return AssetPicture(view, learner.features) if isinstance(view, AssetView) else SetPicture(view)
