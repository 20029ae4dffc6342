"""A copy of the view of a model that learns in another process."""

from collections.abc import Mapping
from typing import Any

import msgpack

from wolfstream.service.model.feature_names import NamesReader
from wolfstream.service.model.published import ModelView
from wolfstream.service.views.differences import Bytes, changed
from wolfstream.service.views.tree import TreeReader
from wolfstream.service.views.versions import FORMAT, NAMES, Position


class OutOfStep(Exception):
    """A version does not continue the held one; ask for the whole view."""


class Follower:
    """The view of one model, version after version. Used by one thread at a time.

    held: the version that it has; None before the first.
    """

    def __init__(self) -> None:
        self.held: Position | None = None
        self._names = NamesReader()
        self._arrays: dict[str, Bytes] = {}

    def take(self, newer: bytes) -> ModelView:
        """Return the view in the result of `Versions.newer` for `held`, bit for bit the leader's.

        Earlier views do not change. Raises OutOfStep, and then nothing has changed.
        """
        try:
            kind, life, number, base, named, tree, differences = msgpack.unpackb(newer)
            if kind != FORMAT:
                raise OutOfStep(f"it is of format {kind}, this version reads {FORMAT}")
            if base is not None and self.held != Position(life, base):
                raise OutOfStep(f"it follows version {base}, {self.held} is held")
            arrays = self._changed(differences, None if base is None else self._arrays)
            reader = TreeReader(arrays)
            view = reader.read(tree)
            if named and isinstance(view, ModelView):
                view = self._names.give(view, arrays[NAMES])
        except (ValueError, TypeError, KeyError, msgpack.UnpackException) as error:
            raise OutOfStep(f"it cannot be read: {error}") from None
        if not isinstance(view, ModelView):
            raise OutOfStep("it is not the view of a model")
        used = reader.used | {NAMES} if named else reader.used
        self._arrays = {path: arrays[path] for path in used}
        self.held = Position(life, number)
        return view

    def _changed(
        self, steps: list[Mapping[str, Any]], held: dict[str, Bytes] | None
    ) -> dict[str, Bytes]:
        """Return the bytes of the arrays after all steps. Raises WrongDifference."""
        arrays = dict(held or {})
        for step in steps:
            for path, plain in step.items():
                arrays[path] = changed(arrays.get(path), plain)
        return arrays
