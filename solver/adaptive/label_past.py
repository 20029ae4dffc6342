r"""Adds what the labels just before a row tell about it to a bank's prediction.

    prediction without them           \
    experts on the labels so far       >  stackers and fixed share  ->  prediction with them
    trees that see the last targets   /

Samples are predicted with the labels before them when they are learned, in the order of the log,
and scores count these predictions. A row to predict gets them if the labels just before it are
known (`label_order`), or if the model always uses them. The prediction without them does not depend
on any of this. With more than MOST_CLASSES classes the labels before are not used.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive import past_classes, past_values
from wolfstream.solver.adaptive.combination import known_classes
from wolfstream.solver.adaptive.expert_weights import ExpertWeights
from wolfstream.solver.adaptive.losses import RECENT, Losses
from wolfstream.solver.adaptive.past_classes import ClassPast, ClassPasts, ClassPastView
from wolfstream.solver.adaptive.past_values import ValuePast, ValuePasts, ValuePastView
from wolfstream.solver.adaptive.temporal_answers import TemporalAnswers
from wolfstream.solver.adaptive.value_mixture import HORIZONS
from wolfstream.solver.adaptive.view import ClassAnswers
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.classes import ClassCalibration, ClassConfidence
from wolfstream.solver.calibration.values import ValueCalibration, ValueConfidence
from wolfstream.solver.rows.answers import Values
from wolfstream.solver.rows.head_rows import RawRows
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.recent_rows import RecentRows, RecentView

MOST_CLASSES = 128
# Prefix of the names of saved arrays, and then of those of the calibration.
PREFIX, CALIBRATION = "past_", "calibration_"


class PastView(NamedTuple):
    """An immutable view of what the labels so far add to predictions."""

    always: bool  # whether all predictions use it
    recent: RecentView  # the rows learned last
    past: ClassPastView | ValuePastView
    alone: ClassConfidence | ValueConfidence  # of predictions without the labels before

    def helps(self, *, in_turn: bool) -> bool:
        """Return whether a prediction uses the labels before its row.

        in_turn: whether the labels just before the row are known.
        """
        return in_turn or self.always

    def temporal_answers(
        self, answers: Any, votes: Float64Array | None, *, in_turn: bool
    ) -> TemporalAnswers:
        """Return the predictions with the labels before rows, or without; see `helps`.

        answers: without them.
        votes: (n,) values of trees that see the targets before; None without such trees.
        in_turn: whether the labels just before the rows are known.
        """
        if self.helps(in_turn=in_turn):
            return TemporalAnswers(self.answer(answers, votes), True)
        return TemporalAnswers(answers, False, confidence=self.alone)

    def answer(self, answers: Any, votes: Float64Array | None = None) -> Any:
        """Return predictions with the labels before rows; arguments as in `temporal_answers`."""
        if isinstance(self.past, ClassPastView):
            return self.past.answer(answers)
        return self.past.answer(answers, answers.prediction if votes is None else votes)

    def gradient(self, answers: Any, direction: Float64Array) -> Float64Array:
        """Return the gradient in the prediction without the labels before, of that with them.

        answers: to one row, without the labels before.
        direction: (K,) the gradient in log probabilities with them; (1,) in regression.
        """
        if isinstance(self.past, ClassPastView):
            return self.past.direction(answers, direction)
        return direction * self.past.rate(float(answers.prediction[0]))


class LabelPast:
    """Learns what the labels before a row tell about it, for one bank.

    regression: whether labels are numbers.
    always: see `PastView`.
    classes: number of classes so far; 0 in regression.
    past: None once there are too many classes.
    losses: of the prediction without the labels before, the other experts, and the stackers.
    alone: the calibration of the prediction without the labels before.
    """

    def __init__(self, *, regression: bool, always: bool) -> None:
        self.regression, self.always, self.classes = regression, always, 0
        self.recent = RecentRows()
        self.past: ClassPast | ValuePast | None
        self.past = past_values.new_value_past() if regression else past_classes.new_class_past()
        self.losses = Losses(1 + len(self.kinds))
        self.alone = ValueCalibration() if regression else ClassCalibration(log_scores=True)
        self._value_pasts, self._class_pasts = ValuePasts(), ClassPasts()

    @property
    def kinds(self) -> list[dict[str, Any]]:
        """The parameters of all experts but the first, and of the stackers."""
        if not self.regression:
            return [dict(kind) for kind in past_classes.KINDS]
        stackers = [horizon if np.isfinite(horizon) else None for horizon in HORIZONS]
        return [dict(kind) for kind in past_values.KINDS] + [
            {"learner": "stacker", "of": "targets before", "horizon": horizon}
            for horizon in stackers
        ]

    @property
    def n_kinds(self) -> int:
        """The number of `kinds`."""
        return len(self.losses.total) - 1

    def meet(self, classes: int) -> None:
        """Grow to `classes` classes; stop if these are too many."""
        if classes == self.classes:
            return
        self.classes = classes
        if classes > MOST_CLASSES:
            self.past = None
        elif isinstance(self.past, ClassPast):
            self.past = past_classes.with_classes(self.past, classes)

    def absorb(
        self,
        X: Matrix,
        raw: RawRows | None,
        y: NDArray[Any],
        weight: Float64Array,
        answers: Any,
        votes: Float64Array | None = None,
    ) -> Any:
        """Learn rows in order; return the predictions with the labels before each.

        X, raw: n rows, as `recent_rows.last_hashes` takes them.
        y: (n,) class codes or targets.
        weight: (n,) weights of the rows.
        answers: the predictions without the labels before, ClassAnswers or Values.
        votes: (n,) values of trees that see the targets before; None without such trees.
        """
        met, aided, losses = self.classes, answers, None
        if isinstance(answers, ClassAnswers):
            self.meet(answers.probability.shape[1])
            if isinstance(self.past, ClassPast):
                known = known_classes(y, met)
                aided, losses = self._class_pasts.learn(self.past, answers, y, known, weight)
        elif isinstance(self.past, ValuePast):
            values = answers.prediction
            tree_values = values if votes is None else votes
            aided, losses = self._value_pasts.learn(self.past, values, tree_values, y, weight)
            aided = Values(aided)
        if losses is not None:
            for start in range(0, len(y), RECENT):
                self.losses.add(losses[start : start + RECENT])
        self._calibrate(answers, y)
        self.recent.add(X, raw)
        return aided

    def _calibrate(self, answers: Any, y: NDArray[Any]) -> None:
        if isinstance(self.alone, ClassCalibration):
            self.alone.absorb(answers.scores, y)
        else:
            self.alone.absorb(answers.prediction, y)

    def view(self) -> PastView | None:
        """Return an immutable view for the next row; None if the labels so far tell nothing."""
        past: ClassPastView | ValuePastView | None = None
        if isinstance(self.past, ClassPast):
            past = past_classes.view_of(self.past)
        elif self.past is not None:
            past = self._value_pasts.view(self.past)
        if past is None:
            return None
        return PastView(self.always, self.recent.view(), past, self.alone.view())

    def expert_weights(self, others: ExpertWeights) -> ExpertWeights:
        """Return the weights and losses of all learners; others: those of bank and trees."""
        if self.past is None:
            return others
        past = self.past
        mixed = past.combination if isinstance(past, ClassPast) else past.mixture
        return others.joined(ExpertWeights(self.kinds, mixed.weight, *self.losses.means()))

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        own = self.losses.nbytes + self.recent.hashes.nbytes
        return own + (0 if self.past is None else self.past.nbytes)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        if self.past is None:
            return {}
        if isinstance(self.past, ClassPast):
            return past_classes.class_past_arrays(self.past)
        return past_values.value_past_arrays(self.past)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return plain arrays from which `restore` continues bit for bit."""
        classes = {"classes": np.array([self.classes], np.int64)}
        arrays = classes | self.recent.state() | self.losses.state() | self._arrays()
        arrays |= {f"{CALIBRATION}{name}": array for name, array in self.alone.state().items()}
        return {f"{PREFIX}{name}": array for name, array in arrays.items()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        own = _named(PREFIX, arrays)
        self.alone.restore(_named(CALIBRATION, own))
        self.classes = int(own["classes"][0])
        self.recent.restore(own)
        self.losses.restore(own)
        if self.classes > MOST_CLASSES:
            self.past = None
        elif self.regression:
            self.past = past_values.value_past_from_arrays(own)
        else:
            self.past = past_classes.class_past_from_arrays(own)


def _named(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names have a prefix, by their names without it."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
