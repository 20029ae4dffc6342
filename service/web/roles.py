"""The roles of this replica in its fleet: what it leads, follows, hands over and passes on."""

import asyncio
import logging
from typing import Any

from service.engine.facade import Engine
from service.errors import NotReady, Refusal, StartupError, StorageFailed
from service.fleet.members import BEAT_SECONDS, Led, Members, Replica
from service.fleet.opening import Fleet
from service.web.layers.forwarding import Target

logger = logging.getLogger(__name__)

# Models that change their replica at the same time, where another one is to lead them.
_HANDED_OVER = 8


class Roles:
    """Decides for one replica, by what the others tell. Used on the event loop.

    url: at which the others reach this one.
    """

    def __init__(self, engine: Engine, fleet: Fleet, url: str) -> None:
        self._engine, self._fleet = engine, fleet
        self._draining = False
        self._url = url
        self.members = Members(fleet.nats, url, self._report)
        self._watching = asyncio.create_task(self._watch())

    def _report(self) -> Replica:
        """What this replica tells of itself; on any thread."""
        ready = self._engine.readiness.reached and not self._draining
        leads = {
            model.name: Led(self._fleet.term_of(model.id), model.published.sequence)
            for model in self._engine.recovered()
        }
        return Replica(self._url, ready, leads, self._engine.leading.followed)

    def is_here(self, replica: Target) -> bool:
        """Whether a replica is this one."""
        return replica.url == self._url

    def responsible(self, name: str) -> Replica:
        """The replica that leads a model, or is to lead it. Raises NotReady."""
        leader = self.members.leader_of(name)
        if leader is not None:
            return leader
        if self.members.lag_seconds or not self.members.settled:
            raise NotReady("the fleet's other replicas are not known yet; try again")
        ranked = self.members.ranked(name)
        if not ranked:
            raise NotReady("no replica of the fleet takes models now; try again")
        return ranked[0]

    def living(self) -> list[Replica]:
        """The replicas that are heard, this one among them."""
        return self.members.living()

    def suspect(self, replica: Target) -> None:
        """Take a replica for gone, which could not be connected to."""
        self.members.suspect(replica.url)

    async def names(self) -> list[str]:
        """The names of all models. Raises StorageFailed."""
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
        led = await self._engine.leading.lead(name)
        self.members.tell()
        return led

    async def hand_over(self) -> None:
        """Take no models any more, and let go those that are led, for those who stand by."""
        self._draining = True
        self.members.tell()
        if len(self.members.living()) > 1:
            for model in self._engine.recovered():
                await self._release(model.name)
        self.members.tell()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            if self._engine.readiness.reached and not self._draining and self.members.settled:
                try:
                    await self._look()
                except Exception:  # the next look may succeed
                    logger.exception("the roles of this replica were not reviewed")

    async def _look(self) -> None:
        """Follow what this replica stands by for, and let go what another one has or is to have."""
        standing_by = set[str]()
        handed_over = 0
        for name, leader in self._leaders().items():
            others = [one for one in self.members.ranked(name) if one.url != leader.url]
            if self.is_here(leader):
                better = self.members.ranked(name)[:1]
                if better and not self.is_here(better[0]) and handed_over < _HANDED_OVER:
                    # It is to lead by its rank, and follows closely.
                    reached = better[0].follows.get(name, -1)
                    if reached >= leader.leads[name].sequence:
                        handed_over += 1
                        await self._release(name)
            elif others and self.is_here(others[0]):
                standing_by.add(name)
                if self._engine.leading.leads(name):  # that one leads since a later term
                    await self._release(name)
                followed = self._engine.leading.followed.get(name, -1)
                if followed < leader.leads[name].sequence:
                    await self._engine.leading.follow(name)
            elif self._engine.leading.leads(name):
                await self._release(name)
        for name in set(self._engine.leading.followed) - standing_by:
            self._engine.leading.unfollow(name)

    def _leaders(self) -> dict[str, Replica]:
        """The replica that leads each model that is led."""
        leaders = dict[str, Replica]()
        for replica in self.members.living():
            for name, led in replica.leads.items():
                if name not in leaders or leaders[name].leads[name].term < led.term:
                    leaders[name] = replica
        return leaders

    async def _release(self, name: str) -> None:
        try:
            await self._engine.leading.release(name)
        except Refusal as error:
            logger.warning("model %s is not handed over: %s", name, error)
        self.members.tell()

    def describe(self) -> dict[str, Any]:
        """The fleet as this replica sees it."""
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
                }
                for replica in sorted(self.members.living(), key=lambda one: one.url)
            ],
        }

    def stop(self) -> None:
        """Decide nothing more."""
        self._watching.cancel()
