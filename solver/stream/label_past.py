r"""What the labels just before a row add to a bank's answer, where they are known.

    the answer without them           \
    what the labels so far say         >  stackers and shares  ->  the answer that knows them
    trees that see the last targets   /

Both answers are a model's: rows that it learns are answered with the labels before them, in the
order of the log, and that is what its results count. A prediction is answered so where the labels
just before its row have come (`label_order`), or always; else without. Nothing of this changes the
answer without them, and there is none any more once there are more than MOST_CLASSES classes.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.combination import known_classes
from wolfstream.solver.adaptive.losses import RECENT, Losses
from wolfstream.solver.adaptive.standing import Standing
from wolfstream.solver.adaptive.view import ClassAnswers
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.classes import ClassCalibration, ClassConfidence
from wolfstream.solver.calibration.values import ValueCalibration, ValueConfidence
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.seen import RawRows
from wolfstream.solver.stream import past_classes, past_values
from wolfstream.solver.stream.past_classes import ClassPast, ClassPasts, ClassPastView
from wolfstream.solver.stream.past_values import ValuePast, ValuePasts, ValuePastView
from wolfstream.solver.stream.placed import PlacedAnswers
from wolfstream.solver.stream.recent_rows import RecentRows, RecentView
from wolfstream.solver.stream.value_head import Values
from wolfstream.solver.stream.value_mixture import HORIZONS
from wolfstream.solver.stream.votes import HeadAnswer

MOST_CLASSES = 128
# How the names of its arrays begin, and after that those of its calibration.
PREFIX, CALIBRATION = "past_", "calibration_"


class PastView(NamedTuple):
    """An immutable view of what the labels so far add to answers.

    always: whether all predictions are answered with it. recent: the rows learned last. alone: how
    sure answers without it are.
    """

    always: bool
    recent: RecentView
    of_task: ClassPastView | ValuePastView
    alone: ClassConfidence | ValueConfidence

    def helps(self, *, in_turn: bool) -> bool:
        """Return whether a prediction is answered with it.

        in_turn: whether the labels just before its row are known.
        """
        return in_turn or self.always

    def placed(self, answers: Any, votes: Float64Array | None, *, in_turn: bool) -> PlacedAnswers:
        """Return the answers to a prediction about which there are others; see `helps`."""
        if self.helps(in_turn=in_turn):
            return PlacedAnswers(self.answer(answers, votes), True)
        return PlacedAnswers(answers, False, confidence=self.alone)

    def answer(self, answers: Any, votes: Float64Array | None = None) -> Any:
        """Return answers that know the labels before for others that do not.

        votes: (n,) of trees that see the targets before.
        """
        if isinstance(self.of_task, ClassPastView):
            return self.of_task.answer(answers)
        return self.of_task.answer(answers, answers.prediction if votes is None else votes)

    def gradient(self, answers: Any, direction: Float64Array) -> Float64Array:
        """Return what answers to one row without it count in a direction of those with it.

        direction: (K,) of logarithms of probabilities, or (1,).
        """
        if isinstance(self.of_task, ClassPastView):
            return self.of_task.direction(answers, direction)
        return direction * self.of_task.rate(float(answers.prediction[0]))


class LabelPast:
    """The labels of one bank so far. always: as of `PastView`.

    classes: met so far, 0 of numbers. past: None once there are too many classes. losses: of the
    answer without the labels before, the other experts and the stackers. alone: the calibration of
    the answer without the labels before.
    """

    def __init__(self, *, regression: bool, always: bool) -> None:
        self.regression, self.always, self.classes = regression, always, 0
        self.recent = RecentRows()
        self.past: ClassPast | ValuePast | None
        self.past = past_values.new_value_past() if regression else past_classes.new_class_past()
        self.losses = Losses(1 + len(self.kinds))
        self.alone = ValueCalibration() if regression else ClassCalibration(log_scores=True)
        self._of_values, self._of_classes = ValuePasts(), ClassPasts()

    @property
    def kinds(self) -> list[dict[str, Any]]:
        """Return the parameters of the experts but the answer, and of the stackers."""
        if not self.regression:
            return [dict(kind) for kind in past_classes.KINDS]
        stackers = [horizon if np.isfinite(horizon) else None for horizon in HORIZONS]
        return [dict(kind) for kind in past_values.KINDS] + [
            {"learner": "stacker", "of": "targets before", "horizon": one} for one in stackers
        ]

    def meet(self, classes: int) -> None:
        """Make room for so many classes, or stop."""
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
        """Learn rows with their labels; return answers that know the labels before each.

        X, raw: see `recent_rows.hashes_of`. weight: (n,). answers: that do not know them:
        ClassAnswers or Values. votes: (n,) of trees that see the targets before; None where
        there are none.
        """
        met, aided, losses = self.classes, answers, None
        if isinstance(answers, ClassAnswers):
            self.meet(answers.probability.shape[1])
            if isinstance(self.past, ClassPast):
                known = known_classes(y, met)
                aided, losses = self._of_classes.learn(self.past, answers, y, known, weight)
        elif isinstance(self.past, ValuePast):
            values = answers.prediction
            tree_values = values if votes is None else votes
            aided, losses = self._of_values.learn(self.past, values, tree_values, y, weight)
            aided = Values(aided)
        if losses is not None:
            for start in range(0, len(y), RECENT):
                self.losses.add(losses[start : start + RECENT])
        self._calibrate(answers, y)
        self.recent.add(X, raw)
        return aided

    def _calibrate(self, answers: Any, y: NDArray[Any]) -> None:
        if isinstance(self.alone, ClassCalibration):
            classes = tuple(range(answers.probability.shape[1]))
            self.alone.absorb(HeadAnswer(classes, [answers]).scores, y)
        else:
            self.alone.absorb(answers.prediction, y)

    def view(self) -> PastView | None:
        """Return what answers the next row; None where nothing does."""
        of_task: ClassPastView | ValuePastView | None = None
        if isinstance(self.past, ClassPast):
            of_task = past_classes.view_of(self.past)
        elif self.past is not None:
            of_task = self._of_values.view(self.past)
        if of_task is None:
            return None
        return PastView(self.always, self.recent.view(), of_task, self.alone.view())

    def standing(self, before: Standing) -> Standing:
        """Return a standing with that of the labels before, of which all share the weight."""
        if self.past is None:
            return before
        of_task = self.past
        mixed = of_task.combination if isinstance(of_task, ClassPast) else of_task.mixture
        weight = mixed.weight
        recent, overall = self.losses.means()
        return Standing(
            before.kinds + self.kinds,
            np.concatenate([weight[0] * before.weight, weight[1:]]),
            np.concatenate([before.recent_loss, recent[1:]]),
            np.concatenate([before.overall_loss, overall[1:]]),
        )

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        own = self.losses.nbytes + self.recent.hashes.nbytes
        return own + sum(array.nbytes for array in self._arrays().values())

    def _arrays(self) -> dict[str, NDArray[Any]]:
        if self.past is None:
            return {}
        if isinstance(self.past, ClassPast):
            return past_classes.class_past_arrays(self.past)
        return past_values.value_past_arrays(self.past)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that `restore` needs to go on bit for bit, as plain arrays."""
        classes = {"classes": np.array([self.classes], np.int64)}
        arrays = classes | self.recent.state() | self.losses.state() | self._arrays()
        arrays |= {f"{CALIBRATION}{name}": array for name, array in self.alone.state().items()}
        return {f"{PREFIX}{name}": array for name, array in arrays.items()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state of such labels."""
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
    """Return the arrays whose names begin so, by the rest of these."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
