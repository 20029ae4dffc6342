"""Kernel values of three and more classes: each pair of classes has a matrix of its members.

A pair's members are few among all stored samples, and spread over the rows of one matrix of all; in
a matrix of their own, a square, their values stay in the cache from step to step.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import FloatArray
from wolfstream.solver.compiled import compiled
from wolfstream.solver.frank_wolfe.problem import Problem
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import Rows, take
from wolfstream.solver.working_set.gram import UNKEPT, fill_symmetric
from wolfstream.solver.working_set.hessian import KernelValues
from wolfstream.solver.working_set.pair_problems import PairProblems

# Widths are multiples of a cache line, and have room for a quarter more members than are needed.
_LINE = 16
_SPARE = 4
# The array has room for a quarter more values than all squares have.
_ROOM = 4
# An upper bound of both factors together.
SPARE_FACTOR = 2
# The least bound of the squares of a bounded set, in bytes.
_LEAST_BYTES = 1 << 20


class Squares(NamedTuple):
    """The kernel values of P problems among their members, in the order of the members."""

    # The square of problem i has width[i]^2 of these from start[i] on, row after row.
    values: FloatArray
    # (P,).
    start: NDArray[np.int64]
    width: NDArray[np.int64]


class PairSquares:
    """The squares of all problems, in one array that grows.

    nbytes_max: the most bytes of kernel values.
    """

    def __init__(self, kernel: Kernel, dtype: np.dtype[Any], nbytes_max: int) -> None:
        self._kernel = kernel
        self._most = nbytes_max // dtype.itemsize
        self._end = 0
        none = np.empty(0, np.int64)
        self.arrays = Squares(np.empty(0, dtype), none, none)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays, with their unused parts."""
        return sum(array.nbytes for array in self.arrays)

    def reserve(self, needed: NDArray[np.int64]) -> bool:
        """Make room for members; returns whether the bound allows it.

        needed: (P,) how many members of each problem. New problems have none yet.
        """
        old = _with_problems(self.arrays, len(needed))
        lacking = needed > old.width
        if not lacking.any() and len(needed) == len(self.arrays.width):
            return True
        width = np.where(lacking, _roomy(needed), old.width)
        areas = width[lacking] ** 2
        asked = int(areas.sum())
        if not self._has_room(old, asked):
            return False
        start = old.start.copy()
        start[lacking] = self._end + np.cumsum(areas) - areas
        self._end += asked
        self.arrays = Squares(old.values, start, width)
        _copy_moved(old, self.arrays, lacking)
        return True

    def _has_room(self, squares: Squares, asked: int) -> bool:
        """Make room for `asked` values at the end; returns whether the bound allows it."""
        if self._end + asked <= len(squares.values):
            return True
        order = np.argsort(squares.start, kind="stable")
        self._end = int(_close_gaps(squares, order))
        total = self._end + asked
        if total > self._most:
            return False
        if total + total // _ROOM > len(squares.values):
            # In place, because the first touch of a new page costs more than all copies.
            squares.values.resize(min(total + total // _ROOM, self._most), refcheck=False)
        return True

    def compute(self, rows: Rows, problems: PairProblems, since: int) -> bool:
        """Compute the squares of problems `since`, `since` + 1, ...; returns as `reserve` does.

        rows: the prepared rows of all slots.
        """
        sizes = problems.arrays.size
        if not self.reserve(sizes):
            return False
        for i in range(since, len(sizes)):
            if n := int(sizes[i]):
                member_rows = take(rows, problems[i].column[:n])
                fill_symmetric(self._kernel, member_rows, self.square(i)[:n, :n])
        return True

    def square(self, i: int) -> FloatArray:
        """Return the square of problem i, (width, width)."""
        start, width = int(self.arrays.start[i]), int(self.arrays.width[i])
        return self.arrays.values[start : start + width * width].reshape(width, width)

    def as_block(self, problem: Problem, i: int) -> tuple[Problem, KernelValues]:
        """Return problem i and its kernel values as if all members were a block's samples.

        The columns of the members are then their positions, and no sample is stored.
        """
        in_block = problem._replace(column=np.arange(len(problem.column)))
        return in_block, KernelValues(UNKEPT[self.arrays.values.dtype], _NONE, self.square(i), 0)


_NONE = np.empty(0)


def squares_bytes(max_size: int | None, gram_bytes: int, itemsize: int) -> int:
    """Return the most bytes of all squares: gram_bytes, or less for a bounded set.

    With K classes each sample can be a member of K - 1 pairs. With S samples in classes of equal
    size, the squares have (K - 1) K / 2 times (2 S / K)^2 values, which is less than 2 S^2.
    """
    if max_size is None:
        return gram_bytes
    return min(gram_bytes, max(2 * itemsize * max_size * max_size, _LEAST_BYTES))


def _roomy(needed: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(-(-(needed + needed // _SPARE) // _LINE) * _LINE)


def _with_problems(squares: Squares, count: int) -> Squares:
    """Return `count` squares, of which the new ones are empty."""
    new = count - len(squares.width)
    none = np.zeros(new, np.int64)
    start, width = np.append(squares.start, none), np.append(squares.width, none)
    return Squares(squares.values, start, width)


@compiled
def _close_gaps(squares: Squares, order: NDArray[np.int64]) -> int:
    """Move all squares to the front, in their order in memory; returns where they end."""
    values, end = squares.values, np.uint64(0)
    for i in order:
        start = np.uint64(squares.start[i])
        squares.start[i] = end
        for j in range(np.uint64(squares.width[i] * squares.width[i])):
            values[end + j] = values[start + j]
        end += np.uint64(squares.width[i] * squares.width[i])
    return int(np.int64(end))


@compiled
def _copy_moved(old: Squares, new: Squares, moved: NDArray[np.bool_]) -> None:
    """Copy the squares of some problems to their new starts and widths."""
    for i in range(len(new.width)):
        before, after = old.width[i], new.width[i]
        if moved[i]:
            for row in range(before):
                a, b = np.uint64(old.start[i] + row * before), np.uint64(new.start[i] + row * after)
                for column in range(np.uint64(before)):
                    new.values[b + column] = old.values[a + column]
