"""Schedules fits of trees: when each begins, with how much effort, and when its trees predict.

The schedule depends on sequences and shapes alone, so that every process computes the same. Fits
begin after FIRST samples and each time these have doubled, up to DOUBLED; then at intervals such
that they take a share of the time of learning. Times are estimates in nanoseconds on one core, and
need only be right to a factor of two.
"""

from typing import NamedTuple

from wolfstream.solver.trees.boosting import Effort, outputs_of

FIRST, DOUBLED = 256, 1024
EVERY = 512
# The longest interval, in units of EVERY samples.
_MOST_INTERVALS = 16
MOST_ROUNDS, _LEAST_ROUNDS = 60, 20
# With more outputs than this there are fewer rounds.
_OUTPUTS = 8
# Nanoseconds of a round for each row: a constant, for each output, and for each column with one
# output and with several.
_ROW_NS, _OUTPUT_NS, _COLUMN_NS, _COLUMN_NS_OF_CLASSES = 10.0, 22.0, 4.5, 10.5
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
    if begins < DOUBLED:
        return Fit(begins, begins + begins // 2, 2 * begins)
    interval = EVERY * _intervals(rows, columns, classes, work, 3 if past else 2)
    return Fit(begins, begins + min(interval, rows) // 2, begins + interval)


def effort_of(fit: Fit, classes: int) -> Effort:
    """Return the rounds and the seed of a fit; classes: 0 in regression."""
    outputs = outputs_of(classes)
    rounds = max(_LEAST_ROUNDS, MOST_ROUNDS * _OUTPUTS // max(outputs, _OUTPUTS))
    return Effort(rounds, seed=fit.begins)


def _intervals(rows: int, columns: int, classes: int, work: int, forests: int) -> int:
    outputs = outputs_of(classes)
    column_ns = _COLUMN_NS if outputs == 1 else _COLUMN_NS_OF_CLASSES
    row_ns = _ROW_NS + _OUTPUT_NS * outputs + column_ns * columns
    rounds = effort_of(Fit(0, 0, 0), classes).rounds
    cost = forests * rounds * rows * row_ns
    allowed = _WORK_NS * work + (_CLASSES_NS + _CLASS_NS * classes if classes else 0)
    return int(min(max(cost / (allowed * EVERY), 1.0), _MOST_INTERVALS))
