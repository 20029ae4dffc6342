"""Changes which models this replica leads, or is a standby of, as replicas join and leave."""

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

# Maximum number of models that are handed over to other replicas in one review.
_HANDED_OVER = 8
# How often to check whether other replicas have joined or left.
_WATCH_SECONDS = 0.05
# A model is taken over only after this many reviews without a leader: the leader may not have
# announced itself yet.
_REVIEWS_WITHOUT_LEADER = 4
# Seconds before a failed takeover is tried again. Each further failure doubles them.
_FIRST_PAUSE, _MAX_PAUSE = 0.5, 15.0


class _Failures(NamedTuple):
    """The consecutive failed takeovers of a model."""

    times: int
    due: float  # when the next takeover may begin, by time.monotonic()


_NO_FAILURES = _Failures(0, 0.0)


class RoleChanges:
    """Reviews the roles of this replica repeatedly, until `end`. Used on the event loop.

    Args:
        lead: makes this replica lead a model; raises Refusal.
        ranked_by: returns the name by which replicas are ranked for a model.
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
        # Models that have had a leader since this replica was started.
        self._led_before = set[str]()
        # Model -> number of consecutive reviews in which it had no leader.
        self._leaderless = Counter[str]()
        # Model -> its failed takeovers, if the last one failed.
        self._failures = dict[str, _Failures]()
        # (name of a method, model) -> its task, which runs concurrently with the reviews.
        self._tasks = dict[tuple[str, str], asyncio.Task[None]]()
        self._watching = asyncio.create_task(self._watch())

    def end(self) -> None:
        """Start no more changes; those under way continue."""
        self._ended = True

    def stop(self) -> None:
        """Start no more changes, and cancel those under way."""
        self._watching.cancel()
        for task in list(self._tasks.values()):
            task.cancel()

    async def _watch(self) -> None:
        while True:
            await self._next_review()
            if self._engine.readiness.reached and not self._ended and self._members.settled:
                try:
                    await self._review()
                except Refusal as error:
                    logger.warning("review of roles failed: error=%s", error)
                except Exception:  # the next review may succeed
                    logger.exception("review of roles failed")

    async def _next_review(self) -> None:
        """Wait for a while, or until another replica joins, falls silent or becomes unreachable."""
        living, waited = self._others(), 0.0
        while waited < BEAT_SECONDS and self._others() == living:
            await asyncio.sleep(_WATCH_SECONDS)
            waited += _WATCH_SECONDS

    def _others(self) -> list[str]:
        return [replica.url for replica in self._members.others()]

    async def _review(self) -> None:
        """Take over the models that this replica should lead, release others, and stand by.

        Slow changes are made in tasks, so that they do not delay models whose leaders are gone.
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
                # The model's leader is gone, or has handed it over.
                self._begin_takeover(name)
            elif self._members.url not in [replica.url for replica in ranked(name, living)][:2]:
                self._engine.leading.unfollow(name)
        for name, champion in self._fleet.catalogue.champions.items():
            if self._leads(champion) and not self._leads(name):
                self._begin_takeover(name)
        self._take_over_leaderless(leaders, living)
        await self._release_led_elsewhere(leaders, living)
        for name in standing_by:
            followed = self._engine.leading.followed.get(name, -1)
            if followed < leaders[name].leads[name].sequence:
                self._start(name, self._engine.leading.follow)
        await self._release_deleted()

    def _take_over_leaderless(self, leaders: dict[str, Replica], living: list[Replica]) -> None:
        """Take over the models that have lost their leader, if this replica is their successor.

        Another replica's takeover may have failed, or a term may have ended without a new one.
        """
        names = set(self._fleet.catalogue.names)
        self._led_before = (self._led_before | leaders.keys()) & names
        self._failures = {name: f for name, f in self._failures.items() if name in names}
        leaderless = [
            name
            for name in sorted(self._led_before - leaders.keys())
            if self._ranked_by(name) == name  # challengers are led with their champions
        ]
        self._leaderless = Counter({name: self._leaderless[name] + 1 for name in leaderless})
        for name, reviews in self._leaderless.items():
            following = successor(name, living) if reviews >= _REVIEWS_WITHOUT_LEADER else None
            if following is not None and following.url == self._members.url:
                self._begin_takeover(name)

    def _start(self, name: str, work: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        """Start a task for a model, unless it has the same task already."""
        key = work.__name__, name
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._guarded(work, name))
            self._tasks[key].add_done_callback(lambda _: self._tasks.pop(key))

    async def _guarded(self, work: Callable[[str], Coroutine[Any, Any, None]], name: str) -> None:
        try:
            await work(name)
        except Refusal as error:  # for example, NATS is not reachable
            logger.warning("change of role failed: model=%s error=%s", name, error)
        except Exception:  # the next review may succeed
            logger.exception("change of role failed: model=%s", name)

    async def _release_led_elsewhere(
        self, leaders: dict[str, Replica], living: list[Replica]
    ) -> None:
        """Release the models that others should lead, or already lead in a later term."""
        handed_over = 0
        for name, leader in leaders.items():
            if leader.url != self._members.url:
                led = leader.leads[name]
                self._fleet.mark_acknowledged(led.number, led.sequence)
                if self._leads(name):
                    await self.release(name)
                continue
            if handed_over >= _HANDED_OVER or self._ranked_by(name) != name:
                continue  # a challenger moves with its champion
            if should_hand_over(name, leader, living):
                handed_over += 1
                await self.release(name)

    async def _release_deleted(self) -> None:
        """Release models that another replica has deleted in a later term.

        Raises StorageFailed.
        """
        catalogue = self._fleet.catalogue
        for model in self._engine.recovered():
            # The last read of the catalogue may be older than the model, so look it up.
            if model.id not in catalogue.numbers:
                entry = await asyncio.to_thread(catalogue.find, model.name)
                if entry is None or entry.number != model.id:
                    await self.release(model.name)

    def _leads(self, name: str) -> bool:
        return self._engine.leading.leads(name)

    def _begin_takeover(self, name: str) -> None:
        """Start to take over a model, unless this would fail now or has just failed."""
        failures = self._failures.get(name, _NO_FAILURES)
        if not self._members.lag_seconds and time.monotonic() >= failures.due:
            self._start(name, self._take_over)

    async def _take_over(self, name: str) -> None:
        try:
            await self._lead(name)
        except Exception as error:
            times = self._failures.get(name, _NO_FAILURES).times
            pause = min(_FIRST_PAUSE * 2.0 ** min(times, 20), _MAX_PAUSE)
            self._failures[name] = _Failures(times + 1, time.monotonic() + pause)
            if not isinstance(error, Refusal):
                raise
            logger.warning(
                "takeover failed: model=%s again_in_seconds=%g error=%s", name, pause, error
            )
        else:
            self._failures.pop(name, None)

    async def release(self, name: str, seconds: float | None = None) -> None:
        """Stop leading a model, and announce it.

        Args:
            name: of the model.
            seconds: how long to learn the requests that have come for it. What is left then is in
                the log, for the next leader. None: until all are learned.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._engine.leading.release(name)
        except TimeoutError:
            logger.info("model handed over before its requests were learned: model=%s", name)
            self._engine.leading.release_now(name)
        except Refusal as error:
            logger.warning("handover failed: model=%s error=%s", name, error)
        self._members.announce()
