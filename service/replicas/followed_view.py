"""A copy of the view of a model that another replica leads."""

import asyncio
import logging
from typing import Any

from wolfstream.service.model.live import Model
from wolfstream.service.model.revision import Revision
from wolfstream.service.replicas.director import Target
from wolfstream.service.replicas.view_messages import NewerView
from wolfstream.service.spec.stored import read_stored_spec
from wolfstream.service.storage.entries import is_same_lineage
from wolfstream.service.views.follower import Follower, OutOfStep
from wolfstream.service.views.versions import ViewVersion

logger = logging.getLogger(__name__)

# Reading a larger view would keep requests waiting for the event loop.
_INLINE_BYTES = 1 << 19


class FollowedView:
    """The copy of one view. Used on the event loop, by whose clock times are.

    Attributes:
        name: of the model.
        model: None before the first version.
        target: the replica that serves the view; None if that is not known.
        used: when the view last made a prediction.
        taken: when its last version arrived.
        confirmed: until when the view is known to have been the newest.
        shown: a revision that the leader has shown to a client of this replica, and that the view
            has not reached; None if there is none.
    """

    def __init__(self, name: str, now: float) -> None:
        """Begin without a version.

        Args:
            name: of the model.
            now: the time.
        """
        self.name = name
        self.model: Model | None = None
        self.target: Target | None = None
        self.used, self.taken = now, 0.0
        self.confirmed = float("-inf")
        self.shown: Revision | None = None
        self._spec: dict[str, Any] | None = None  # of `model`, as plain data
        self._follower = Follower()

    @property
    def version(self) -> ViewVersion | None:
        """The version of the view; None before the first."""
        return self._follower.version

    async def take(self, newer: NewerView) -> bool:
        """Replace the view by a newer version; return False if that turns out to be older.

        A leader that does not know yet that it was replaced may send an older version. If another
        model has the name by now, its view replaces the old one.

        Raises OutOfStep if the whole view is needed, and ValueError for a spec that this version
        of the program cannot read.
        """
        follower = self._follower
        try:
            if len(newer.newer) > _INLINE_BYTES:
                published = await asyncio.to_thread(follower.take, newer.newer)
            else:
                published = follower.take(newer.newer)
            if self._is_older(newer.number, published.sequence):
                self._follower = Follower()
                return False
            if self.model is None or newer.number != self.model.id:
                self.model = Model(newer.number, self.name, read_stored_spec(newer.spec))
            elif newer.spec != self._spec:
                self.model.take_spec(read_stored_spec(newer.spec))
        except (OutOfStep, ValueError):
            self._follower = Follower()
            raise
        self._spec = newer.spec
        self.model.published = published
        return True

    def _is_older(self, number: int, sequence: int) -> bool:
        model = self.model
        return model is not None and model.id == number and sequence < model.published.sequence

    def record_shown(self, revision: Revision) -> None:
        """Record a revision that the leader has shown to a client of this replica."""
        shown = self.shown
        if (
            shown is None
            or not _share_lineage(shown, revision)
            or _sequence(shown) < _sequence(revision)
        ):
            self.shown = revision

    def awaited(self) -> Revision | None:
        """Return the revision that the view must reach before it predicts; None if it may already.

        So no client sees the model go back. The epoch is set only if its lineage is not the view's.
        """
        shown, model = self.shown, self.model
        if shown is None or model is None:
            return None
        if not _share_lineage(shown, Revision(model.published.epoch, None)):
            return shown
        if model.published.sequence >= _sequence(shown):
            self.shown = None
            return None
        return Revision(None, shown.sequence)


def _share_lineage(first: Revision, second: Revision) -> bool:
    """Return whether the epochs of two revisions are of one lineage, whichever is later."""
    epochs = first.epoch or "", second.epoch or ""
    return is_same_lineage(*epochs) or is_same_lineage(*reversed(epochs))


def _sequence(revision: Revision) -> int:
    return revision.sequence or 0
