"""A copy of a model's view in a process that does not learn."""

from collections.abc import Mapping
from typing import Any

import msgpack

from wolfstream.service.cluster.tree import Bytes, TreeReader, apply_difference
from wolfstream.service.cluster.versions import NAMES, VIEW_FORMAT, ViewVersion
from wolfstream.service.model.feature_names import NamesReader
from wolfstream.service.model.published import ModelView


class OutOfStep(Exception):
    """A newer version does not follow the present one; request the whole view."""


class Follower:
    """Follows the view of one model. Used by one thread at a time.

    Attributes:
        version: the version of the present view; None before the first.
    """

    def __init__(self) -> None:
        """Start without a view."""
        self.version: ViewVersion | None = None
        self._names = NamesReader()
        self._arrays: dict[str, Bytes] = {}  # path -> bytes of the present view's arrays

    def take(self, newer: bytes) -> ModelView:
        """Return the next view, bit for bit the leader's. Raises OutOfStep.

        Views returned before stay unchanged. If it raises, the present view stays.

        Args:
            newer: the result of `Versions.newer` for `version`.
        """
        try:
            form, numbering, number, base, named, tree, differences = msgpack.unpackb(newer)
            if form != VIEW_FORMAT:
                raise OutOfStep("it was written by another version of the program")
            if base is not None and self.version != ViewVersion(numbering, base):
                raise OutOfStep(f"it follows version {base}, but the present one is {self.version}")
            arrays = self._apply(differences, None if base is None else self._arrays)
            reader = TreeReader(arrays)
            view = reader.read(tree)
            if named and isinstance(view, ModelView):
                view = self._names.give(view, arrays[NAMES])
        except (ValueError, TypeError, KeyError, msgpack.UnpackException) as error:
            raise OutOfStep(f"it cannot be read: {error}") from None
        if not isinstance(view, ModelView):
            raise OutOfStep("it is not a model's view")
        used = reader.used | {NAMES} if named else reader.used
        self._arrays = {path: arrays[path] for path in used}
        self.version = ViewVersion(numbering, number)
        return view

    def _apply(
        self, steps: list[Mapping[str, Any]], present: dict[str, Bytes] | None
    ) -> dict[str, Bytes]:
        """Return path -> bytes after all steps. Raises WrongDifference.

        Args:
            steps: path -> difference, for each version in turn.
            present: path -> bytes before; None if the first step has all bytes.
        """
        arrays = dict(present or {})
        for step in steps:
            for path, plain in step.items():
                arrays[path] = apply_difference(arrays.get(path), plain)
        return arrays
