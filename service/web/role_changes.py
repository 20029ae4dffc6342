"""The roles of this replica change as others come and go: it leads, stands by and hands over."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import Refusal
from wolfstream.service.fleet.members import (
    BEAT_SECONDS,
    Members,
    Replica,
    leaders_by_model,
    ranked,
    should_hand_over,
    stands_by,
    successor,
)
from wolfstream.service.fleet.opening import Fleet

logger = logging.getLogger(__name__)

# The number of models that move to another replica at the same time.
_HANDED_OVER = 8
# How often the living replicas are looked up.
_WATCH_SECONDS = 0.05
# What is asleep has no leader in so many looks in a row: a new one may not be announced yet.
_LOOKS_ASLEEP = 4
# A takeover that fails is tried again after the first of these, and then after twice as long.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0


class _Failures(NamedTuple):
    """Takeovers of a model that failed in a row.

    times: how many. due: when the next one may begin, by time.monotonic().
    """

    times: int
    due: float


_NONE = _Failures(0, 0.0)


class RoleChanges:
    """Looks at the other replicas again and again until `end`. Used on the event loop.

    lead: leads a model; raises a Refusal. ranked_by: returns the name by which replicas are ranked
    for a model.
    """

    def __init__(
        self,
        engine: Engine,
        fleet: Fleet,
        members: Members,
        lead: Callable[[str], Awaitable[bool]],
        ranked_by: Callable[[str], str],
    ) -> None:
        self._engine, self._fleet, self._members = engine, fleet, members
        self._lead, self._ranked_by = lead, ranked_by
        self._ended = False
        # Models that have had a leader since this replica was started, as far as it knows.
        self._awake = set[str]()
        # In how many looks in a row each model was asleep.
        self._looks_asleep = Counter[str]()
        # Models whose last takeovers have failed.
        self._failures = dict[str, _Failures]()
        # What is done for models beside the watch.
        self._tasks = dict[tuple[str, str], asyncio.Task[None]]()
        self._watching = asyncio.create_task(self._watch())

    def end(self) -> None:
        """Begin no more changes; what has begun goes on."""
        self._ended = True

    def stop(self) -> None:
        """End, and give up what has begun."""
        self._watching.cancel()
        for task in list(self._tasks.values()):
            task.cancel()

    async def _watch(self) -> None:
        while True:
            await self._next_look()
            if self._engine.readiness.reached and not self._ended and self._members.settled:
                try:
                    await self._look()
                except Refusal as error:
                    logger.warning("the roles of this replica were not reviewed: %s", error)
                except Exception:  # the next look may succeed
                    logger.exception("the roles of this replica were not reviewed")

    async def _next_look(self) -> None:
        """Wait for a while, or until another replica has come, is silent or cannot be reached."""
        living, waited = self._others(), 0.0
        while waited < BEAT_SECONDS and self._others() == living:
            await asyncio.sleep(_WATCH_SECONDS)
            waited += _WATCH_SECONDS

    def _others(self) -> list[str]:
        return [replica.url for replica in self._members.others()]

    async def _look(self) -> None:
        """Take over what is to be led here, release what others should lead, and stand by.

        What takes long is done beside: models whose leaders are gone wait for nothing.
        """
        living = self._members.living()
        leaders = leaders_by_model(living)
        standing_by = {
            name
            for name, leader in leaders.items()
            if leader.url != self._members.url
            and self._ranked_by(name) == name
            and stands_by(self._members.url, name, leader, living)
        }
        for name in set(self._engine.leading.followed) - standing_by:
            following = successor(name, living)
            if name in leaders:
                self._engine.leading.unfollow(name)
            elif following is not None and following.url == self._members.url:
                # Its leader is gone, or has handed it over.
                self._begin_takeover(name)
            elif self._members.url not in [one.url for one in ranked(name, living)][:2]:
                self._engine.leading.unfollow(name)
        for name, champion in self._fleet.catalogue.champions.items():
            if self._leads(champion) and not self._leads(name):
                self._begin_takeover(name)
        self._wake(leaders, living)
        await self._release_led_elsewhere(leaders, living)
        for name in standing_by:
            if self._followed(name) < leaders[name].leads[name].sequence:
                self._beside(name, self._engine.leading.follow)
        await self._release_deleted()

    def _wake(self, leaders: dict[str, Replica], living: list[Replica]) -> None:
        """Take over what is asleep, where it is for this replica."""
        there = set(self._fleet.catalogue.names)
        self._awake = (self._awake | leaders.keys()) & there
        self._failures = {name: one for name, one in self._failures.items() if name in there}
        asleep = self._asleep(leaders)
        self._looks_asleep = Counter({name: self._looks_asleep[name] + 1 for name in asleep})
        for name, looks in self._looks_asleep.items():
            following = successor(name, living) if looks >= _LOOKS_ASLEEP else None
            if following is not None and following.url == self._members.url:
                self._begin_takeover(name)

    def _asleep(self, leaders: dict[str, Replica]) -> list[str]:
        """Return the models without a leader that had one.

        Its takeover may have failed, or its term ended without a rival. Challengers are led with
        their champions.
        """
        names = self._awake - leaders.keys()
        return [name for name in sorted(names) if self._ranked_by(name) == name]

    def _beside(self, name: str, work: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        """Begin something for a model, unless the same is being done for it."""
        key = work.__name__, name
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._guarded(work, name))
            self._tasks[key].add_done_callback(lambda _: self._tasks.pop(key))

    async def _guarded(self, work: Callable[[str], Coroutine[Any, Any, None]], name: str) -> None:
        try:
            await work(name)
        except Refusal as error:  # such as NATS being away
            logger.warning("model %s: its role here was not changed: %s", name, error)
        except Exception:  # the next look may succeed
            logger.exception("model %s: its role here was not changed", name)

    async def _release_led_elsewhere(
        self, leaders: dict[str, Replica], living: list[Replica]
    ) -> None:
        """Release what others should lead, and what another one leads since a later term."""
        handed_over = 0
        for name, leader in leaders.items():
            if leader.url != self._members.url:
                led = leader.leads[name]
                self._fleet.mark_acknowledged(led.number, led.sequence)
                if self._leads(name):
                    await self.release(name)
                continue
            if handed_over >= _HANDED_OVER or self._ranked_by(name) != name:
                continue  # a challenger goes with its champion
            if should_hand_over(name, leader, living):
                handed_over += 1
                await self.release(name)

    async def _release_deleted(self) -> None:
        """Release models that another replica has deleted, which led them since a later term.

        Raises StorageFailed.
        """
        catalogue = self._fleet.catalogue
        for model in self._engine.recovered():
            if model.id not in catalogue.numbers:  # or it is newer than the last read
                found = await asyncio.to_thread(catalogue.find, model.name)
                if found is None or found.number != model.id:
                    await self.release(model.name)

    def _leads(self, name: str) -> bool:
        return self._engine.leading.leads(name)

    def _followed(self, name: str) -> int:
        return self._engine.leading.followed.get(name, -1)

    def _begin_takeover(self, name: str) -> None:
        """Take a model over beside the watch, unless that would fail or has just failed."""
        failures = self._failures.get(name, _NONE)
        if not self._members.lag_seconds and time.monotonic() >= failures.due:
            self._beside(name, self._take_over)

    async def _take_over(self, name: str) -> None:
        try:
            await self._lead(name)
        except Exception as error:
            times = self._failures.get(name, _NONE).times
            pause = min(_FIRST_PAUSE * 2.0 ** min(times, 20), _LONGEST_PAUSE)
            self._failures[name] = _Failures(times + 1, time.monotonic() + pause)
            if not isinstance(error, Refusal):
                raise
            logger.warning(
                "takeover failed: model=%s again_in_seconds=%g error=%s", name, pause, error
            )
        else:
            self._failures.pop(name, None)

    async def release(self, name: str) -> None:
        """Stop learning a model, and announce it."""
        try:
            await self._engine.leading.release(name)
        except Refusal as error:
            logger.warning("model %s is not handed over: %s", name, error)
        self._members.announce()
