"""Follows the views of models that other replicas lead.

A view is followed from its first prediction here until it is no longer used. Each other replica is
asked for all of its views together, at most twenty times a second; it answers as soon as one of
them is newer than the held version.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping

from wolfstream.service.errors import Refusal
from wolfstream.service.model.live import Model
from wolfstream.service.model.revision import Revision, read_tag
from wolfstream.service.replicas.director import Director, Target
from wolfstream.service.replicas.followed_view import FollowedView
from wolfstream.service.replicas.peers import NoAnswer, NotConnected, Peers
from wolfstream.service.replicas.view_messages import ViewAnswer
from wolfstream.service.views.follower import OutOfStep

logger = logging.getLogger(__name__)

_BETWEEN_SECONDS = 0.05
# The interval at which the leaders are looked up, and the pause after a failed question.
_LOOK_SECONDS, _PAUSE_SECONDS = 0.1, 0.1
_LEAD_AGAIN_SECONDS = 0.5
# The time without predictions after which a view is dropped, and the time until a refused one is
# asked for again; calls are forwarded meanwhile.
_DROP_SECONDS, _REST_SECONDS = 60.0, 10.0


class FollowedViews:
    """All views that this replica follows. Used on the event loop; `run` does the work.

    changed: called with a model that has a new view. most: the bound on the number of views.
    """

    def __init__(
        self, director: Director, peers: Peers, changed: Callable[[Model], None], most: int
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._director, self._peers, self._changed = director, peers, changed
        self._most = most
        self._views: dict[str, FollowedView] = {}
        self._resting: dict[str, float] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._leading: dict[str, asyncio.Task[bool]] = {}
        self._wake = asyncio.Event()

    def use(self, name: str) -> Model | None:
        """Return a model with its held view, or None; follow the view from now on."""
        now = self._loop.time()
        view = self._views.get(name)
        if view is None:
            resting = self._resting.get(name, 0.0) > now
            if not resting and len(self._views) < self._most:
                self._views[name] = FollowedView(name, now)
                self._wake.set()
            return None
        view.used = now
        return view.model

    def lag_seconds(self, name: str) -> float:
        """Return the seconds since a view was last known to be the newest; 0 without a view."""
        view = self._views.get(name)
        if view is None or view.model is None:
            return 0.0
        return self._loop.time() - view.confirmed

    def note_told(self, name: str, tag: str) -> None:
        """Note the tag with which a model's leader itself has answered a client here."""
        if (view := self._views.get(name)) is not None:
            view.note_told(read_tag(tag))

    def awaited(self, name: str) -> Revision | None:
        """Return what a view has yet to reach; see `FollowedView.awaited`."""
        view = self._views.get(name)
        return None if view is None else view.awaited()

    def held(self) -> list[Model]:
        """Return the models whose views are held."""
        return [view.model for view in self._views.values() if view.model is not None]

    async def run(self) -> None:
        """Follow views until cancelled."""
        try:
            while True:
                try:
                    self._look()
                except Exception:  # the next look may succeed
                    logger.exception("it was not looked at whose views are followed")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), _LOOK_SECONDS)
                self._wake.clear()
        finally:
            for task in (*self._asking.values(), *self._leading.values()):
                task.cancel()
            await self._peers.close()

    def _look(self) -> None:
        """Find out who serves each view; drop views of models led here, and unused ones."""
        now = self._loop.time()
        self._resting = {name: until for name, until in self._resting.items() if until > now}
        for name, view in list(self._views.items()):
            if self._director.leads(name) or now - view.used > _DROP_SECONDS:
                del self._views[name]
                continue
            view.target = self._target(name)
            if view.target is not None and view.target.url not in self._asking:
                url = view.target.url
                self._asking[url] = asyncio.create_task(self._ask_again_and_again(url))

    def _target(self, name: str) -> Target | None:
        """Return the replica that serves a view; None if no replica does now."""
        try:
            target = self._director.responsible(name)
        except Refusal:
            return None
        if not self._director.is_here(target):
            return target if target.secret else None
        if name not in self._leading:  # predictions use the held view meanwhile
            leading = self._leading[name] = asyncio.create_task(self._director.lead(name))
            leading.add_done_callback(lambda done: self._led(name, done))
        return None

    def _led(self, name: str, done: "asyncio.Task[bool]") -> None:
        self._loop.call_later(_LEAD_AGAIN_SECONDS, self._leading.pop, name, None)
        if done.cancelled():
            return
        if error := done.exception():
            logger.info("model %s is not led: %s", name, error)
        elif not done.result():  # there is none any more
            self._views.pop(name, None)

    async def _ask_again_and_again(self, url: str) -> None:
        """Ask one replica as long as it serves a followed view."""
        try:
            while given := self._given_by(url):
                began = self._loop.time()
                target = given[0].target
                assert target is not None
                try:
                    held = {view.name: view.held for view in given}
                    await self._take(url, given, await self._peers.views(target, held), began)
                except NotConnected:
                    self._director.suspect(target)
                    await asyncio.sleep(_PAUSE_SECONDS)
                except NoAnswer as error:
                    logger.info("%s serves no views: %s", url, error)
                    await asyncio.sleep(_PAUSE_SECONDS)
                await asyncio.sleep(began + _BETWEEN_SECONDS - self._loop.time())
        finally:
            del self._asking[url]

    def _given_by(self, url: str) -> list[FollowedView]:
        """Return the views that a replica serves, those first that have waited longest."""
        views = [view for view in self._views.values() if view.target and view.target.url == url]
        return sorted(views, key=lambda view: view.taken)

    async def _take(
        self, url: str, given: list[FollowedView], answer: ViewAnswer, asked: float
    ) -> None:
        """Take an answer. asked: when the question was sent; the answer may be as old as that."""
        for view in given:
            name = view.name
            if self._views.get(name) is not view or view.target is None or view.target.url != url:
                continue  # another replica serves it by now
            if name in answer.refused:
                logger.info("model %s is not followed: %s", name, answer.refused[name])
                self._rest(name)
            elif name in answer.unconfirmed:
                view.target = None
            elif name not in answer.newer or await self._took(view, answer):
                view.confirmed = max(view.confirmed, asked - answer.lag_seconds)

    async def _took(self, view: FollowedView, answer: ViewAnswer) -> bool:
        """Take a newer version; return whether it is held now."""
        was_whole = view.held is None
        try:
            if not await view.take(answer.newer[view.name]):
                return False
        except (OutOfStep, ValueError) as error:
            if was_whole:  # it would be no other one the next time
                logger.warning("model %s is not followed: %s", view.name, error)
                self._rest(view.name)
            return False
        view.taken = self._loop.time()
        assert view.model is not None
        self._changed(view.model)
        return True

    def _rest(self, name: str) -> None:
        """Stop following a view for a while."""
        self._resting[name] = self._loop.time() + _REST_SECONDS
        self._views.pop(name, None)

    def describe(self) -> Mapping[str, dict[str, float]]:
        """Return the sequences and lags of held views, by model name."""
        return {
            model.name: {
                "sequence": model.published.sequence,
                "lag_seconds": round(self.lag_seconds(model.name), 3),
            }
            for model in self.held()
        }
