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


class Counts(NamedTuple):
    """What `judge` counts of a stream of labels and their predictions.

    Attributes:
        met: (K,) int64, how often each class came, judged or not.
        said: (2,) int64, what each rule predicts next; -1 for nothing.
        overall: all judged predictions.
        recent: the last ones.
        log_loss: (2,) sum and number of log losses.
    """

    met: NDArray[np.int64]
    said: NDArray[np.int64]
    overall: Tally
    recent: Tally
    log_loss: Float64Array

    def grown(self, classes: int) -> "Counts":
        """Return the counts of at least this many classes."""
        more = classes - len(self.met)
        if more <= 0:
            return self
        overall, recent = (
            tally._replace(confusion=np.pad(tally.confusion, (0, more)))
            for tally in (self.overall, self.recent)
        )
        return self._replace(met=np.pad(self.met, (0, more)), overall=overall, recent=recent)

    def copy(self) -> "Counts":
        """Return an independent copy."""
        overall, recent = (
            Tally(tally.confusion.copy(), tally.rules.copy())
            for tally in (self.overall, self.recent)
        )
        return Counts(self.met.copy(), self.said.copy(), overall, recent, self.log_loss.copy())


@compiled
def judge(
    codes: NDArray[np.int64],
    predicted: NDArray[np.int64],
    probability: Float64Array,
    is_number: NDArray[np.bool_],
    counts: Counts,
    columns: Float64Array,
    first: int,
    n_recent: int,
    most: int,
) -> int:
    """Count predictions, one by one as their labels come; return how many were judged.

    codes: (n,) the labels' codes.
    predicted: (n,) the predicted codes; -1 for no prediction, which is not judged.
    probability: (n,) of the labels.
    is_number: (n,) whether the probability is a number, which compiled code cannot ask.
    counts: changed.
    columns: (COLUMNS, room) of judged predictions, written; NaN where log losses are to come.
    first: the column of `columns` to begin with.
    n_recent: how many columns before that `counts.recent` counts.
    most: how many it may count.
    """
    at, met, said = first, counts.met, counts.said
    for i in range(len(codes)):
        code, guess = codes[i], predicted[i]
        last, majority = code == said[0], code == said[1]
        met[code] += 1
        said[0] = code
        if said[1] < 0 or met[code] > met[said[1]]:
            said[1] = code
        if guess < 0:
            continue
        columns[0, at], columns[1, at] = code, guess
        columns[2, at], columns[3, at] = last, majority
        if is_number[i]:
            columns[4, at] = -log(larger(probability[i], _LEAST_PROBABILITY))
            counts.log_loss[0] += columns[4, at]
            counts.log_loss[1] += 1.0
        add_column(counts.overall, columns, at, 1)
        add_column(counts.recent, columns, at, 1)
        if n_recent == most:
            add_column(counts.recent, columns, at - most, -1)
        else:
            n_recent += 1
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
