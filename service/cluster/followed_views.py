"""Keeps copies of the views of models that other replicas lead.

A view is copied from the first prediction with it until it is no longer used. A single request asks
a replica for all views that it serves, at most twenty times a second. The replica responds as soon
as one of them is newer than its copy.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any

from wolfstream.service.boot_clock import boot_seconds
from wolfstream.service.cluster.follower import Follower, OutOfStep
from wolfstream.service.cluster.members import Replica
from wolfstream.service.cluster.peers import PeerFailed, Peers, PeerUnreachable
from wolfstream.service.cluster.roles import Roles
from wolfstream.service.cluster.versions import ViewVersion
from wolfstream.service.cluster.view_messages import NewerView, ViewResponse
from wolfstream.service.errors import Refusal, StartupError
from wolfstream.service.model.live import Model
from wolfstream.service.model.revision import Revision, read_tag
from wolfstream.service.spec.stored import read_stored_spec
from wolfstream.service.storage.entries import is_same_lineage

logger = logging.getLogger(__name__)

# Reading a larger view would keep requests waiting for the event loop.
_INLINE_BYTES = 1 << 19


class FollowedView:
    """The copy of one view. Used on the event loop, by whose clock times are but for `confirmed`.

    Attributes:
        name: of the model.
        model: None before the first version.
        target: the replica that serves the view; None if that is not known.
        used: when the view last made a prediction.
        taken: when its last version arrived.
        confirmed: until when the view is known to have been the newest, by boot_seconds().
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
        self.target: Replica | None = None
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

        Raises OutOfStep if the whole view is needed, and StartupError for a spec that this replica
        cannot use.
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
        except (OutOfStep, StartupError):
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


# The least time between two requests to a replica.
_REQUEST_INTERVAL_SECONDS = 0.05
# Time between two lookups of the leaders, and pause after a failed request.
_LOOKUP_SECONDS, _PAUSE_SECONDS = 0.1, 0.1
# The least time between two takeovers of a model.
_TAKEOVER_INTERVAL_SECONDS = 0.5
# Time without predictions after which a copy is dropped; time until a refused view is requested
# again. Without a copy, calls are forwarded.
_IDLE_SECONDS, _REFUSED_SECONDS = 60.0, 10.0


class FollowedViews:
    """All views that this replica copies. Used on the event loop; `run` does the work."""

    def __init__(
        self, roles: Roles, peers: Peers, changed: Callable[[Model], None], max_views: int
    ) -> None:
        """Begin without copies.

        Args:
            roles: knows which replica leads a model.
            peers: requests views; `run` closes it at its end.
            changed: called with a model after its view was replaced by a newer one.
            max_views: bound on the number of copies.
        """
        self._loop = asyncio.get_running_loop()
        self._roles, self._peers, self._changed = roles, peers, changed
        self._max_views = max_views
        self._views: dict[str, FollowedView] = {}  # by model
        self._retry_at: dict[str, float] = {}  # model of a refused view -> when to request it again
        self._requesting: dict[str, asyncio.Task[None]] = {}  # address of a replica -> its task
        self._leading: dict[str, asyncio.Task[bool]] = {}  # model -> its takeover by this replica
        self._added = asyncio.Event()  # set when a view is added

    def use(self, name: str) -> Model | None:
        """Return a model with the copy of its view, or None without one; copy it from now on."""
        now = self._loop.time()
        view = self._views.get(name)
        if view is None:
            was_refused = self._retry_at.get(name, 0.0) > now
            if not was_refused and len(self._views) < self._max_views:
                self._views[name] = FollowedView(name, now)
                self._added.set()
            return None
        view.used = now
        return view.model

    def lag_seconds(self, name: str) -> float:
        """Return the seconds since a copy was last known to be the newest; 0 without a copy."""
        view = self._views.get(name)
        if view is None or view.model is None:
            return 0.0
        return boot_seconds() - view.confirmed

    def record_shown(self, name: str, tag: str) -> None:
        """Record the entity tag of a response that a model's leader has sent to a client."""
        if (view := self._views.get(name)) is not None:
            view.record_shown(read_tag(tag))

    def awaited(self, name: str) -> Revision | None:
        """Return the revision that a copy must reach; see `FollowedView.awaited`."""
        view = self._views.get(name)
        return None if view is None else view.awaited()

    def models(self) -> list[Model]:
        """Return the models with copies of their views."""
        return [view.model for view in self._views.values() if view.model is not None]

    async def run(self) -> None:
        """Keep the copies up to date until cancelled."""
        try:
            while True:
                try:
                    self._look_up_leaders()
                except Exception:  # the next attempt may succeed
                    logger.exception("leader lookup failed, views may be stale")
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOKUP_SECONDS):
                        await self._added.wait()
                self._added.clear()
        finally:
            for task in (*self._requesting.values(), *self._leading.values()):
                task.cancel()
            await self._peers.close()

    def _look_up_leaders(self) -> None:
        """Look up which replica serves each view; drop copies that are no longer needed here."""
        now = self._loop.time()
        self._retry_at = {name: time for name, time in self._retry_at.items() if time > now}
        for name, view in list(self._views.items()):
            if self._roles.leads(name) or now - view.used > _IDLE_SECONDS:
                del self._views[name]
                continue
            view.target = self._target(name)
            if view.target is not None and view.target.url not in self._requesting:
                url = view.target.url
                self._requesting[url] = asyncio.create_task(self._keep_requesting(url))

    def _target(self, name: str) -> Replica | None:
        """Return the replica that serves a view; None if none does at present.

        If this replica should lead the model, start its takeover.
        """
        try:
            target = self._roles.responsible(name)
        except Refusal:
            return None
        if not self._roles.is_here(target):
            return target if target.secret else None
        if name not in self._leading:  # during the takeover, the copy still predicts
            leading = self._leading[name] = asyncio.create_task(self._roles.lead(name))
            leading.add_done_callback(lambda done: self._end_takeover(name, done))
        return None

    def _end_takeover(self, name: str, done: "asyncio.Task[bool]") -> None:
        self._loop.call_later(_TAKEOVER_INTERVAL_SECONDS, self._leading.pop, name, None)
        if done.cancelled():
            return
        if error := done.exception():
            logger.info("takeover failed: model=%s error=%s", name, error)
        elif not done.result():  # the model was deleted
            self._views.pop(name, None)

    async def _keep_requesting(self, url: str) -> None:
        """Request views from one replica for as long as any copy needs it."""
        try:
            while views := self._views_from(url):
                began, sent = self._loop.time(), boot_seconds()
                target = views[0].target
                assert target is not None
                try:
                    versions = {view.name: view.version for view in views}
                    response = await self._peers.views(target, versions)
                    await self._take(url, views, response, sent)
                except PeerUnreachable:
                    self._roles.suspect(target)
                    await asyncio.sleep(_PAUSE_SECONDS)
                except PeerFailed as error:
                    logger.info("replica serves no views: url=%s error=%s", url, error)
                    await asyncio.sleep(_PAUSE_SECONDS)
                await asyncio.sleep(began + _REQUEST_INTERVAL_SECONDS - self._loop.time())
        finally:
            del self._requesting[url]

    def _views_from(self, url: str) -> list[FollowedView]:
        """Return the views that a replica serves; the one that was updated longest ago is first."""
        views = [view for view in self._views.values() if view.target and view.target.url == url]
        return sorted(views, key=lambda view: view.taken)

    async def _take(
        self, url: str, views: list[FollowedView], response: ViewResponse, sent: float
    ) -> None:
        """Apply a response to the copies.

        Args:
            url: address of the replica.
            views: the views that were requested.
            response: the response.
            sent: when the request was sent, by boot_seconds(); the response may be as old as that.
        """
        for view in views:
            name = view.name
            if self._views.get(name) is not view or view.target is None or view.target.url != url:
                continue  # dropped, or served by another replica by now
            if name in response.refused:
                logger.info("view not copied: model=%s error=%s", name, response.refused[name])
                self._drop_for_a_while(name)
            elif name in response.unconfirmed:
                view.target = None
            elif name not in response.newer or await self._take_newer(view, response):
                view.confirmed = max(view.confirmed, sent - response.lag_seconds)

    async def _take_newer(self, view: FollowedView, response: ViewResponse) -> bool:
        """Apply a newer version; return whether the copy is at this version now."""
        was_whole = view.version is None
        try:
            if not await view.take(response.newer[view.name]):
                return False
        except (OutOfStep, StartupError) as error:
            if was_whole:  # the next response would fail in the same way
                logger.warning("view not copied: model=%s error=%s", view.name, error)
                self._drop_for_a_while(view.name)
            return False
        view.taken = self._loop.time()
        assert view.model is not None
        self._changed(view.model)
        return True

    def _drop_for_a_while(self, name: str) -> None:
        """Drop a copy, and do not request the view again for some seconds."""
        self._retry_at[name] = self._loop.time() + _REFUSED_SECONDS
        self._views.pop(name, None)

    def describe(self) -> Mapping[str, dict[str, float]]:
        """Return model -> the sequence and lag of its copy, as plain data."""
        return {
            model.name: {
                "sequence": model.published.sequence,
                "lag_seconds": round(self.lag_seconds(model.name), 3),
            }
            for model in self.models()
        }
