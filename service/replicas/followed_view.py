"""The view of a model that another replica leads."""

import asyncio
import logging
from typing import Any

from wolfstream.service.model.live import Model
from wolfstream.service.model.moment import Moment
from wolfstream.service.replicas.director import Target
from wolfstream.service.replicas.view_messages import NewerView
from wolfstream.service.spec.stored import read_stored_spec
from wolfstream.service.storage.entries import is_same_lineage
from wolfstream.service.views.follower import Follower, OutOfStep
from wolfstream.service.views.versions import Position

logger = logging.getLogger(__name__)

# Reading a larger view would keep requests waiting for the event loop.
_INLINE_BYTES = 1 << 19


class FollowedView:
    """One view. Used on the event loop.

    model: None before the first version. target: the replica that serves it, as far as is known.
    On the loop's clock, used: when it last made a prediction. taken: when its last version arrived.
    confirmed: when its leader was last asked that then said that there was no newer version.
    told: the moment that clients were told here by the leader itself, and that the view has yet to
    reach; None if there is none.
    """

    def __init__(self, name: str, now: float) -> None:
        self.name = name
        self.model: Model | None = None
        self.target: Target | None = None
        self.used, self.taken = now, 0.0
        self.confirmed = float("-inf")
        self.told: Moment | None = None
        self._spec: dict[str, Any] | None = None
        self._follower = Follower()

    @property
    def held(self) -> Position | None:
        """The held version."""
        return self._follower.held

    async def take(self, newer: NewerView) -> bool:
        """Serve a newer version from now on; return False if it is older than the held one.

        So it is of a leader that does not know yet that it was replaced.

        If another model has the name by now, its view replaces the old one. Raises OutOfStep if the
        whole view is needed, and ValueError for a spec that this version does not know.
        """
        follower = self._follower
        try:
            if len(newer.newer) > _INLINE_BYTES:
                published = await asyncio.to_thread(follower.take, newer.newer)
            else:
                published = follower.take(newer.newer)
            if self._goes_back(newer.number, published.sequence):
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

    def _goes_back(self, number: int, sequence: int) -> bool:
        model = self.model
        return model is not None and model.id == number and sequence < model.published.sequence

    def note_told(self, moment: Moment) -> None:
        """Note what the leader itself has told a client here."""
        told = self.told
        if told is None or not _in_one_life(told, moment) or _sequence(told) < _sequence(moment):
            self.told = moment

    def awaited(self) -> Moment | None:
        """Return what the view has yet to reach so that no client sees its sequences go back.

        A moment of another life than the view's keeps its epoch.
        """
        told, model = self.told, self.model
        if told is None or model is None:
            return None
        if not _in_one_life(told, Moment(model.published.epoch, None)):
            return told
        if model.published.sequence >= _sequence(told):
            self.told = None
            return None
        return Moment(None, told.sequence)


def _in_one_life(one: Moment, other: Moment) -> bool:
    first, second = one.epoch or "", other.epoch or ""
    return is_same_lineage(first, second) or is_same_lineage(second, first)


def _sequence(moment: Moment) -> int:
    return moment.sequence or 0
