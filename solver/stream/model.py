"""The default model in process: it computes the same bits as in a server."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

from wolfstream.solver.adaptive.bank import BankLearner, BankLearnerView
from wolfstream.solver.adaptive.class_weights import ClassWeight
from wolfstream.solver.adaptive.settings import NO_PINS, Pins, Temporal
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.view import AssetView
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.labels import Label, Task
from wolfstream.solver.prepare.named_rows import NameTable, Rows
from wolfstream.solver.prepare.row_form import PreparationParameters
from wolfstream.solver.rows.head_rows import HeadRows
from wolfstream.solver.rows.matrix import Matrix, SparseRows, take_rows
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.stream.calibrated_classifier import (
    CalibratedClassifier,
    CalibratedClassifierView,
    LearnerView,
)
from wolfstream.solver.stream.calibrated_regressor import (
    CalibratedRegressor,
    CalibratedRegressorView,
)
from wolfstream.solver.stream.chain import ChainOnDemand, chained
from wolfstream.solver.stream.explanations import Contest, Explanation, explanations
from wolfstream.solver.stream.kernel_learner import KernelLearner
from wolfstream.solver.stream.label_order import LabelOrder
from wolfstream.solver.stream.paper_learners import (
    AssetLearnerView,
    SetLearnerView,
    new_asset,
    new_working_set,
)
from wolfstream.solver.stream.parameters import AssetParameters, SetParameters
from wolfstream.solver.stream.reasons import MemberPulls
from wolfstream.solver.stream.rows import RowsView, StreamRows, StreamSamples
from wolfstream.solver.stream.turns import absorb_in_turn, inputs_of
from wolfstream.solver.stream.votes import HeadAnswer, HeadInputs
from wolfstream.solver.working_set.learner import WorkingSet

# The head beside the bank, by the papers.
PaperHead = Literal["working_set", "asset"]
BANK = "adaptive"
LISTENERS = frozenset({BANK})
# The heads whose votes a bank takes; a head that learns nothing has no vote.
VOTERS: dict[Task, tuple[str, ...]] = {
    "classification": ("working_set", "asset"),
    "regression": ("asset",),
}

Head = CalibratedClassifier[Any] | CalibratedRegressor[Any]
HeadView = CalibratedClassifierView | CalibratedRegressorView


class StreamView(NamedTuple):
    """An immutable view of a model."""

    rows: RowsView
    heads: dict[str, HeadView]  # those that can predict
    chain: ChainOnDemand

    def predict(self, rows: Rows | SparseRows, order: LabelOrder | None = None) -> HeadAnswer:
        """Return the bank's answer to rows.

        rows: n rows of the model's form.
        order: of predictions and labels so far; None to ignore the labels before rows.

        Raises Misfit and AnotherKind for rows of another form.
        """
        seen = self._seen(rows, order)
        chain = None if isinstance(seen.X, SparseRows) else self.chain.get()
        if chain is None or isinstance(seen.X, SparseRows):
            return self._predict(seen)[0]
        return chained(chain, self.heads[BANK], seen)

    def explain(
        self, rows: Rows | SparseRows, order: LabelOrder | None = None
    ) -> Iterator[Explanation]:
        """Yield an explanation of each prediction, with the members of a working set that votes.

        Arguments and errors are those of `predict`.
        """
        seen = self._seen(rows, order)
        head_answer, inputs = self._predict(seen)
        each = explanations(
            BANK,
            self.heads,
            self.rows,
            rows,
            seen,
            head_answer,
            inputs,
            lambda other: self._predict(other)[0],
        )
        for i, explanation in enumerate(each):
            members = self._members(seen.X, i, explanation.contest)
            yield explanation._replace(members=members)

    def _members(self, X: Matrix, i: int, contest: Contest | None) -> MemberPulls | None:
        """Return the pulls of members for row i; all heads have the same class codes."""
        if contest is None or VOTERS["classification"][0] not in self.heads:
            return None
        row = take_rows(X, slice(i, i + 1))
        return self.heads[VOTERS["classification"][0]].pulls(row, contest.wanted, contest.other)

    def _seen(self, rows: Rows | SparseRows, order: LabelOrder | None = None) -> HeadRows:
        seen = HeadRows(rows) if isinstance(rows, SparseRows) else self.rows.head_rows(rows)
        bank = self.heads[BANK].learner
        assert isinstance(bank, BankLearnerView)
        if order is None:
            return seen
        return order.marked(None if bank.past is None else bank.past.recent, seen)

    def _predict(self, seen: HeadRows) -> tuple[HeadAnswer, HeadInputs]:
        def ask(name: str) -> HeadAnswer:
            return self.heads[name].predict(seen.X)

        inputs = inputs_of(BANK, self.heads, LISTENERS, ask, seen)
        return self.heads[BANK].predict(seen.X, inputs), inputs


class StreamModel:
    """Prepares rows, learns them by a head of the papers, and predicts by a bank with its vote.

    The first rows decide whether rows are arrays, a table, sparse ones by name (`row_form`), or
    sparse ones of numbered features. Sparse rows are learned as they come.

    task: "classification" or "regression".
    head: the name of the head of the papers.
    preparing: how rows are prepared.
    temporal, class_weight: see `BankLearner`.
    seed: of all randomness.
    set_parameters: of the working set.
    pins: see `BankLearner`.
    order: of predictions and labels in this process.
    """

    def __init__(
        self,
        task: Task,
        head: PaperHead,
        *,
        preparing: PreparationParameters,
        temporal: Temporal,
        seed: int,
        class_weight: ClassWeight | None = None,
    ) -> None:
        self.task, self.head, self.preparing = task, head, preparing
        self.temporal, self.seed = temporal, seed
        self.set_parameters, self.pins = SetParameters(), NO_PINS
        self.class_weight = class_weight
        self.rows = StreamRows(preparing)
        self.order = LabelOrder()
        self._view: StreamView | None = None
        self.begin()

    def begin(self) -> None:
        """Replace the heads by ones without samples, with the present parameters."""
        task, head, seed = self.task, self.head, self.seed
        self.paper = _new_learner(task, head, self.set_parameters, seed)
        self.bank = BankLearner(
            task,
            VOTERS[task],
            temporal=self.temporal,
            seed=seed,
            pins=self.pins,
            class_weight=self.class_weight,
        )
        self.heads: dict[str, Head] = {
            head: _head(task, self.paper, ()),
            BANK: _head(task, self.bank, self.bank.voters, log_scores=True),
        }

    def weigh(self, class_weight: ClassWeight | None) -> None:
        """Replace the weights of classes that come later; see `BankLearner`."""
        self.class_weight = class_weight
        if self.bank.class_weights is not None and class_weight is not None:
            self.bank.class_weights.class_weight = class_weight

    @property
    def learned(self) -> bool:
        """Whether the model has learned any sample."""
        return self.bank.current is not None and self.bank.current.samples > 0

    @property
    def classes(self) -> tuple[Label, ...] | None:
        """The labels so far, in the order of their codes; None in regression."""
        return _classes(self.heads[BANK])

    def absorb(self, rows: Rows | SparseRows, y: Any, weight: Weights = None) -> None:
        """Learn rows in order.

        rows: n rows; NaN in arrays and tables is a missing number.
        y: n labels, or (n,) float64 targets.
        weight: (n,) weights > 0.

        Raises Misfit and AnotherKind for rows of another form. Rows before them may have been
        learned then; `rows.form.after` raises the same before anything is learned.
        """
        self._view = None
        if isinstance(rows, SparseRows):
            self._learn(HeadRows(rows), y, weight)
            return
        samples = StreamSamples(self.head, rows, y, weight)
        for part, seen in self.rows.settling(samples, self._learn_anew):
            self._learn(seen, part.y, part.weight)

    def _learn_anew(self) -> None:
        former = self.heads
        self.begin()
        for part in self.rows.first:
            self._learn(self.rows.head_rows(part.X), part.y, part.weight)
        for name, head in self.heads.items():
            head.calibration = former[name].calibration

    def _learn(self, seen: HeadRows, y: Any, weight: Weights) -> None:
        heads = self.heads
        absorb_in_turn(heads, list(heads), LISTENERS, lambda _: None, BANK, seen, y, weight)

    def view(self) -> StreamView:
        """Return an immutable view. Raises ValueError before the first sample."""
        if self._view is None:
            self._view = self._new_view()
        return self._view

    def _new_view(self) -> StreamView:
        bank = self.bank.learner_view()
        if bank is None:
            raise ValueError("no sample has been absorbed yet")
        heads = {BANK: self.heads[BANK].view(bank)}
        if (classes := _classes(self.heads[self.head])) is None or len(classes) > 1:
            heads[self.head] = self.heads[self.head].view(_learner_view(self.paper))
        chain = ChainOnDemand(self.head, heads.get(self.head), heads[BANK])
        return StreamView(self.rows.view(), heads, chain)

    def __getstate__(self) -> dict[str, Any]:
        """Return plain data and arrays from which an unpickled model continues bit for bit."""
        rows = self.rows
        return {
            "task": self.task,
            "head": self.head,
            "preparing": self.preparing,
            "temporal": self.temporal,
            "seed": self.seed,
            "scores": self.set_parameters.scores,
            "naive_bayes": self.pins.naive_bayes,
            "class_weight": self.class_weight,
            "form": rows.form,
            "names": None if rows.names is None else rows.names.names(),
            "first": rows.first,
            "facts": rows.facts.plain(),
            "facts_arrays": rows.facts.arrays(),
            "preparation": {} if rows.preparation is None else rows.preparation.state(),
            "classes": {name: _classes(head) for name, head in self.heads.items()},
            "paper": self.paper.state(),
            "bank": self.bank.state(),
            "calibration": {name: head.calibration.state() for name, head in self.heads.items()},
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        parameters = {name: state[name] for name in ("preparing", "temporal", "seed")}
        self.__init__(state["task"], state["head"], **parameters)  # type: ignore[misc]
        self.pins = Pins(naive_bayes=state["naive_bayes"])
        self.class_weight = state["class_weight"]
        self.set_parameters = SetParameters(scores=state["scores"])
        self.begin()
        rows = self.rows
        rows.form, rows.first = state["form"], state["first"]
        rows.names = None if state["names"] is None else NameTable(state["names"])
        rows.facts.restore(state["facts"], state["facts_arrays"])
        if state["preparation"]:
            rows.restore_preparation(state["preparation"])
        for name, head in self.heads.items():
            if isinstance(head, CalibratedClassifier):
                head.meet(state["classes"][name])
            head.calibration.restore(state["calibration"][name])
        self.paper.restore(*state["paper"])
        self.bank.restore(*state["bank"])

    def expert_weights(self) -> list[dict[str, Any]]:
        """Return the weight and losses of each learner of the bank."""
        return [] if self.bank.current is None else self.bank.all_expert_weights().rows()


def _new_learner(
    task: Task, head: PaperHead, parameters: SetParameters, seed: int
) -> KernelLearner[Any]:
    """Return a working set or ASSET with the defaults of a spec."""
    build: Callable[[Kernel], WorkingSet | Asset]
    if head == "asset":
        build = partial(new_asset, parameters=AssetParameters(), task=task, seed=seed)
        return KernelLearner(Kernel("rbf", 1.0), build, auto=True)
    build = partial(new_working_set, parameters=parameters)
    return KernelLearner(Kernel("rbf", 1.0), build, auto=True, horizon=parameters.horizon)


def _head(
    task: Task,
    learner: KernelLearner[Any] | BankLearner,
    voters: tuple[str, ...],
    *,
    log_scores: bool = False,
) -> Head:
    if task == "regression":
        return CalibratedRegressor(learner, voters)
    return CalibratedClassifier(learner, voters, log_scores=log_scores)


def _classes(head: Head) -> tuple[Label, ...] | None:
    return None if isinstance(head, CalibratedRegressor) else tuple(head.classes)


def _learner_view(learner: KernelLearner[Any]) -> LearnerView:
    view = learner.view()
    return (
        AssetLearnerView(view, learner.features)
        if isinstance(view, AssetView)
        else SetLearnerView(view)
    )
