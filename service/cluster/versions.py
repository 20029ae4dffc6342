"""The versions of a model's view, for processes that hold copies of it.

A follower requests a newer version than its own. It gets the differences from its version if they
are still stored, otherwise the whole view. Versions have their own numbers, because a refit changes
a view but not the model's sequence.
"""

import secrets
from collections import deque
from typing import Any, NamedTuple

import msgpack

from wolfstream.service.cluster.tree import Bytes, TreeWriter, difference
from wolfstream.service.model.feature_names import NamesWriter
from wolfstream.service.model.published import ModelView
from wolfstream.solver.sources import sources_hash

# Mark of the code that makes and reads views, which only equal code has: a follower may run another
# version of the program, in which the same attributes mean something else. Computed now, because
# the files may be replaced while the process runs.
VIEW_FORMAT = sources_hash(
    "wolfstream.service.model", "wolfstream.service.heads", "wolfstream.solver"
)
# The path of the feature names; a tree never uses it.
NAMES = "names"


class ViewVersion(NamedTuple):
    """A version of a view."""

    numbering: str  # random; a new one whenever numbers start again
    number: int


class _Step(NamedTuple):
    """How a version differs from its predecessor."""

    number: int  # the version's number
    differences: dict[str, list[Any]]  # path -> difference of an array
    n_bytes: int  # approximate size


class Versions:
    """The versions of one model's view. Used by one thread at a time.

    Attributes:
        published: the last recorded view.
    """

    def __init__(self) -> None:
        """Start without a version."""
        self._numbering, self._number = secrets.token_hex(8), 0
        self._names = NamesWriter()
        self.published: ModelView | None = None
        self._tree: Any = None  # of the latest version
        self._arrays: dict[str, Bytes] = {}  # path -> bytes, of the latest version
        self._steps: deque[_Step] = deque()  # the last versions' differences, oldest first

    @property
    def latest(self) -> ViewVersion:
        """The last recorded version."""
        return ViewVersion(self._numbering, self._number)

    @property
    def n_bytes(self) -> int:
        """The bytes of the latest version's arrays and of the stored differences."""
        steps = sum(step.n_bytes for step in self._steps)
        return sum(array.nbytes for array in self._arrays.values()) + steps

    def record(self, published: ModelView) -> bool:
        """Record a model's published view; return whether it is a new version.

        Arrays are copied, because the model will write its next rows to the same memory.
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
            change = difference(self._arrays.get(path), arrays[path])
            if change is not None:
                differences[path] = change
        self.published, self._arrays = published, arrays
        self._number += 1
        self._store_step(differences)
        return True

    def newer(self, version: ViewVersion | None) -> bytes:
        """Return the latest version for `Follower.take`.

        Args:
            version: the follower's version, other than the latest; None if it has none.
        """
        differences = self._since(version)
        is_whole = differences is None
        if differences is None:
            differences = [{path: [flat.tobytes()] for path, flat in self._arrays.items()}]
        base = None if is_whole or version is None else version.number
        packed: bytes = msgpack.packb(
            [
                VIEW_FORMAT,
                self._numbering,
                self._number,
                base,
                NAMES in self._arrays,
                self._tree,
                differences,
            ]
        )
        return packed

    def _since(self, version: ViewVersion | None) -> list[dict[str, list[Any]]] | None:
        """Return the differences since a version; None if they are no longer stored."""
        if version is None or version.numbering != self._numbering:
            return None
        if version.number > self._number:
            return None
        steps = [step for step in self._steps if step.number > version.number]
        if len(steps) != self._number - version.number:
            return None
        return [step.differences for step in steps]

    def _store_step(self, differences: dict[str, list[Any]]) -> None:
        """Store differences; drop the oldest while together they exceed the whole view's size."""
        n_bytes = sum(len(plain[-1]) for plain in differences.values())
        self._steps.append(_Step(self._number, differences, n_bytes))
        max_bytes = sum(array.nbytes for array in self._arrays.values())
        while len(self._steps) > 1 and sum(step.n_bytes for step in self._steps) > max_bytes:
            self._steps.popleft()
