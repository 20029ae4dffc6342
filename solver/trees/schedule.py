"""Schedules fits of trees: when each begins, with how much effort, and when its trees predict.

The schedule depends on sequences and shapes alone, so that every process computes the same. Fits
begin after FIRST samples, and then at intervals such that they take a share of the time of
learning. A young stream gains most from fresh trees: at sequence s < YOUNG they may take YOUNG / s
times that share, which is some tenths of a second in all. Times are estimates in nanoseconds on one
core, and need only be right to a factor of two.
"""

from typing import NamedTuple

from wolfstream.solver.trees.boosting import Effort, outputs_of
from wolfstream.solver.trees.growing import LEAST_ROWS, LEAVES

FIRST, EVERY = 128, 64
YOUNG = 2048
# The longest interval, in units of EVERY samples.
_MOST_INTERVALS = 128
MOST_ROUNDS, _LEAST_ROUNDS = 60, 20
# With more outputs than this there are fewer rounds.
_OUTPUTS = 8
# Nanoseconds of a round for each row: a constant, and for each output.
_ROW_NS, _OUTPUT_NS = 8.0, 20.0
# The same for each column of a row and for each column of a leaf, with one output and with several.
# A leaf takes four times as long; but wide tables gain too much from fresh trees to wait for that.
_COLUMN_NS, _LEAF_NS = (1.3, 2.9), (100.0, 150.0)
# Nanoseconds that fits may take for each sample: for each multiplication of the bank
# (`Learners.work`), and in classification, where a working set learns too, a constant and for each
# class.
_WORK_NS, _CLASSES_NS, _CLASS_NS = 0.07, 20_000.0, 4_000.0


class Fit(NamedTuple):
    """The schedule of one fit, in samples."""

    begins: int
    due: int  # its trees predict from here on
    next: int  # the next fit begins


def fit_at(
    begins: int, rows: int, columns: int, classes: int, work: int, *, past: bool = False
) -> Fit:
    """Return the schedule of the fit that begins at a sequence.

    begins: the sequence.
    rows: the most rows of the fit.
    columns: their columns.
    classes: number of classes; 0 in regression.
    work: multiplications of the bank for each sample.
    past: whether a third forest sees the targets before a row.
    """
    cost = (3 if past else 2) * _fit_nanoseconds(rows, columns, classes)
    allowed = _WORK_NS * work + (_CLASSES_NS + _CLASS_NS * classes if classes else 0)
    allowed *= max(YOUNG / begins, 1.0)
    interval = EVERY * int(min(max(cost / (allowed * EVERY), 1.0), _MOST_INTERVALS))
    return Fit(begins, begins + min(interval, rows) // 2, begins + interval)


def effort_of(fit: Fit, classes: int) -> Effort:
    """Return the rounds and the seed of a fit; classes: 0 in regression."""
    outputs = outputs_of(classes)
    rounds = max(_LEAST_ROUNDS, MOST_ROUNDS * _OUTPUTS // max(outputs, _OUTPUTS))
    return Effort(rounds, seed=fit.begins)


def _fit_nanoseconds(rows: int, columns: int, classes: int) -> float:
    """Return the expected processor time of fitting one forest."""
    outputs = outputs_of(classes)
    several = int(outputs > 1)
    leaves = min(LEAVES, rows / LEAST_ROWS)
    of_rows = rows * (_ROW_NS + _OUTPUT_NS * outputs + _COLUMN_NS[several] * columns)
    rounds = effort_of(Fit(0, 0, 0), classes).rounds
    return rounds * (of_rows + leaves * columns * _LEAF_NS[several])
