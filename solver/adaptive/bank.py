"""The bank of adaptive learners as a learner of a head; it takes the votes of other heads.

The first rows decide whether it is a bank of dense or sparse rows, and of how many columns. Trees
join its predictions (`tree_experts`) where unscaled rows are given, and then what the labels just
before a row add (`label_past`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.class_weights import ClassWeight, ClassWeights, WeightedAnswers
from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.expert_weights import ExpertWeights
from wolfstream.solver.adaptive.gradients import Gradient, class_gradient, value_gradient
from wolfstream.solver.adaptive.label_past import LabelPast, PastView
from wolfstream.solver.adaptive.regressor import AdaptiveRegressor, predict_values
from wolfstream.solver.adaptive.ridge import CHUNK
from wolfstream.solver.adaptive.settings import (
    CLASSIFICATION,
    NO_PINS,
    REGRESSION,
    Pins,
    Temporal,
    pinned,
)
from wolfstream.solver.adaptive.target_scale import Units
from wolfstream.solver.adaptive.temporal_answers import TemporalAnswers
from wolfstream.solver.adaptive.tree_experts import MOST_COLUMNS, TreeExperts, TreesView
from wolfstream.solver.adaptive.tree_mixing import ClassMixing, ValueMixing
from wolfstream.solver.adaptive.view import ClassView, joined, predict_classes
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.labels import Label, Task
from wolfstream.solver.prepare.words import MOST_CODES
from wolfstream.solver.rows.answers import Answer, Values
from wolfstream.solver.rows.head_rows import NO_HINTS, Hints, RawRows
from wolfstream.solver.rows.matrix import Matrix, SparseRows, take_rows
from wolfstream.solver.rows.sample_weights import Weights, as_numbers, weights_of

# More rows than a bank's memory depends on.
_MANY = 1 << 20
_CHUNKS_OF_STANDING = 8


Bank: TypeAlias = AdaptiveClassifier | AdaptiveRegressor


class BankLearnerView(NamedTuple):
    """An immutable view of a bank that has learned a sample; a `LearnerView`."""

    model: Any
    class_weight: Float64Array | None = None  # (K,) weights of the classes in predictions
    trees: TreesView | None = None
    past: PastView | None = None

    def predict(self, X: Matrix, hints: Hints = NO_HINTS) -> Answer:
        """Predict rows by the bank, its trees, and the labels before them."""
        return self.finished(self._bank_answers(X, hints), hints.raw, in_turn=hints.in_turn)

    def finished(self, answers: Any, raw: RawRows | None, *, in_turn: bool) -> Answer:
        """Return the predictions of bank, trees, labels before and class weights together.

        answers: of the bank alone.
        raw: the rows before they were scaled; None of sparse ones.
        in_turn: whether the labels just before the rows are known.
        """
        bank_answers, answers = answers, self._joined(answers, raw)
        if self.past is not None:
            trees = self._trees_for(raw) if self.past.helps(in_turn=in_turn) else None
            votes = None if trees is None or raw is None else trees.past(raw, bank_answers, answers)
            answers = self.past.temporal_answers(answers, votes, in_turn=in_turn)
        if self.class_weight is None:
            return answers  # type: ignore[no-any-return]
        return WeightedAnswers(answers, self.class_weight[: answers.probability.shape[1]])

    def _bank_answers(self, X: Matrix, hints: Hints) -> Any:
        if isinstance(self.model, ClassView):
            return predict_classes(self.model, X, hints.scores, hints.codes)
        return predict_values(self.model, X, hints.scores, hints.codes)

    def _joined(self, answers: Any, raw: RawRows | None) -> Any:
        trees = self._trees_for(raw)
        return answers if trees is None or raw is None else trees.answer(raw, answers)

    def _trees_for(self, raw: RawRows | None) -> TreesView | None:
        """Return the trees that join the bank's predictions for these rows; None if none do."""
        if self.trees is None or raw is None or raw.X.shape[1] != self.trees.columns:
            return None
        return self.trees

    def pulls(self, _: Matrix, wanted: int, other: int) -> None:
        """Return None: a bank has no members."""

    def gradient(self, x: Float64Array, direction: Float64Array, hints: Hints) -> Gradient:
        """Compute `calibrated_classifier.LearnerView.gradient`."""
        vote = None if hints.scores is None else hints.scores[0]
        if isinstance(self.model, ClassView):
            # Of two classes the scores are -f/2 and f/2 of f = log(p_1 / p_0).
            if len(direction) == 2:
                direction = 0.5 * (direction[1] - direction[0]) * np.array([-1.0, 1.0])
            direction = self._before_past(x, direction, hints)
            mixing = self._mixing(hints)
            if isinstance(mixing, ClassMixing) and self.trees is not None and hints.raw is not None:
                answers, forests = self._bank_answers(x[None], hints), self.trees.forests
                direction = mixing.direction(forests, hints.raw, answers, direction)
            return class_gradient(self.model, x, direction, vote, hints.codes)
        d_row, d_votes = value_gradient(self.model, x, vote, hints.codes)
        rate = self._before_past(x, direction, hints)[0]
        mixing = self._mixing(hints)
        if isinstance(mixing, ValueMixing) and self.trees is not None and hints.raw is not None:
            answers, forests = self._bank_answers(x[None], hints), self.trees.forests
            rate *= mixing.bank_rate(forests, hints.raw, answers)
        return Gradient(rate * d_row, None if d_votes is None else rate * d_votes)

    def _before_past(self, x: Float64Array, direction: Float64Array, hints: Hints) -> Float64Array:
        """Return the gradient in the prediction without the labels before, of that with them."""
        if self.past is None or not self.past.helps(in_turn=hints.in_turn):
            return direction
        answers = self._joined(self._bank_answers(x[None], hints), hints.raw)
        return self.past.gradient(answers, direction)

    def _mixing(self, hints: Hints) -> ClassMixing | ValueMixing | None:
        """Return the combination of the bank with trees; None if there are none."""
        trees = self._trees_for(hints.raw)
        return None if trees is None else trees.mixing


class BankFigures(NamedTuple):
    """A view of a bank that has learned a sample, and figures for its description."""

    view: BankLearnerView
    learners: int  # number of learners
    nbytes: int
    work: int  # multiplications of learning one more sample


class _Blank(NamedTuple):
    """The size of a bank before the first sample."""

    shape: tuple[int | None, int, int]  # the arguments of `BankLearner.blank`
    n_bytes: int
    trees: TreeExperts | None


class BankLearner:
    """A bank that its first rows begin.

    task: "classification" or "regression".
    voters: names of the heads whose votes it takes.
    temporal: whether the labels before a row help to predict it; "auto": where they are known.
    seed: of the random features.
    pins: replacements for default learners.
    class_weight: what a mistake about each class costs; None if all cost alike.
    current: the bank; None before the first rows.
    row_columns: number of columns of dense rows; None of sparse ones.
    texts: how many text columns rows have.
    width: number of the features that its learners share.
    """

    def __init__(
        self,
        task: Task,
        voters: Sequence[str],
        *,
        temporal: Temporal,
        seed: int,
        pins: Pins = NO_PINS,
        class_weight: ClassWeight | None = None,
    ) -> None:
        self.class_weights = None if class_weight is None else ClassWeights(class_weight)
        self.task, self.voters = task, tuple(voters)
        self._settings = pinned(REGRESSION if task == "regression" else CLASSIFICATION, pins)
        self._temporal, self._seed = temporal, seed
        self.row_columns: int | None = None
        self.texts = 0
        self.current: Bank | None = None
        self.trees: TreeExperts | None = None
        self.past: LabelPast | None = None
        self.width = 0
        self._cost_at, self._cost = (-1, -1), (0, 0)
        # The last bank whose size was asked for.
        self._blank: _Blank | None = None

    @property
    def uses_past(self) -> bool:
        """Whether the labels before a row help to answer it."""
        return self._temporal is not False

    def meet(self, label: Label) -> None:
        """Prepare for the next class code, which is that of this label."""
        if self.class_weights is not None:
            self.class_weights.meet(label)

    def absorb(
        self,
        X: Matrix,
        y: NDArray[Any],
        hints: Hints = NO_HINTS,
        weight: Weights = None,
    ) -> list[Answer]:
        """Learn rows; return the predictions for them before that.

        X: n prepared rows.
        y: (n,) class codes or targets.
        hints: what the learner gets with the rows.
        weight: (n,) weights of the rows.
        """
        texts = 0 if hints.codes is None else hints.codes.shape[1]
        if self.current is None:
            self.begin(None if isinstance(X, SparseRows) else X.shape[1], texts)
        elif texts != self.texts:
            self._take_texts(texts)
        answers, votes = self._answers(X, y, hints, weight)
        if self.task == "regression":
            answers = Values(answers)
        if self.past is not None and self.past.past is not None:
            weights = as_numbers(weight, len(y))
            aided = self.past.absorb(X, hints.raw, y, weights, answers, votes)
            answers = TemporalAnswers(aided, True, answers)
        elif self.past is not None:
            self.past.meet(answers.probability.shape[1])
        if self.class_weights is None:
            return [answers]
        weights = self.class_weights.absorb(y)
        return [WeightedAnswers(answers, weights[:, : answers.probability.shape[1]])]

    def _answers(
        self, X: Matrix, y: NDArray[Any], hints: Hints, weight: Weights
    ) -> tuple[Any, Float64Array | None]:
        """Learn rows up to each change of the trees; return predictions of the bank and trees.

        The second result are values (n,) by trees that see the targets before; None without such
        trees.
        """
        assert self.current is not None
        if hints.raw is None or hints.raw.X.shape[1] > MOST_COLUMNS:
            return self.current.absorb(X, y, hints.scores, weight, hints.codes), None
        if self.trees is None or self.trees.columns != hints.raw.X.shape[1]:
            self.trees = self._fresh_trees(hints.raw)
        answers, votes, start = [], [], 0
        while start < len(y):
            stop = min(start + self.trees.until_change(), len(y))
            whole, part = (start, stop) == (0, len(y)), slice(start, stop)
            rows = X if whole else take_rows(X, part)
            part_hints = hints if whole else hints.part(part)
            answers.append(self._learn(rows, y[part], part_hints, weights_of(weight, part)))
            votes.append(self.trees.votes)
            start = stop
        if len(answers) == 1:
            return answers[0], votes[0]
        if isinstance(self.current, AdaptiveClassifier):
            return joined(answers, self.current.n_classes), None
        pairs = zip(votes, answers, strict=True)
        values = [answer if vote is None else vote for vote, answer in pairs]
        return np.concatenate(answers), np.concatenate(values)

    def _learn(self, X: Matrix, y: NDArray[Any], hints: Hints, weight: Weights) -> Any:
        """Let the bank and then the trees learn rows; return their predictions before that."""
        bank, trees, raw = self.current, self.trees, hints.raw
        assert bank is not None
        assert trees is not None
        assert raw is not None
        answers = bank.absorb(X, y, hints.scores, weight, hints.codes)
        units = bank.scale.units if isinstance(bank, AdaptiveRegressor) else Units()
        weights = as_numbers(weight, len(y))
        return trees.absorb(raw, y, weights, answers, units, lambda: bank.learners.work)

    def _fresh_trees(self, raw: RawRows) -> TreeExperts:
        regression = self.task == "regression"
        shape = raw.X.shape[1], raw.categories, raw.word_codes.shape[1]
        return TreeExperts(*shape, regression=regression, past=self.uses_past)

    def merge_class_weights(
        self, each: Sequence[Self], class_codes: Sequence[NDArray[np.int64]]
    ) -> None:
        """Add the class counts of other learners.

        class_codes: for each learner, the codes here of its classes.
        """
        for learner, codes in zip(each, class_codes, strict=True):
            if self.class_weights is not None and learner.class_weights is not None:
                self.class_weights.add(learner.class_weights, codes)

    def _take_texts(self, texts: int) -> None:
        """Continue with `texts` text columns, of which there were fewer."""
        former = self.current
        assert former is not None
        bank = self._fresh(self.row_columns, texts)
        if isinstance(bank, AdaptiveClassifier) and isinstance(former, AdaptiveClassifier):
            bank.meet(former.n_classes)
        at, count = former.learners.count, bank.learners.count - former.learners.count
        state = former.state()
        bank.restore(with_experts(state, bank.state(), at, count) if count else state)
        self.texts, self.current = texts, bank

    def learner_view(self) -> BankLearnerView | None:
        """Return an immutable view; None before the first sample."""
        if self.current is None or not self.current.samples:
            return None
        weights = self.class_weights
        return BankLearnerView(
            self.current.view(),
            None if weights is None else weights.now(),
            None if self.trees is None else self.trees.view(),
            None if self.past is None else self.past.view(),
        )

    def figures(self) -> BankFigures | None:
        """Return the bank's figures; None before the first sample."""
        view, bank = self.learner_view(), self.current
        if view is None or bank is None:
            return None
        kinds = len(bank.kinds) + (0 if view.trees is None else view.trees.n_kinds)
        kinds += 0 if view.past is None or self.past is None else self.past.n_kinds
        return BankFigures(view, kinds, *self._cost_of(bank))

    def _cost_of(self, bank: Bank) -> tuple[int, int]:
        """Return memory and work, which change with a new class or, a little, between chunks."""
        at = self.standing_chunk, bank.learners.targets
        if at != self._cost_at:
            self._cost_at, self._cost = at, (self.nbytes, bank.learners.work)
        return self._cost

    @property
    def standing_chunk(self) -> int:
        """The number of the chunk with which figures for descriptions were last due.

        They take as long as learning some samples: so they are due once a chunk at first, and later
        once in eight.
        """
        chunk = 0 if self.current is None else self.current.samples // CHUNK
        return chunk - chunk % _CHUNKS_OF_STANDING if chunk > _CHUNKS_OF_STANDING else chunk

    @property
    def nbytes(self) -> int:
        """Memory of the bank and of trees in bytes; 0 before the first rows."""
        bank_bytes = 0 if self.current is None else self.current.nbytes
        joining = [part.nbytes for part in (self.trees, self.past) if part is not None]
        return bank_bytes + sum(joining)

    def all_expert_weights(self) -> ExpertWeights:
        """Return the weight and losses of each learner: bank, trees, labels before."""
        assert self.current is not None
        weights, trees = self.current.expert_weights(), self.trees
        if trees is not None and trees.forests is not None:
            weights = trees.expert_weights(weights)
        return weights if self.past is None else self.past.expert_weights(weights)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain data and arrays from which `restore` continues bit for bit."""
        if self.current is None:
            return {"begun": False}, {}
        begun: dict[str, Any] = {"begun": True, "columns": self.row_columns}
        if self.texts:
            begun["texts"] = self.texts
        if self.class_weights is not None:
            begun["class_counts"] = self.class_weights.counts
        arrays = self.current.state()
        if self.trees is not None:
            begun["trees"], arrays = self.trees.columns, arrays | self.trees.state()
        return begun, arrays if self.past is None else arrays | self.past.state()

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned, after all its classes were met."""
        if plain["begun"]:
            if self.class_weights is not None:
                self.class_weights.restore(plain["class_counts"])
            self.begin(plain["columns"], plain.get("texts", 0)).restore(arrays)
            if "trees" in plain:
                words = np.empty((0, arrays["trees_window_words"].shape[1]))
                self.trees = self._fresh_trees(RawRows(np.empty((0, plain["trees"])), (), words))
                self.trees.restore(arrays)
            if self.past is not None:
                self.past.restore(arrays)

    def blank(self, columns: int | None, texts: int, classes: int) -> dict[str, NDArray[Any]]:
        """Return the arrays of another bank with these parameters that has learned nothing.

        columns: number of columns of dense rows; None of sparse ones.
        texts: number of text columns.
        classes: number of classes; 0 in regression.
        """
        other = self._fresh(columns, texts)
        if isinstance(other, AdaptiveClassifier):
            other.meet(classes)
        return other.state()

    def blank_bytes(self, columns: int | None, texts: int, classes: int, rows: int) -> int:
        """Return the most bytes that such a bank has after `rows` rows; arguments as in `blank`."""
        shape = columns, texts, classes
        if self._blank is None or self._blank.shape != shape:
            other = self._fresh(columns, texts)
            if isinstance(other, AdaptiveClassifier):
                other.meet(classes)
            # Raw rows have no more columns than prepared ones.
            narrow = columns is not None and columns <= MOST_COLUMNS
            words = np.empty((0, MOST_CODES if texts >= MOST_CODES else 0))
            raw = RawRows(np.empty((0, columns or 0)), (), words)
            trees = self._fresh_trees(raw) if narrow else None
            if trees is not None:
                trees.meet(classes)
            past = self._fresh_past()
            if past is not None:
                past.meet(classes)
            n_bytes = other.nbytes + other.learners.growth(0, _MANY)
            n_bytes += 0 if past is None else past.nbytes
            self._blank = _Blank(shape, n_bytes, trees)
        trees = self._blank.trees
        return self._blank.n_bytes + (0 if trees is None else trees.nbytes + trees.growth(rows))

    def begin(self, columns: int | None, texts: int) -> AdaptiveClassifier | AdaptiveRegressor:
        """Begin the bank, and return it.

        columns: number of columns of dense rows; None of sparse ones.
        texts: number of text columns.
        """
        self.row_columns, self.texts, self.trees = columns, texts, None
        self.past = self._fresh_past()
        self.current = bank = self._fresh(columns, texts)
        self.width = bank.inputs.features.dimension
        return bank

    def _fresh(self, columns: int | None, texts: int) -> AdaptiveClassifier | AdaptiveRegressor:
        shared: dict[str, Any] = {
            "texts": texts,
            "seed": self._seed,
            "external_experts": self.voters,
        }
        if self.task == "regression":
            lags = self._temporal is True
            return AdaptiveRegressor(columns, self._settings, temporal=lags, **shared)
        return AdaptiveClassifier(columns, self._settings, **shared)

    def _fresh_past(self) -> LabelPast | None:
        if not self.uses_past:
            return None
        return LabelPast(regression=self.task == "regression", always=self._temporal is True)


_PER_EXPERT = ("combination_", "losses_")


def with_experts(
    state: Mapping[str, NDArray[Any]], blank: Mapping[str, NDArray[Any]], at: int, count: int
) -> dict[str, NDArray[Any]]:
    """Return a bank's state with more experts.

    state: of the bank.
    blank: of a bank with these experts and as many classes that has learned nothing. Arrays with an
        axis of experts are longer in it.
    at: the number of the first new expert.
    count: how many experts are new.
    """
    grown = {**blank, **state}
    for name, array in state.items():
        shape = blank[name].shape if name.startswith(_PER_EXPERT) else array.shape
        axes = [axis for axis, n in enumerate(array.shape) if shape[axis] == n + count]
        if axes:
            wider = blank[name].copy()
            kept = [np.arange(length) for length in array.shape]
            for axis in axes:
                kept[axis] = np.delete(np.arange(wider.shape[axis]), np.arange(at, at + count))
            wider[np.ix_(*kept)] = array
            grown[name] = wider
    weight = grown["combination_weight"]
    grown["combination_weight"] = weight / weight.sum()
    return grown
