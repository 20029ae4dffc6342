"""Boosted trees that join a bank's predictions, fitted to a window of rows beside learning.

    the bank's prediction        \
    trees fitted to labels        >  stackers and fixed share  ->  prediction
    trees fitted to residuals    /

The bank does not see the predictions of trees, so that residuals are those of the bank alone.
Before the first trees are fitted, the predictions are the bank's.

Rows with more than MOST_COLUMNS columns and sparse rows have no trees, and models with more than
MOST_CLASSES classes have none. A class that comes between two fits gets the least score of the
classes that the trees know.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.expert_weights import ExpertWeights
from wolfstream.solver.adaptive.forests import (
    LEAST_PROBABILITY,
    Forests,
    fit_forests,
    forests_bytes,
    past_votes,
)
from wolfstream.solver.adaptive.losses import RECENT, Losses
from wolfstream.solver.adaptive.past_values import LAGS
from wolfstream.solver.adaptive.ridge import CHUNK
from wolfstream.solver.adaptive.target_scale import Units
from wolfstream.solver.adaptive.targets_before import (
    NOTHING_BEFORE,
    TargetsBefore,
    after,
    columns_in_order,
    columns_of_next,
)
from wolfstream.solver.adaptive.tree_mixing import (
    ClassMixing,
    ValueMixing,
    base_of,
    kinds_of_mixing,
    mixing_from_arrays,
    new_mixing,
)
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.refits import Refits
from wolfstream.solver.rows.head_rows import RawRows
from wolfstream.solver.trees.binning import Bins
from wolfstream.solver.trees.boosting import Trees
from wolfstream.solver.trees.code_values import CodeValues
from wolfstream.solver.trees.columns import Encoding
from wolfstream.solver.trees.schedule import FIRST, Fit, effort_of, fit_at
from wolfstream.solver.trees.window import Window, WindowRows

MOST_COLUMNS = 256
MOST_CLASSES = 64
_PARTS = ("bins", "fresh", "residual", "past")


class TreesView(NamedTuple):
    """An immutable view of trees that predict."""

    forests: Forests
    mixing: ClassMixing | ValueMixing
    before: TargetsBefore | None = None  # targets before the next row, if trees see them

    @property
    def columns(self) -> int:
        """Number of columns of the rows."""
        return self.forests.columns

    @property
    def kinds(self) -> list[dict[str, Any]]:
        """The parameters of the trees and stackers; see `tree_mixing.kinds_of_mixing`."""
        return kinds_of_mixing(regression=self.forests.classes == 0)

    @property
    def n_kinds(self) -> int:
        """The number of `kinds`."""
        return len(self.mixing.weight) - 1

    def answer(self, raw: RawRows, answers: Any) -> Any:
        """Return the predictions of bank and trees together; answers: of the bank alone."""
        return self.mixing.answer(self.forests, raw, answers)

    def past(self, raw: RawRows, bank_answers: Any, answers: Any) -> Float64Array | None:
        """Return the values (n,) of trees that see the targets before; None without such trees.

        raw: n rows before they were scaled, each as if it came next.
        bank_answers: predictions of the bank alone.
        answers: predictions of bank and other trees together.
        """
        if self.before is None:
            return None
        before = columns_of_next(self.before, answers.prediction)
        return past_votes(self.forests, raw, bank_answers.prediction, before)


class RunningFit(NamedTuple):
    """A fit that has begun."""

    fit: Fit
    classes: int  # number of classes at its beginning
    units: Units  # of the targets at its beginning


class TreeExperts:
    """The trees of one bank.

    columns: number of columns of the rows.
    categories: the columns that are codes.
    words: number of word codes of the rows; trees ignore words that come later.
    regression: whether labels are numbers.
    past: whether trees for regression see the targets before a row.
    samples: how many samples were learned.
    classes: number of classes so far; 0 in regression.
    forests: the trees that predict; None before the first fit.
    running: the fit that has begun; None between two fits.
    votes: (n,) values for the rows learned last by trees that see the targets before; None without.
    """

    def __init__(
        self,
        columns: int,
        categories: tuple[int, ...],
        words: int = 0,
        *,
        regression: bool,
        past: bool = False,
    ) -> None:
        self.words = words
        self.regression, self.past_trees = regression, regression and past
        self.votes: Float64Array | None = None
        self._before = NOTHING_BEFORE
        self.categories = np.zeros(columns, np.bool_)
        self.categories[list(categories)] = True
        self.samples = self.classes = 0
        self.window = Window(columns, 1 + self.past_trees if regression else 0, words)
        self.forests: Forests | None = None
        self.running: RunningFit | None = None
        self.mixing: ClassMixing | ValueMixing = new_mixing(regression=regression)
        self.losses = Losses(len(self.mixing.weight))
        self._next = FIRST
        self._refits: Refits[Forests] = Refits()

    @property
    def columns(self) -> int:
        """Number of columns of the rows."""
        return len(self.categories)

    @property
    def _work_columns(self) -> int:
        """Columns of equal work in a fit: a word costs one, and half of the words are present."""
        encoded = 0 if self.forests is None else self.forests.encoding.width
        return self.columns + self.words // 2 + encoded

    @property
    def stopped(self) -> bool:
        """Whether there are too many classes."""
        return self.classes > MOST_CLASSES

    def until_change(self) -> int:
        """Return how many rows are learned until a fit begins or its trees predict."""
        following = self._next if self.running is None else self.running.fit.due
        return following - self.samples

    def absorb(
        self,
        raw: RawRows,
        y: NDArray[Any],
        weight: Float64Array,
        answers: Any,
        units: Units,
        work: Callable[[], int],
    ) -> Any:
        """Learn rows that the bank has just learned; return the predictions of bank and trees.

        raw: n <= `until_change()` rows before they were scaled.
        y: (n,) class codes or targets.
        weight: (n,) weights of the rows.
        answers: predictions of the bank, before it learned the rows.
        units: the present units of the targets.
        work: returns the work of the bank (`Learners.work`), to which that of fits is proportional.
        """
        met = self.classes
        if not self.regression:
            self.meet(answers.probability.shape[1])
        base = base_of(answers)
        if self.forests is not None:
            learned = self.mixing.learn(self.forests, raw, y, weight, answers, met)
            answers = learned.answers
            for start in range(0, len(y), RECENT):
                self.losses.add(learned.losses[start : start + RECENT])
        self.votes = None
        if self.past_trees:
            self.votes = self._past_votes(raw, y, base[:, 0], answers)
            joined = base_of(answers)
            base = np.concatenate([base, joined], axis=1)
            self._before = after(self._before, y, joined[:, 0])
        self.samples += len(y)
        if not self.stopped:
            targets = np.asarray(y, np.float64)
            words = raw.word_codes[:, : self.words]
            self.window.add(WindowRows(raw.X, words, targets, weight, base))
        self._go_on(units, work)
        return answers

    def _past_votes(
        self, raw: RawRows, y: NDArray[Any], bank_values: Float64Array, answers: Float64Array
    ) -> Float64Array | None:
        """Return values of rows before their targets y are learned; None without trees."""
        forests = self.forests
        if forests is None or forests.past is None:
            return None
        before = columns_in_order(self._before, y, answers)
        return past_votes(forests, raw, bank_values, before)

    def meet(self, classes: int) -> None:
        """Grow to `classes` classes; stop if these are too many."""
        if classes == self.classes:
            return
        self.classes = classes
        if self.stopped:
            self.forests = self.running = None
            self._refits.drop()
            self.window = Window(self.columns, 0, self.words)
        else:
            self.window.widen(classes, float(np.log(LEAST_PROBABILITY)))

    def _go_on(self, units: Units, work: Callable[[], int]) -> None:
        """Use the trees that are due, and begin the next fit if it is time."""
        if self.running is not None and self.samples == self.running.fit.due:
            former, self.running = self.forests, None
            self.forests = self._refits.take(self.samples)
            if former is not None and self.forests is not None:
                self.mixing.change_units(former, self.forests)
        elif self.running is None and self.samples == self._next:
            shape = min(self.window.size, self.samples), self._work_columns, self.classes
            fit = fit_at(self.samples, *shape, work(), past=self.past_trees)
            self._next = fit.next
            # Nothing can be learned from one class.
            if not self.stopped and (self.regression or self.classes > 1):
                self._begin(RunningFit(fit, self.classes, units))

    def _begin(self, running: RunningFit) -> None:
        """Begin a fit to the rows before it; a restored state may have later rows."""
        self.running = running
        rows = self.window.last(self.window.size, self.samples - running.fit.begins)
        effort = effort_of(running.fit, running.classes)
        arguments = rows, self.categories, running.classes, running.units, effort
        work = partial(fit_forests, *arguments, past=self.past_trees)
        self._refits.begin(self.samples, running.fit.due, work)

    def view(self) -> TreesView | None:
        """Return an immutable view of the trees; None before the first fit."""
        if self.forests is None:
            return None
        mixing = self.mixing.copy()
        assert isinstance(mixing, ClassMixing | ValueMixing)
        before = None if self.forests.past is None else self._before
        return TreesView(self.forests, mixing, before)

    def expert_weights(self, bank: ExpertWeights) -> ExpertWeights:
        """Return the weights and losses of all learners; bank: those of the bank alone."""
        kinds = kinds_of_mixing(regression=self.regression)
        return bank.joined(ExpertWeights(kinds, self.mixing.weight, *self.losses.means()))

    @property
    def nbytes(self) -> int:
        """Memory in bytes, including that of trees that are not fitted yet."""
        codes = self.words > 0 or bool(self.categories.any())
        forests = forests_bytes(self.columns, self.classes, past=self.past_trees, codes=codes)
        return self.losses.nbytes + self._window_bytes(self.samples) + 2 * forests

    def growth(self, n: int) -> int:
        """Return the most bytes that n more rows add."""
        return self._window_bytes(self.samples + n) - self._window_bytes(self.samples)

    def _window_bytes(self, rows: int) -> int:
        """Return the window's bytes, which change with chunks, as those of a bank do."""
        return 0 if self.stopped else self.window.bytes_of((rows // CHUNK + 1) * CHUNK)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return plain arrays from which `restore` continues bit for bit."""
        running = self.running or RunningFit(Fit(-1, 0, self._next), 0, Units())
        counts = [self.samples, self.classes, *running.fit, running.classes]
        arrays = {
            "counts": np.array(counts, np.int64),
            "categories": self.categories.copy(),
            "units": np.array(running.units),
            **self.window.state(),
            **self.losses.state(),
            **self.mixing.arrays(),
        }
        arrays |= {} if self.forests is None else _forest_arrays(self.forests)
        return {f"trees_{name}": array for name, array in arrays.items()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        own = {name.removeprefix("trees_"): array for name, array in arrays.items()}
        self.samples, self.classes, *fit, classes = own["counts"].tolist()
        self.categories = np.array(own["categories"])
        self.window.restore(own)
        if self.past_trees:
            last = self.window.last(LAGS)
            self._before = after(NOTHING_BEFORE, last.y, last.base[:, 1])
        self.losses.restore(own)
        self.mixing = mixing_from_arrays(own, regression=self.regression)
        self.forests = _forests_from_arrays(own) if "forest_counts" in own else None
        self._next, running = fit[2], RunningFit(Fit(*fit), classes, Units(*own["units"].tolist()))
        if running.fit.begins >= 0:
            self._begin(running)


def _forest_arrays(forests: Forests) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {
        "forest_counts": np.array([forests.classes], np.int64),
        "forest_units": np.array(forests.units),
        "forest_unit": np.array([forests.unit]),
    }
    encoding = forests.encoding
    arrays |= {"forest_texts": encoding.texts.copy(), "forest_columns": encoding.columns.copy()}
    arrays |= {f"forest_values_{n}": a.copy() for n, a in encoding.values._asdict().items()}
    names = ("bins", "fresh", "residual") if forests.past is None else _PARTS
    for name in names:
        for field, array in getattr(forests, name)._asdict().items():
            arrays[f"forest_{name}_{field}"] = array.copy()
    return arrays


def _forests_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Forests:
    def of(kind: Any, name: str) -> Any:
        return kind(*(np.array(arrays[f"forest_{name}_{field}"]) for field in kind._fields))

    units = Units(*arrays["forest_units"].tolist())
    classes = int(arrays["forest_counts"][0])
    past = of(Trees, "past") if "forest_past_feature" in arrays else None
    both = of(Trees, "fresh"), of(Trees, "residual")
    unit = float(arrays["forest_unit"][0])
    texts, columns = np.array(arrays["forest_texts"]), np.array(arrays["forest_columns"])
    encoding = Encoding(texts, columns, of(CodeValues, "values"))
    return Forests(classes, units, encoding, of(Bins, "bins"), *both, past, unit)
