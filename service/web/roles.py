"""The roles of this replica in its fleet: what it leads, follows, hands over and passes on."""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from service.engine.facade import Engine
from service.errors import NotReady, Refusal, StartupError, StorageFailed
from service.fleet.members import (
    BEAT_SECONDS,
    WRITTEN,
    Led,
    Members,
    Replica,
    leaders_of,
    ranked,
    should_hand_over,
    stands_by,
    successor,
)
from service.fleet.opening import Fleet
from service.replicas.director import Target
from service.settings import Settings
from service.storage.partitions import partitions_of, whole_of

logger = logging.getLogger(__name__)

# The number of models that move to another replica at the same time.
_HANDED_OVER = 8
# How often the living replicas are looked up.
_WATCH_SECONDS = 0.05
# How long a stopping replica keeps answering replicas that have not heard of it yet.
_LINGER_SECONDS = 1.0
_LOOKS_ASLEEP = 4


class Roles:
    """Decides for one replica, by what the others tell. Used on the event loop.

    word: by which this replica knows the others.
    """

    def __init__(self, engine: Engine, fleet: Fleet, settings: Settings) -> None:
        self._engine, self._fleet = engine, fleet
        self._draining = False
        self._url = settings.advertise
        self.word = secrets.token_hex(16)
        self.members = Members(fleet.nats, self._url, self._report, settings.max_lag_seconds)
        # In how many looks in a row each model was asleep.
        self._looks_asleep = Counter[str]()
        # What is done for models beside the watch.
        self._tasks = dict[tuple[str, str], asyncio.Task[None]]()
        self._watching = asyncio.create_task(self._watch())

    def _report(self) -> Replica:
        """Return what this replica tells of itself; on any thread."""
        ready = self._engine.readiness.reached and not self._draining
        leads = {
            model.name: Led(self._fleet.term_of(model.id), model.published.sequence, model.id)
            for model in self._engine.recovered()
        }
        followed = self._engine.leading.followed
        return Replica(self._url, ready, leads, followed, self.word, WRITTEN)

    def is_here(self, replica: Target) -> bool:
        """Return whether a replica is this one."""
        return replica.url == self._url

    @property
    def lag_seconds(self) -> float:
        """For how long no NATS server has been connected."""
        return self.members.lag_seconds

    def leads(self, name: str) -> bool:
        """Return whether this replica learns a model now."""
        return self._engine.leading.leads(name)

    @property
    def _here(self) -> Replica:
        return Replica(self._url, True, {}, {})

    def check(self) -> None:
        """Raise NotReady if the other replicas are not known: not yet, or not for long."""
        if not self.members.settled:
            raise NotReady("the fleet's other replicas are not known yet; try again")
        if self.members.outdated:
            raise NotReady(
                f"no NATS server has been reached for {self.members.lag_seconds:.0f} s: other "
                "replicas may lead the models by now"
            )

    def responsible(self, name: str) -> Replica:
        """Return the replica that leads a model, or should lead it. Raises NotReady.

        It is the one that leads the model's champion, if it has one.
        """
        self.check()
        ranked_by = self._ranked_by(name)
        # What this replica knows of champions may be some moments old.
        for one in (ranked_by, name):
            leader, own = self.members.leader_of(one), self._engine.recovered_model(one)
            if own is not None:
                term = self._fleet.term_of(own.id)
                if leader is None or leader.leads[one].term < term:
                    return self._here
            if leader is not None:
                return leader
        if self.members.lag_seconds:
            raise NotReady(f"no server of NATS is connected; model {name!r} cannot be led now")
        replica = successor(ranked_by, self.members.living())
        if replica is None:
            raise NotReady("no replica of the fleet takes models now; try again")
        return replica

    def _ranked_by(self, name: str) -> str:
        """Return the name by which replicas are ranked for a model: that of its champion, if any.

        So a champion and its challengers have one leader.
        """
        return self._fleet.catalogue.champions.get(name, name)

    def partitions(self, name: str) -> list[str]:
        """Return the partitions of a model with several learners; none of another one.

        What this replica knows of models that others lead may be some moments old.
        """
        own = self._engine.recovered_model(name)
        learners = self._fleet.catalogue.learners.get(name, 1) if own is None else own.spec.learners
        return partitions_of(name, learners)

    def whole_of(self, name: str) -> str | None:
        """Return the model that a partition belongs to; None for what is no partition."""
        return whole_of(name)

    def is_gone(self, replica: Target) -> bool:
        """Return whether a replica has fallen silent."""
        return replica.url not in self._others()

    def living(self) -> list[Replica]:
        """Return the living replicas, including this one."""
        return self.members.living()

    def suspect(self, replica: Target) -> None:
        """Take a replica for gone, which could not be connected to."""
        self.members.suspect(replica.url)

    async def names(self) -> list[str]:
        """Return the names of all models. Raises StorageFailed."""
        try:
            found = await asyncio.to_thread(self._fleet.storage.catalogue.models)
        except StartupError as error:
            raise StorageFailed(str(error)) from None
        return [entry.name for entry in found]

    async def lead(self, name: str) -> bool:
        """Lead a model that this replica is responsible for; whether there is one of the name.

        Raises NotLeader, StorageFailed, NotReady.
        """
        if self._engine.leading.leads(name):
            return True
        await self._engine.readiness.wait()
        if (champion := self._ranked_by(name)) != name:
            await self._engine.leading.lead(champion)
        led = await self._engine.leading.lead(name)
        self.members.tell()
        return led

    async def hand_over(self) -> None:
        """Take no more models, and release those that are led to the replicas that stand by."""
        self._draining = True
        self.members.tell()
        if len(self.members.living()) > 1:
            for model in self._engine.recovered():
                if model.champion is None:  # a challenger goes with its champion
                    await self._release(model.name)
        self.members.tell()
        await asyncio.sleep(_LINGER_SECONDS)

    async def _watch(self) -> None:
        while True:
            await self._next_look()
            if self._engine.readiness.reached and not self._draining and self.members.settled:
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
        return [replica.url for replica in self.members.others()]

    async def _look(self) -> None:
        """Take over what is to be led here, release what others should lead, and stand by.

        What takes long is done beside: models whose leaders are gone wait for nothing.
        """
        living = self.members.living()
        leaders = leaders_of(living)
        standing_by = {
            name
            for name, leader in leaders.items()
            if not self.is_here(leader)
            and self._ranked_by(name) == name
            and stands_by(self._url, name, leader, living)
        }
        for name in set(self._engine.leading.followed) - standing_by:
            following = successor(name, living)
            if name in leaders:
                self._engine.leading.unfollow(name)
            elif following is not None and self.is_here(following):
                # Its leader is gone, or has handed it over.
                self._beside(name, self._take_over)
            elif self._url not in [one.url for one in ranked(name, living)][:2]:
                self._engine.leading.unfollow(name)
        for name, champion in self._fleet.catalogue.champions.items():
            if self.leads(champion) and not self.leads(name):
                self._beside(name, self._take_over)
        asleep = self._asleep(leaders)
        self._looks_asleep = Counter({name: self._looks_asleep[name] + 1 for name in asleep})
        for name in asleep:
            if self._looks_asleep[name] < _LOOKS_ASLEEP:
                continue  # who has made it may not have said so yet
            following = successor(name, living)
            if following is not None and self.is_here(following):
                self._beside(name, self._take_over)
        await self._release_led_elsewhere(leaders, living)
        for name in standing_by:
            if self._followed(name) < leaders[name].leads[name].sequence:
                self._beside(name, self._engine.leading.follow)
        await self._release_deleted()

    def _asleep(self, leaders: dict[str, Replica]) -> list[str]:
        """Return what nobody leads of models with several learners of which something is led.

        Nobody asks for a partition that has learned all of its samples, and is not merged.
        """
        families = [
            [name, *partitions_of(name, learners)]
            for name, learners in self._fleet.catalogue.learners.items()
        ]
        awake = [family for family in families if not leaders.keys().isdisjoint(family)]
        return [name for family in awake for name in family if name not in leaders]

    def _beside(self, name: str, work: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        """Begin something for a model, unless the same is being done for it."""
        key = work.__name__, name
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._guarded(work, name))
            self._tasks[key].add_done_callback(lambda _: self._tasks.pop(key))

    async def _guarded(self, work: Callable[[str], Coroutine[Any, Any, None]], name: str) -> None:
        try:
            await work(name)
        except Exception:  # the next look may succeed
            logger.exception("model %s: its role here was not changed", name)

    async def _release_led_elsewhere(
        self, leaders: dict[str, Replica], living: list[Replica]
    ) -> None:
        """Release what others should lead, and what another one leads since a later term."""
        handed_over = 0
        for name, leader in leaders.items():
            if not self.is_here(leader):
                led = leader.leads[name]
                self._fleet.note_acknowledged(led.number, led.sequence)
                if self.leads(name):
                    await self._release(name)
                continue
            if handed_over >= _HANDED_OVER or self._ranked_by(name) != name:
                continue  # a challenger goes with its champion
            if should_hand_over(name, leader, living):
                handed_over += 1
                await self._release(name)

    async def _release_deleted(self) -> None:
        """Release models that another replica has deleted, which led them since a later term.

        Raises StorageFailed.
        """
        catalogue = self._fleet.catalogue
        for model in self._engine.recovered():
            if model.id not in catalogue.numbers:  # or it is newer than the last read
                found = await asyncio.to_thread(catalogue.find, model.name)
                if found is None or found.number != model.id:
                    await self._release(model.name)

    def _followed(self, name: str) -> int:
        return self._engine.leading.followed.get(name, -1)

    async def _take_over(self, name: str) -> None:
        try:
            await self.lead(name)
        except Refusal as error:
            logger.warning("model %s is not taken over: %s", name, error)

    async def _release(self, name: str) -> None:
        try:
            await self._engine.leading.release(name)
        except Refusal as error:
            logger.warning("model %s is not handed over: %s", name, error)
        self.members.tell()

    def describe(self) -> dict[str, Any]:
        """Return the fleet as this replica sees it."""
        return {
            "replica": self._url,
            "connected": self._fleet.nats.connected,
            "lag_seconds": round(self.members.lag_seconds, 3),
            "takeovers": self._engine.leading.takeovers,
            "replicas": [
                {
                    "url": replica.url,
                    "ready": replica.ready,
                    "leads": {name: led._asdict() for name, led in replica.leads.items()},
                    "follows": replica.follows,
                    "formats": replica.formats._asdict(),
                }
                for replica in sorted(self.members.living(), key=lambda one: one.url)
            ],
        }

    def stop(self) -> None:
        """Decide nothing more."""
        self._watching.cancel()
        for task in list(self._tasks.values()):
            task.cancel()
