"""Determines which models this replica of a fleet leads, and which replicas lead the others."""

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

from wolfstream.service.cluster.members import (
    BEAT_SECONDS,
    Leadership,
    Members,
    Replica,
    leaders_by_model,
    ranked,
    should_hand_over,
    stands_by,
    successor,
)
from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import NotReady, Refusal
from wolfstream.service.fleet.opening import Fleet
from wolfstream.service.settings import Settings

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


# How long a stopping replica still responds to replicas that do not know yet that it stops.
_LINGER_SECONDS = 1.0
# How long it still learns the requests that have come for its models.
_LEARN_SECONDS = 2.0


class Roles:
    """The roles of this replica, which follow from the announcements of all replicas.

    Used on the event loop.

    Attributes:
        members: the replicas of the fleet.
        secret: seals the other replicas' requests for this one's views.
    """

    def __init__(self, engine: Engine, fleet: Fleet, settings: Settings) -> None:
        self._engine, self._fleet = engine, fleet
        self._draining = False
        self._takeovers = dict[str, asyncio.Task[bool]]()  # model -> its running takeover
        self._failures = dict[str, str]()  # model -> why its last takeover failed
        self._url = settings.advertise
        self.secret = secrets.token_hex(16)
        self.members = Members(fleet.nats, self._url, self._report, settings.max_lag_seconds)
        self._changes = RoleChanges(engine, fleet, self.members, self.lead, self._ranked_by)

    def _report(self) -> Replica:
        """Return what this replica announces about itself; called on any thread."""
        ready = self._engine.readiness.reached and not self._draining
        leads = {
            model.name: Leadership(self._engine.term_of(model), model.published.sequence, model.id)
            for model in self._engine.recovered()
        }
        followed = self._engine.leading.followed
        return Replica(self._url, ready, leads, followed, self.secret)

    def is_here(self, replica: Replica) -> bool:
        """Return whether a replica is this one."""
        return replica.url == self._url

    @property
    def lag_seconds(self) -> float:
        """Seconds since a majority of the NATS servers was last heard; 0 while it is heard."""
        return self.members.lag_seconds

    def leads(self, name: str) -> bool:
        """Return whether this replica leads a model now."""
        return self._engine.leading.leads(name)

    @property
    def _here(self) -> Replica:
        return Replica(self._url, True, {}, {})

    def check(self) -> None:
        """Raise NotReady if this replica does not know the others yet, or no longer.

        It is also raised if another replica has this one's address: then the others do not know
        this one.
        """
        if self.members.silenced:
            raise NotReady(
                f"another replica of the fleet has the address {self._url}, too: start this one "
                "with an address of its own (--advertise)"
            )
        if self.members.outside:
            raise NotReady(self.members.outside)
        if not self.members.settled:
            raise NotReady("the fleet's other replicas are not known yet; try again")
        if self.members.outdated:
            raise NotReady(
                f"most NATS servers have not been heard for {self.members.lag_seconds:.0f} s: "
                "other replicas may lead the models by now, and have learned more"
            )

    def responsible(self, name: str) -> Replica:
        """Return the replica that leads a model or, if none does, should. Raises NotReady.

        The leader of a challenger is that of its champion.
        """
        self.check()
        ranked_by = self._ranked_by(name)
        # The name itself is looked up as well: this replica may not know the champion yet.
        for candidate in (ranked_by, name):
            leader = self.members.find_leader(candidate)
            own = self._engine.recovered_model(candidate)
            if own is not None:
                since = own.id, self._engine.term_of(own)
                if leader is None or leader.leads[candidate].since < since:
                    return self._here
            if leader is not None:
                return leader
        if self.members.lag_seconds:
            raise NotReady(f"NATS does not answer; model {name!r} cannot be led now")
        replica = successor(ranked_by, self.members.living())
        if replica is None:
            raise NotReady("no replica of the fleet takes models now; try again")
        return replica

    def _ranked_by(self, name: str) -> str:
        """Return the name by which replicas are ranked for a model: its champion's or its own.

        Therefore a champion and its challengers have the same leader.
        """
        return self._fleet.catalogue.champions.get(name, name)

    def is_gone(self, replica: Replica) -> bool:
        """Return whether a replica has fallen silent, or cannot be connected to."""
        return replica.url not in self._others()

    def living(self) -> list[Replica]:
        """Return the living replicas, including this one."""
        return self.members.living()

    def suspect(self, replica: Replica) -> None:
        """Treat a replica as gone because it does not accept connections."""
        self.members.suspect(replica.url)

    def names(self) -> list[str]:
        """Return the names of all models; those that other replicas lead may be a moment old."""
        return self._fleet.catalogue.names

    async def lead(self, name: str) -> bool:
        """Let this replica lead a model; return whether the model exists.

        The takeover continues if the caller is cancelled.

        Raises NotLeader, StorageFailed, NotReady.
        """
        if self._engine.leading.leads(name):
            return True
        takeover = self._takeovers.get(name)
        if takeover is None:
            takeover = self._takeovers[name] = asyncio.create_task(self._take_over(name))
            takeover.add_done_callback(lambda done: self._end_takeover(name, done))
        return await asyncio.shield(takeover)

    async def _take_over(self, name: str) -> bool:
        await self._engine.readiness.wait()
        if (champion := self._ranked_by(name)) != name:
            await self._engine.leading.lead(champion)
        led = await self._engine.leading.lead(name)
        self.members.announce()
        return led

    def _end_takeover(self, name: str, done: "asyncio.Task[bool]") -> None:
        del self._takeovers[name]
        self._failures.pop(name, None)
        if not done.cancelled() and (error := done.exception()):
            logger.info("takeover failed: model=%s error=%s", name, error)
            exists = set(self._fleet.catalogue.names)  # clients may ask for any name
            self._failures = {
                model: why for model, why in self._failures.items() if model in exists
            }
            if name in exists:
                self._failures[name] = str(error)

    def progress(self, name: str) -> str:
        """Return the progress of the takeover of a model, as a text for clients."""
        progress = self._engine.leading.progress(self._ranked_by(name))
        why = self._failures.get(name)
        return f"{progress}; the last attempt failed: {why}" if why else progress

    async def hand_over(self) -> None:
        """Take over no more models, and hand over the models of this replica to others."""
        self._draining = True
        self._changes.end()
        self.members.announce()
        if len(self.members.living()) > 1:
            releases = [
                self._changes.release(model.name, _LEARN_SECONDS)
                for model in self._engine.recovered()
                if model.champion is None  # a challenger moves with its champion
            ]
            await asyncio.gather(*releases)
        self.members.announce()
        await asyncio.sleep(_LINGER_SECONDS)

    def _others(self) -> list[str]:
        return [replica.url for replica in self.members.others()]

    def describe(self) -> dict[str, Any]:
        """Return what this replica knows of its fleet, as plain data."""
        return {
            "replica": self._url,
            "connected": self._fleet.nats.connected,
            "lag_seconds": round(self.members.lag_seconds, 3),
            "refusals": self._fleet.nats.refusals,
            "streams": {name: stream._asdict() for name, stream in self.members.streams.items()},
            "takeovers": self._engine.leading.takeovers,
            "faults": {
                model.name: model.log_faults
                for model in self._engine.recovered()
                if model.log_faults
            },
            "replicas": [
                {
                    "url": replica.url,
                    "ready": replica.ready,
                    "leads": {name: led._asdict() for name, led in replica.leads.items()},
                    "follows": replica.follows,
                    "formats": replica.formats._asdict(),
                }
                for replica in sorted(self.members.living(), key=lambda replica: replica.url)
            ],
        }

    def stop(self) -> None:
        """Change no more roles, and cancel running takeovers."""
        self._changes.stop()
        for takeover in list(self._takeovers.values()):
            takeover.cancel()
