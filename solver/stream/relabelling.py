"""A working set whose samples are relabelled when all labels were permuted.

After a permutation of labels the stored samples contradict all that follow, though only their
labels are wrong. Once the permutation is known (`adaptive.label_permutation`), the samples from
before it are relabelled, and the set restarts with them.

Labels that alternate look like one permutation after another, and each restart takes as long as
learning thousands of samples. So a permutation that did not hold for PATIENCE samples makes the
next one wait, and each further one that comes soon after the wait doubles it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.label_permutation import LabelPermutation
from wolfstream.solver.adaptive.ridge import CHUNK
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.sample_weights import Weights, weights_of
from wolfstream.solver.working_set.answers import SetAnswers
from wolfstream.solver.working_set.auto_widths import AutoWidths

# The number of samples between two tests; shorter parts would make the set slow.
_PERIOD = 4 * CHUNK
# A set learns new labels sooner than ridge learners of infinite horizon: there is less time.
_CLASS_HORIZON = 6.0
# After a permutation less than this share of predictions is right, and more once permuted.
_MOST = 0.5
# The number of last samples among which the change is located.
_REMEMBERED = 8 * _PERIOD
# For how many samples a permutation has to hold; the longest wait of the next one.
PATIENCE, LONGEST_WAIT = 4 * _PERIOD, 64 * _PERIOD


class Relabelling(NamedTuple):
    """A permutation of all labels: class j is permutation[j] from a sample on."""

    permutation: NDArray[np.int64]  # (K,)
    since: int  # the number of the first sample with new labels


class MatchedPermutation(LabelPermutation):
    """Estimates a permutation by greedy matching, the largest counts first."""

    def estimate(self) -> NDArray[np.int64]:
        """Return a permutation (K,) of the classes."""
        # Classes without samples, and of equal counts, stay as they are.
        table = self.table + 1e-9 * np.eye(len(self.table))
        permutation = np.full(len(table), -1, np.int64)
        for _ in permutation:
            predicted, label = np.unravel_index(table.argmax(), table.shape)
            permutation[predicted] = label
            table[predicted], table[:, label] = -1.0, -1.0
        return permutation


class RelabellingDetector:
    """Detects permutations of all labels from the predictions of a learner.

    seen: how many samples it has seen.
    """

    def __init__(self) -> None:
        self.seen = 0
        self._permutation = MatchedPermutation(_CLASS_HORIZON)
        # The sample of the last relabelling, and for how many samples no other one counts; 0 if the
        # last one held.
        self._relabelled = self._wait = 0
        # Predicted classes, -1 for none, and labels of the first `_stored` columns.
        self._samples = np.empty((2, 0), np.int64)
        self._stored = 0

    @property
    def _last(self) -> NDArray[np.int64]:
        """Predicted classes and labels (2, samples) of the last samples, as a view."""
        return self._samples[:, max(0, self._stored - _REMEMBERED) : self._stored]

    @property
    def room(self) -> int:
        """The number of samples until the next test."""
        return _PERIOD - self.seen % _PERIOD

    @property
    def nbytes(self) -> int:
        """Memory in bytes, once samples are forgotten."""
        return 4 * _REMEMBERED * self._samples.itemsize + self._permutation.table.nbytes

    def absorb(self, predicted: NDArray[np.int64], y: NDArray[np.int64]) -> Relabelling | None:
        """Count samples; return a relabelling if one is detected.

        predicted: (n,) classes predicted for at most `room` samples, -1 for none.
        y: (n,) their labels.
        """
        self._store(predicted, y)
        self.seen += len(y)
        if self.seen % _PERIOD:
            return None
        relabelling, n = None, self._last.shape[1]
        for start in range(n - _PERIOD, n, CHUNK):
            relabelling = self._test(slice(start, start + CHUNK)) or relabelling
        return relabelling

    def _store(self, predicted: NDArray[np.int64], y: NDArray[np.int64]) -> None:
        n = len(y)
        if self._stored + n > self._samples.shape[1]:
            last = self._last
            self._stored = last.shape[1]
            room = min(2 * (self._stored + n), 2 * _REMEMBERED)
            self._samples = np.empty((2, room), np.int64)
            self._samples[:, : self._stored] = last
        added = self._samples[:, self._stored : self._stored + n]
        added[0], added[1] = predicted, y
        self._stored += n

    def _test(self, part: slice) -> Relabelling | None:
        all_predicted, all_y = self._last
        predicted, y = all_predicted[part], all_y[part]
        classes = 1 + int(max(all_predicted.max(), all_y.max()))
        if classes > len(self._permutation.table):
            self._permutation.meet(classes)
        known = predicted >= 0
        permutation = self._permutation.absorb(predicted[known], y[known])
        if permutation is None:
            return None
        permuted = np.where(all_predicted < 0, -1, permutation[all_predicted])
        # The change is where most predictions are right: unpermuted before it, permuted after it.
        right, right_permuted = all_predicted == all_y, permuted == all_y
        change = int(np.argmax(np.cumsum(right.astype(np.int64) - right_permuted))) + 1
        is_change = right[change:].mean() < _MOST < right_permuted[change:].mean()
        if not is_change or self.seen - self._relabelled < self._wait:
            self._permutation = MatchedPermutation(_CLASS_HORIZON)
            return None
        self._wait_longer()
        all_predicted[:], all_y[:change] = permuted, permutation[all_y[:change]]
        return Relabelling(permutation, self.seen - len(all_y) + change)

    def _wait_longer(self) -> None:
        """Let the next relabelling wait if this one came soon after the last, or after its wait."""
        passed = self.seen - self._relabelled
        held = passed >= max(2 * self._wait, PATIENCE) or not self._relabelled
        self._wait = 0 if held else min(max(2 * self._wait, 2 * _PERIOD), LONGEST_WAIT)
        self._relabelled = self.seen

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        predicted, y = self._last.copy()
        seen = np.array([self.seen, self._relabelled, self._wait])
        own = {"moved_said": predicted, "moved_y": y, "moved_seen": seen}
        return own | self._permutation.state("moved")

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self.seen, self._relabelled, self._wait = state["moved_seen"].tolist()
        self._stored = 0
        self._store(state["moved_said"][-_REMEMBERED:], state["moved_y"][-_REMEMBERED:])
        self._permutation.restore("moved", state)


class RelabellingSet:
    """A working set of finite horizon for dense rows that relabels its samples.

    set: the learner, which restarts now and then (`working_set.auto_widths`).
    """

    def __init__(self, fading: AutoWidths) -> None:
        self.set, self._detector = fading, RelabellingDetector()

    @property
    def past_nbytes(self) -> int:
        """Bytes of past samples and predictions, besides the set."""
        return self.set.past_nbytes + self._detector.nbytes

    def absorb(
        self, X: Float64Array, codes: NDArray[np.int64], weight: Weights = None
    ) -> list[SetAnswers]:
        """Learn rows in order; return the set's predictions before learning, part by part.

        X: (n, d).
        codes: (n,) class codes.
        weight: (n,) weights of the rows.
        """
        answers, start = [], 0
        while start < len(codes):
            part = slice(start, start + self._detector.room)
            part_answers = self.set.absorb(X[part], codes[part], weights_of(weight, part))
            predicted = part_answers[0].prediction
            if len(part_answers) > 1:
                predicted = np.concatenate([answer.prediction for answer in part_answers])
            relabelling = self._detector.absorb(predicted, codes[part])
            if relabelling is not None:
                self.set.relabel(*relabelling)
            answers += part_answers
            start = part.stop
        return answers

    def watch_from_now(self) -> None:
        """Forget past predictions: the set was merged from others."""
        self._detector = RelabellingDetector()
        self._detector.seen = self.set.seen

    def state(self) -> dict[str, NDArray[Any]]:
        """Return plain arrays from which `restore` continues bit for bit."""
        return self.set.state() | self._detector.state()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self.set.restore(state)
        self._detector.restore(state)
