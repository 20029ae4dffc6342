"""Counts of judged predictions of classes, and of two rules that use no features.

The rules predict the label before, and the most frequent label so far: among equally frequent ones
the first to become so.
"""

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger

# The log loss raises smaller probabilities to this, also those of classes not known yet.
_LEAST_PROBABILITY = 1e-15
# The rows of columns of judged predictions: label, prediction, whether each rule was correct, and
# the log loss, NaN without probabilities.
COLUMNS = 5


class Tally(NamedTuple):
    """Judged samples by label and prediction.

    Attributes:
        confusion: (K, K) int64 counts, one row for each label and one column for each prediction.
        rules: (2,) int64, how often each rule was correct.
    """

    confusion: NDArray[np.int64]
    rules: NDArray[np.int64]

    def grown(self, classes: int) -> "Tally":
        """Return a tally of at least this many classes."""
        more = classes - len(self.confusion)
        return self if more <= 0 else self._replace(confusion=np.pad(self.confusion, (0, more)))

    def copy(self) -> "Tally":
        """Return an independent copy."""
        return Tally(self.confusion.copy(), self.rules.copy())


class Labels(NamedTuple):
    """The labels so far.

    Attributes:
        met: (K,) int64, how often each class came.
        said: (2,) int64, what each rule predicts next; -1 for nothing.
    """

    met: NDArray[np.int64]
    said: NDArray[np.int64]

    def grown(self, classes: int) -> "Labels":
        """Return the labels of at least this many classes."""
        more = classes - len(self.met)
        return self if more <= 0 else self._replace(met=np.pad(self.met, (0, more)))

    def copy(self) -> "Labels":
        """Return an independent copy."""
        return Labels(self.met.copy(), self.said.copy())


@compiled
def judge(
    codes: NDArray[np.int64],
    predicted: NDArray[np.int64],
    probability: Float64Array,
    known: NDArray[np.bool_],
    labels: Labels,
    overall: Tally,
    recent: Tally,
    log_loss: Float64Array,
    columns: Float64Array,
    first: int,
    held: int,
    most: int,
) -> int:
    """Count predictions, one by one as their labels come; return how many were judged.

    codes: (n,) the labels' codes.
    predicted: (n,) the predicted codes; -1 for no prediction, which is not judged.
    probability: (n,) of the labels.
    known: (n,) whether the probability is a number, which compiled code cannot ask.
    labels, overall: changed.
    recent: changed; of the last `most` judged predictions.
    log_loss: (2,) sum and number of log losses, changed.
    columns: (COLUMNS, room) of judged predictions, written; NaN where log losses are to come.
    first: the column of `columns` to begin with.
    held: how many columns before that `recent` counts.
    """
    at = first
    for i in range(len(codes)):
        code, guess = codes[i], predicted[i]
        last, majority = code == labels.said[0], code == labels.said[1]
        labels.met[code] += 1
        labels.said[0] = code
        if labels.said[1] < 0 or labels.met[code] > labels.met[labels.said[1]]:
            labels.said[1] = code
        if guess < 0:
            continue
        columns[0, at], columns[1, at] = code, guess
        columns[2, at], columns[3, at] = last, majority
        if known[i]:
            columns[4, at] = -log(larger(probability[i], _LEAST_PROBABILITY))
            log_loss[0] += columns[4, at]
            log_loss[1] += 1.0
        add_column(overall, columns, at, 1)
        add_column(recent, columns, at, 1)
        if held == most:
            add_column(recent, columns, at - most, -1)
        else:
            held += 1
        at += 1
    return at - first


@inner
def add_column(tally: Tally, columns: Float64Array, at: int, count: int) -> None:
    """Count a judged prediction so many times.

    tally: changed.
    columns: (COLUMNS, n) as `judge` writes them.
    at: the column of the prediction.
    """
    tally.confusion[int(columns[0, at]), int(columns[1, at])] += count
    tally.rules[0] += count * int(columns[2, at])
    tally.rules[1] += count * int(columns[3, at])


def tally_of(columns: Float64Array, classes: int) -> Tally:
    """Return the tally of judged predictions, (COLUMNS, n) as `judge` writes them."""
    confusion = np.zeros((classes, classes), np.int64)
    labels, guesses = columns[:2].astype(np.int64)
    np.add.at(confusion, (labels, guesses), 1)
    return Tally(confusion, columns[2:4].sum(axis=1).astype(np.int64))
