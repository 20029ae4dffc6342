"""The problems of all pairs of classes in common arrays, so that one compiled loop walks them all.

A Python call for each of 4,950 pairs (100 classes) would take more time than their steps.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger
from wolfstream.solver.frank_wolfe.problem import Problem, is_indefinite

# The fields of `Problem` with an entry for each member, and those with one entry for the problem.
_MEMBER_FIELDS = ("alpha", "gradient", "sign", "column", "diagonal", "inverse_weight")
_PROBLEM_FIELDS = ("q", "size", "steps", "indefinite")
# How many members a new problem has room for.
_FIRST_ROOM = 64


class PairArrays(NamedTuple):
    """The fields of P problems (`frank_wolfe.problem.Problem`) one after another."""

    # (P,) problem i has the entries [first, first + room) of the members' fields.
    first: NDArray[np.int64]
    room: NDArray[np.int64]
    # The members' fields, (sum of room,) each.
    alpha: Float64Array
    gradient: Float64Array
    sign: Float64Array
    column: NDArray[np.int64]
    diagonal: Float64Array
    inverse_weight: Float64Array
    # The problems' fields, (P,) each.
    q: Float64Array
    size: NDArray[np.int64]
    steps: NDArray[np.int64]
    indefinite: NDArray[np.bool_]


@inner
def problem_at(pairs: PairArrays, i: int) -> Problem:
    """Return problem i, whose arrays are parts of the common ones."""
    start = pairs.first[i]
    stop = start + pairs.room[i]
    return Problem(
        pairs.alpha[start:stop],
        pairs.gradient[start:stop],
        pairs.sign[start:stop],
        pairs.column[start:stop],
        pairs.diagonal[start:stop],
        pairs.inverse_weight[start:stop],
        pairs.q[i : i + 1],
        pairs.size[i : i + 1],
        pairs.steps[i : i + 1],
        pairs.indefinite[i : i + 1],
    )


class PairProblems(Sequence[Problem]):
    """The problems as a sequence; each is a view that is valid until `reserve` or `append`."""

    def __init__(self, problems: Sequence[Problem] = ()) -> None:
        self.arrays = _arrays_for(np.array([_room(p) for p in problems], np.int64))
        self._copy(problems, 0)

    def __len__(self) -> int:
        return len(self.arrays.size)

    def __getitem__(self, i):  # type: ignore[no-untyped-def]
        if isinstance(i, slice):
            return [problem_at(self.arrays, k) for k in range(*i.indices(len(self)))]
        return problem_at(self.arrays, range(len(self))[i])

    def __iter__(self) -> Iterator[Problem]:
        return (problem_at(self.arrays, i) for i in range(len(self)))

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays)

    @property
    def largest_room(self) -> int:
        """How many members the problem with most room can have."""
        return int(self.arrays.room.max(initial=0))

    @property
    def indefinite(self) -> bool:
        """Whether the A of a problem is known not to be positive semidefinite."""
        if self.arrays.indefinite.any():
            return True
        negative = np.flatnonzero(self.arrays.q < 0.0)  # seldom any, so few problems are made
        return any(is_indefinite(self[i]) for i in negative.tolist())

    def append(self, problems: Sequence[Problem]) -> None:
        """Add copies of problems after the last one."""
        if problems:
            added = np.array([_room(p) for p in problems], np.int64)
            old, self.arrays = self.arrays, _arrays_for(np.append(self.arrays.room, added))
            _copy_all(old, self.arrays)
            self._copy(problems, len(old.size))

    def lacks_room_for(self, n: int) -> bool:
        """Whether any problem has no room for n more members."""
        return bool((self.arrays.size + n > self.arrays.room).any())

    def reserve(self, added: NDArray[np.int64]) -> None:
        """Make room for more members of each problem.

        added: (P,) how many.
        """
        needed = self.arrays.size + added
        if np.any(needed > self.arrays.room):
            room = np.where(
                needed > self.arrays.room,
                np.maximum(needed, 2 * self.arrays.room),
                self.arrays.room,
            )
            old, self.arrays = self.arrays, _arrays_for(room)
            _copy_all(old, self.arrays)

    def _copy(self, problems: Sequence[Problem], first: int) -> None:
        """Copy problems into those from number `first` on, which have room for their members."""
        for i, old in enumerate(problems, first):
            n, new = old.size[0], self[i]
            for field in _MEMBER_FIELDS:
                getattr(new, field)[:n] = getattr(old, field)[:n]
            for field in _PROBLEM_FIELDS:
                getattr(new, field)[0] = getattr(old, field)[0]


def _room(problem: Problem) -> int:
    return max(_FIRST_ROOM, int(problem.size[0]))


def _arrays_for(room: NDArray[np.int64]) -> PairArrays:
    """Return arrays of problems without members."""
    ends = np.cumsum(room)
    entries, count = int(ends[-1]) if len(room) else 0, len(room)
    return PairArrays(
        first=ends - room,
        room=room,
        alpha=np.zeros(entries),
        gradient=np.zeros(entries),
        sign=np.zeros(entries),
        column=np.zeros(entries, np.int64),
        diagonal=np.zeros(entries),
        inverse_weight=np.ones(entries),
        q=np.zeros(count),
        size=np.zeros(count, np.int64),
        steps=np.zeros(count, np.int64),
        indefinite=np.zeros(count, np.bool_),
    )


@compiled
def _copy_all(old: PairArrays, new: PairArrays) -> None:
    for i in range(len(old.size)):
        n, a, b = old.size[i], old.first[i], new.first[i]
        # Slices take several times as long to compile.
        for m in range(n):
            new.alpha[b + m] = old.alpha[a + m]
            new.gradient[b + m] = old.gradient[a + m]
            new.sign[b + m] = old.sign[a + m]
            new.column[b + m] = old.column[a + m]
            new.diagonal[b + m] = old.diagonal[a + m]
            new.inverse_weight[b + m] = old.inverse_weight[a + m]
        new.q[i], new.size[i] = old.q[i], n
        new.steps[i], new.indefinite[i] = old.steps[i], old.indefinite[i]


@compiled
def enter_slots(pairs: PairArrays, stored: int, slot_of: NDArray[np.int64]) -> None:
    """Replace the block columns of newly stored members by their slots.

    Only the last B members of a problem can be new.

    stored: the column of the block's first sample.
    slot_of: (B,) the slot of each sample of the block that was stored.
    """
    for i in range(len(pairs.size)):
        end = pairs.first[i] + pairs.size[i]
        for m in range(larger(pairs.first[i], end - len(slot_of)), end):
            if pairs.column[m] >= stored:
                pairs.column[m] = slot_of[pairs.column[m] - stored]
