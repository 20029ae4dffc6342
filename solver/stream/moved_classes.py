"""A working set whose samples follow when labels change their meaning.

After all labels have moved, what the set stores is right but for its labels, and contradicts all
that comes. Once what it calls j has become k for every j (`adaptive.places`), the samples of
before get the labels of after, and the set starts again with them.

Labels that alternate seem to move again and again, and each start takes as long as learning
thousands of samples. So a move that did not hold for PATIENCE samples makes the next one wait, and
each further one that comes soon after the wait makes it twice as long.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.places import Places
from wolfstream.solver.adaptive.ridge import CHUNK
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.sample_weights import Weights, weights_of
from wolfstream.solver.working_set.answers import Absorbed
from wolfstream.solver.working_set.auto_widths import AutoWidths

# The number of samples between two looks at classes; shorter parts would make the set slow.
_PERIOD = 4 * CHUNK
# A set learns what is new sooner than learners of endless memory, so there is less time.
_CLASS_HORIZON = 6.0
# All labels have moved only if more are wrong as they are, and more are right once moved.
_MOST = 0.5
# The samples among which the change is looked for.
_REMEMBERED = 8 * _PERIOD
# For how many samples a move has to hold; the longest that the next one waits.
PATIENCE, LONGEST_WAIT = 4 * _PERIOD, 64 * _PERIOD


class Move(NamedTuple):
    """places: (K,) where each class is now. since: the number of the first sample of after."""

    places: NDArray[np.int64]
    since: int


class OnePlaceEach(Places):
    """Where two classes would have the same place, the larger count has it."""

    def most_frequent(self) -> NDArray[np.int64]:
        """(K,) a place for each class, and a class for each place."""
        # Of what never came, and of two that came as often, each class is where it was.
        table = self.table + 1e-9 * np.eye(len(self.table))
        places = np.full(len(table), -1, np.int64)
        for _ in places:
            predicted, label = np.unravel_index(table.argmax(), table.shape)
            places[predicted] = label
            table[predicted], table[:, label] = -1.0, -1.0
        return places


class MovedClasses:
    """Watches what a learner says. seen: how many samples."""

    def __init__(self) -> None:
        self.seen = 0
        self._places = OnePlaceEach(_CLASS_HORIZON)
        # When classes moved last, and how long no other move counts; 0 if the last one held.
        self._moved = self._wait = 0
        # The predicted classes of samples, -1 for none, and their labels; the last ones count.
        self._noted = np.empty((2, 2 * _REMEMBERED), np.int64)
        self._held = 0

    @property
    def _last(self) -> NDArray[np.int64]:
        """(2, samples): predicted classes and labels of the last samples, to be written, too."""
        return self._noted[:, max(0, self._held - _REMEMBERED) : self._held]

    @property
    def room(self) -> int:
        """The samples until classes are looked at next."""
        return _PERIOD - self.seen % _PERIOD

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self._noted.nbytes + self._places.table.nbytes

    def absorb(self, predicted: NDArray[np.int64], y: NDArray[np.int64]) -> Move | None:
        """Take note of classes for at most `room` samples, and their labels."""
        self._take(predicted, y)
        self.seen += len(y)
        if self.seen % _PERIOD:
            return None
        found, n = None, self._last.shape[1]
        for start in range(n - _PERIOD, n, CHUNK):
            found = self._look(slice(start, start + CHUNK)) or found
        return found

    def _take(self, predicted: NDArray[np.int64], y: NDArray[np.int64]) -> None:
        n = len(y)
        if self._held + n > self._noted.shape[1]:
            last = self._last.copy()
            self._held = last.shape[1]
            self._noted[:, : self._held] = last
        noted = self._noted[:, self._held : self._held + n]
        noted[0], noted[1] = predicted, y
        self._held += n

    def _look(self, part: slice) -> Move | None:
        all_predicted, all_y = self._last
        predicted, y = all_predicted[part], all_y[part]
        classes = 1 + int(max(all_predicted.max(), all_y.max()))
        if classes > len(self._places.table):
            self._places.meet(classes)
        known = predicted >= 0
        places = self._places.absorb(predicted[known], y[known])
        if places is None:
            return None
        moved = np.where(all_predicted < 0, -1, places[all_predicted])
        # Before the change most answers are right as they are, after it once they have moved.
        as_they_are, once_moved = all_predicted == all_y, moved == all_y
        change = int(np.argmax(np.cumsum(as_they_are.astype(np.int64) - once_moved))) + 1
        is_move = as_they_are[change:].mean() < _MOST < once_moved[change:].mean()
        if not is_move or self.seen - self._moved < self._wait:
            self._places = OnePlaceEach(_CLASS_HORIZON)
            return None
        self._wait_longer()
        all_predicted[:], all_y[:change] = moved, places[all_y[:change]]
        return Move(places, self.seen - len(all_y) + change)

    def _wait_longer(self) -> None:
        """Let the next move wait if this one came soon after the last one, or after its wait."""
        held = self.seen - self._moved >= max(2 * self._wait, PATIENCE) or not self._moved
        self._wait = 0 if held else min(max(2 * self._wait, 2 * _PERIOD), LONGEST_WAIT)
        self._moved = self.seen

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        said, y = self._last.copy()
        seen = np.array([self.seen, self._moved, self._wait])
        own = {"moved_said": said, "moved_y": y, "moved_seen": seen}
        return own | self._places.state("moved")

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.seen, self._moved, self._wait = state["moved_seen"].tolist()
        self._held = 0
        self._take(state["moved_said"][-_REMEMBERED:], state["moved_y"][-_REMEMBERED:])
        self._places.restore("moved", state)


class FollowingSet:
    """Learns dense rows with class numbers; see `working_set.auto_widths`.

    set: the learner, which starts again now and then.
    """

    def __init__(self, fading: AutoWidths) -> None:
        self.set, self._classes = fading, MovedClasses()

    @property
    def past_nbytes(self) -> int:
        """The bytes of what is kept of the past, besides the set."""
        return self.set.past_nbytes + self._classes.nbytes

    def absorb(
        self, X: Float64Array, codes: NDArray[np.int64], weight: Weights = None
    ) -> list[Absorbed]:
        """Learn (n, d) rows with class numbers (n,); returns the set's answers part by part."""
        answers, start = [], 0
        while start < len(codes):
            part = slice(start, start + self._classes.room)
            found = self.set.absorb(X[part], codes[part], weights_of(weight, part))
            predicted = found[0].prediction
            if len(found) > 1:
                predicted = np.concatenate([one.prediction for one in found])
            move = self._classes.absorb(predicted, codes[part])
            if move is not None:
                self.set.relabel(*move)
            answers += found
            start = part.stop
        return answers

    def watch_from_now(self) -> None:
        """Look for moved classes in what comes from now on, of a set that others made."""
        self._classes = MovedClasses()
        self._classes.seen = self.set.seen

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which `restore` continues bit for bit."""
        return self.set.state() | self._classes.state()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state."""
        self.set.restore(state)
        self._classes.restore(state)
