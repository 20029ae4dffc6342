"""The views of models that other replicas lead, kept as new as these give them.

A view is followed from the first prediction on that was asked for here, until nobody asks any more.
Each other replica is asked for all of its views together, at most twenty times a second; it answers
as soon as one of them is newer than what is held.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping

from service.errors import Refusal
from service.model.live import Model
from service.replicas.director import Director, Target
from service.replicas.fellows import Fellows, NoAnswer, NotConnected
from service.replicas.followed_view import FollowedView
from service.replicas.view_messages import ViewAnswer
from service.views.follower import OutOfStep

logger = logging.getLogger(__name__)

_BETWEEN_SECONDS = 0.05
# Between two looks at who leads what, and after a question without an answer.
_LOOK_SECONDS, _PAUSE_SECONDS = 0.1, 0.1
_LEAD_AGAIN_SECONDS = 0.5
# Until a view is dropped that nobody predicts with, and until one is asked for again that was
# refused: calls are passed on meanwhile.
_DROP_SECONDS, _REST_SECONDS = 60.0, 10.0


class FollowedViews:
    """All views that this replica follows. Used on the event loop; `run` does the work.

    changed: is called with a model that has another view. most: how many are followed.
    """

    def __init__(
        self, director: Director, fellows: Fellows, changed: Callable[[Model], None], most: int
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._director, self._fellows, self._changed = director, fellows, changed
        self._most = most
        self._views: dict[str, FollowedView] = {}
        self._resting: dict[str, float] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._leading: dict[str, asyncio.Task[bool]] = {}
        self._wake = asyncio.Event()

    def use(self, name: str) -> Model | None:
        """A model with the view that is held; None without one. It is followed from now on."""
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
        """For how long it has not been known whether a view is the newest; 0 without one."""
        view = self._views.get(name)
        if view is None or view.model is None:
            return 0.0
        return self._loop.time() - view.confirmed

    def held(self) -> list[Model]:
        """The models whose views are held."""
        return [view.model for view in self._views.values() if view.model is not None]

    async def run(self) -> None:
        """Follow, until cancelled."""
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
            await self._fellows.close()

    def _look(self) -> None:
        """Find out who gives each view, and drop those that are led here or of no use."""
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
        """Who gives a view; None where nobody does now."""
        try:
            target = self._director.responsible(name)
        except Refusal:
            return None
        if not self._director.is_here(target):
            return target if target.word else None
        if name not in self._leading:  # predictions go on with what is held meanwhile
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
        """Ask one replica as long as it gives some view."""
        try:
            while given := self._given_by(url):
                began = self._loop.time()
                target = given[0].target
                assert target is not None
                try:
                    held = {view.name: view.held for view in given}
                    await self._take(url, given, await self._fellows.views(target, held))
                except NotConnected:
                    self._director.suspect(target)
                    await asyncio.sleep(_PAUSE_SECONDS)
                except NoAnswer as error:
                    logger.info("%s gives no views: %s", url, error)
                    await asyncio.sleep(_PAUSE_SECONDS)
                await asyncio.sleep(began + _BETWEEN_SECONDS - self._loop.time())
        finally:
            del self._asking[url]

    def _given_by(self, url: str) -> list[FollowedView]:
        """The views that a replica gives, those first that were longest not new."""
        views = [view for view in self._views.values() if view.target and view.target.url == url]
        return sorted(views, key=lambda view: view.taken)

    async def _take(self, url: str, given: list[FollowedView], answer: ViewAnswer) -> None:
        answered = self._loop.time()
        for view in given:
            name = view.name
            if self._views.get(name) is not view or view.target is None or view.target.url != url:
                continue  # another replica gives it by now
            if name in answer.refused:
                logger.info("model %s is not followed: %s", name, answer.refused[name])
                self._rest(name)
            elif name in answer.elsewhere:
                view.target = None
            elif name not in answer.newer or await self._took(view, answer):
                view.confirmed = max(view.confirmed, answered - answer.lag_seconds)

    async def _took(self, view: FollowedView, answer: ViewAnswer) -> bool:
        """Whether a newer version is held now."""
        was_whole = view.held is None
        try:
            await view.take(answer.newer[view.name])
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
        """Follow a view no more for a while."""
        self._resting[name] = self._loop.time() + _REST_SECONDS
        self._views.pop(name, None)

    def describe(self) -> Mapping[str, dict[str, float]]:
        """The views that are held, by name: their sequences and their lags."""
        return {
            model.name: {
                "sequence": model.published.sequence,
                "lag_seconds": round(self.lag_seconds(model.name), 3),
            }
            for model in self.held()
        }
