"""Determines which models this replica of a fleet leads, and which replicas lead the others."""

import asyncio
import logging
import secrets
from typing import Any

from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import NotReady
from wolfstream.service.fleet.members import Leadership, Members, Replica, successor
from wolfstream.service.fleet.opening import Fleet
from wolfstream.service.replicas.director import Target
from wolfstream.service.settings import Settings
from wolfstream.service.web.role_changes import RoleChanges

logger = logging.getLogger(__name__)

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

    def is_here(self, replica: Target) -> bool:
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

    def is_gone(self, replica: Target) -> bool:
        """Return whether a replica has fallen silent, or cannot be connected to."""
        return replica.url not in self._others()

    def living(self) -> list[Replica]:
        """Return the living replicas, including this one."""
        return self.members.living()

    def suspect(self, replica: Target) -> None:
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
        if not done.cancelled() and (error := done.exception()):
            logger.info("takeover failed: model=%s error=%s", name, error)

    def progress(self, name: str) -> str:
        """Return the progress of the takeover of a model, as a text for clients."""
        return self._engine.leading.progress(self._ranked_by(name))

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
