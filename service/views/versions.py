"""The versions of a model's view, for the processes that follow it.

A follower asks for a newer version than the one that it holds. It gets the differences since then
if they are still kept, or else everything. Versions have numbers of their own, because a refit
changes a view but not the model's sequence.
"""

import secrets
from collections import deque
from typing import Any, NamedTuple

import msgpack

from wolfstream.service.model.feature_names import NamesWriter
from wolfstream.service.model.published import ModelView
from wolfstream.service.views.differences import Bytes, difference
from wolfstream.service.views.tree import TreeWriter

# Followers may run another version of the program.
FORMAT = 1
# The path of the names; no array of a tree has it.
NAMES = "names"


class Position(NamedTuple):
    """A version of a view. life: a random text, which changes whenever numbers start again."""

    life: str
    number: int


class _Step(NamedTuple):
    """How a version differs from the one before it. n_bytes: the approximate size."""

    number: int
    differences: dict[str, list[Any]]
    n_bytes: int


class Versions:
    """The versions of one model's view. Used by one thread at a time.

    published: the last view that was recorded.
    """

    def __init__(self) -> None:
        self._life, self._number = secrets.token_hex(8), 0
        self._names = NamesWriter()
        self.published: ModelView | None = None
        self._tree: Any = None
        self._arrays: dict[str, Bytes] = {}
        self._steps: deque[_Step] = deque()

    @property
    def latest(self) -> Position:
        """The last version that was recorded."""
        return Position(self._life, self._number)

    @property
    def n_bytes(self) -> int:
        """The bytes of the latest version's arrays and of the differences that are kept."""
        steps = sum(step.n_bytes for step in self._steps)
        return sum(array.nbytes for array in self._arrays.values()) + steps

    def note(self, published: ModelView) -> bool:
        """Record a model's published view; return whether it is a new version.

        Arrays are copied, because the model stores its next rows in the same memory.
        """
        if published is self.published:
            return False
        writer = TreeWriter()
        nameless, names = self._names.take(published)
        self._tree = writer.write(nameless)
        if names is not None:
            writer.arrays[NAMES] = names
        arrays, differences = {}, {}
        for path, flat in writer.arrays.items():
            arrays[path] = flat.copy()
            found = difference(self._arrays.get(path), arrays[path])
            if found is not None:
                differences[path] = found
        self.published, self._arrays = published, arrays
        self._number += 1
        self._keep(differences)
        return True

    def newer(self, held: Position | None) -> bytes:
        """Return the latest version for a follower that holds another one; see `Follower.take`.

        held: None if it holds none.
        """
        differences = self._since(held)
        everything = differences is None
        if differences is None:
            differences = [{path: [flat.tobytes()] for path, flat in self._arrays.items()}]
        base = None if everything or held is None else held.number
        packed: bytes = msgpack.packb(
            [FORMAT, self._life, self._number, base, NAMES in self._arrays, self._tree, differences]
        )
        return packed

    def _since(self, held: Position | None) -> list[dict[str, list[Any]]] | None:
        """Return the differences since a version; None if they are no longer kept."""
        if held is None or held.life != self._life or held.number > self._number:
            return None
        steps = [step for step in self._steps if step.number > held.number]
        if len(steps) != self._number - held.number:
            return None
        return [step.differences for step in steps]

    def _keep(self, differences: dict[str, list[Any]]) -> None:
        """Drop old differences until all of them together are smaller than the whole view."""
        n_bytes = sum(len(part[-1]) for part in differences.values())
        self._steps.append(_Step(self._number, differences, n_bytes))
        most = sum(array.nbytes for array in self._arrays.values())
        while len(self._steps) > 1 and sum(step.n_bytes for step in self._steps) > most:
            self._steps.popleft()
