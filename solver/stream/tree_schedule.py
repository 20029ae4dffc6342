"""When trees are fitted again, with how much effort, and from which sequence they answer.

All of it follows from sequences and shapes. Fits begin after FIRST samples and each time these have
doubled, up to EVERY; then so often that they take a share of the time that learning takes. Times
are estimates in nanoseconds, of one core, and need only be right to a factor of two.
"""

from typing import NamedTuple

from wolfstream.solver.trees.boosting import Effort, outputs_of

FIRST, DOUBLED = 256, 1024
EVERY = 512
# Of EVERY samples: no interval is longer.
_MOST_INTERVALS = 16
MOST_ROUNDS, _LEAST_ROUNDS = 60, 20
# Outputs that trees have with all rounds; with more, there are fewer rounds.
_OUTPUTS = 8
# Nanoseconds of a round for each row: for itself, each output, and each column, of one output and
# of several.
_ROW_NS, _OUTPUT_NS, _COLUMN_NS, _COLUMN_NS_OF_CLASSES = 10.0, 22.0, 4.5, 10.5
# Nanoseconds that fits may take for each sample learned: for each multiplication of the bank's
# (`Learners.work`), and of classes, whose working set costs as well.
_WORK_NS, _CLASSES_NS, _CLASS_NS = 0.07, 20_000.0, 4_000.0


class Fit(NamedTuple):
    """A fit that begins after `begins` samples and answers from `due` on; `next`: the next one."""

    begins: int
    due: int
    next: int


def fit_at(
    begins: int, rows: int, columns: int, classes: int, work: int, *, past: bool = False
) -> Fit:
    """Return the fit that begins at a sequence.

    rows: that it takes at most. classes: 0 of numbers. work: of the bank. past: whether a third
    forest sees the targets before.
    """
    if begins < DOUBLED:
        return Fit(begins, begins + begins // 2, 2 * begins)
    interval = EVERY * _intervals(rows, columns, classes, work, 3 if past else 2)
    return Fit(begins, begins + min(interval, rows) // 2, begins + interval)


def effort_of(fit: Fit, classes: int) -> Effort:
    """Return how much effort a fit takes."""
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
