"""The models of a fleet that this server learns, and those that it follows to be ready for them.

One replica leads a model and alone learns it. Another one follows: it replays the model's log on a
thread of its own, so that it has little left to read when the leader is gone. A replica that begins
to lead writes a new term into the log, after everything that it has read; from then on the log
takes nothing from the leader before it.

Models that follow another one are led where it is, after it. Nobody stands by for them, and they do
not delay its takeover.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from service.engine.challenger_takeover import TakenOver, take_over
from service.engine.challengers import Challengers
from service.engine.live_models import LiveModels
from service.engine.remembered_keys import RememberedKeys
from service.engine.standby import Standby
from service.errors import NotLeader, NotReady, StartupError, StorageFailed
from service.model.live import Model
from service.storage.entries import CatalogueEntry
from service.storage.interfaces import Storage

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Models that are brought back at the same time, to lead them, and to stand by for them: one that
# takes long to load must not keep another one from keeping up.
_AT_A_TIME, _FOLLOWED_AT_A_TIME = 2, 2


class Leading:
    """The models that this server leads and follows. Used on the event loop.

    in_order: runs a function on the writer's thread, between the requests of a model.
    begin_to_follow: called with a model that follows another one from now on.
    """

    def __init__(
        self,
        storage: Storage,
        models: LiveModels,
        keys: RememberedKeys,
        challengers: Challengers,
        in_order: Callable[[Model | None, Callable[[], Any]], Awaitable[Any]],
        begin_to_follow: Callable[[Model], None],
    ) -> None:
        self._storage, self._models, self._keys = storage, models, keys
        self._challengers = challengers
        self._in_order, self._begin_to_follow = in_order, begin_to_follow
        self._workers = ThreadPoolExecutor(_AT_A_TIME, "takeover")
        self._after_champions = ThreadPoolExecutor(1, "challenger takeover")
        self._standby = ThreadPoolExecutor(_FOLLOWED_AT_A_TIME, "standby")
        # Whoever waits for a thread has no lock, which a takeover would have to wait for.
        self._room = asyncio.Semaphore(_FOLLOWED_AT_A_TIME)
        self._followed: dict[str, Standby] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self.takeovers = 0

    @property
    def followed(self) -> dict[str, int]:
        """The models that are followed, with their sequences."""
        return {name: one.learner.sequence for name, one in self._followed.items()}

    def leads(self, name: str) -> bool:
        """Return whether this server learns a model."""
        return self._models.get(name) is not None

    async def lead(self, name: str) -> bool:
        """Learn a model from now on; return False if no model has its name.

        Raises NotLeader, StorageFailed, NotReady.
        """
        if self.leads(name):
            return True
        async with self._locks.setdefault(name, asyncio.Lock()):
            if self.leads(name):
                return True
            entry = await self._on(self._workers, self._storage.catalogue.find, name)
            if entry is None:
                self._followed.pop(name, None)
                self._models.forget_released(name)
                self._locks.pop(name, None)  # anybody may ask for any name, several at a time
                return False
            self._check_made(name)
            if self.leads(name):
                return True
            try:
                if await self._has_champion(entry):
                    await self._lead_challenger(entry)
                else:
                    await self._lead_alone(entry)
            except StartupError as error:
                raise NotLeader(f"model {name!r} cannot be read: {error}") from None
            except OSError as error:  # of snapshots: nothing was learned
                raise NotReady(f"model {name!r} cannot be read: {error}; try again") from None
            return True

    def _check_made(self, name: str) -> None:
        """Raise NotLeader for a model that is in the catalogue, and about to be learned here."""
        if self._models.is_being_made(name):
            raise NotLeader(f"model {name!r} is being made here; try again")

    async def _check_exists(self, entry: CatalogueEntry) -> None:
        """Raise NotLeader for a model that was deleted meanwhile, whose new term is all of its log.

        Raises StorageFailed.
        """
        found = await self._on(self._workers, self._storage.catalogue.find, entry.name)
        if found is None or found.number != entry.number:
            raise NotLeader(f"model {entry.name!r} was deleted while it was taken over; try again")

    async def entry(self, name: str) -> CatalogueEntry | None:
        """Return the fleet's entry of a model, if it exists. Raises StorageFailed."""
        return await self._on(self._workers, self._storage.catalogue.find, name)

    async def _on(self, pool: ThreadPoolExecutor, run: Callable[..., T], *given: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, run, *given)

    async def _lead_alone(self, entry: CatalogueEntry) -> None:
        standby = self._followed.pop(entry.name, None)
        if standby is None or standby.entry.number != entry.number:
            standby = Standby(entry, self._storage)
        await self._on(self._workers, standby.catch_up)
        # Its log may take seconds to answer, which the models that are led need not.
        await self._on(self._workers, standby.begin_term)
        await self._check_exists(entry)
        await self._in_order(None, lambda: self._begin(standby))

    async def _has_champion(self, entry: CatalogueEntry) -> bool:
        """Return whether a model follows one that exists. Raises NotLeader if it is led elsewhere.

        Raises StartupError.
        """
        if entry.follows is None or self._models.with_id(entry.follows) is not None:
            return entry.follows is not None
        there = await self._on(self._workers, self._storage.catalogue.models)
        champion = next((one.name for one in there if one.number == entry.follows), None)
        if champion is not None:
            raise NotLeader(f"model {entry.name!r} is led where {champion!r} is, which it follows")
        return False

    async def _lead_challenger(self, entry: CatalogueEntry) -> None:
        taken = await self._on(self._after_champions, take_over, entry, self._storage)
        await self._check_exists(entry)
        await self._in_order(None, lambda: self._begin_challenger(taken, entry.follows))
        self._begin_to_follow(taken.learner.model)

    def _begin_challenger(self, taken: TakenOver, follows: int | None) -> None:
        """Learn for a model that follows another one, on the writer's thread."""
        champion, model = self._models.with_id(follows or 0), taken.learner.model
        if champion is None:  # it was handed over or deleted meanwhile
            raise NotLeader(f"model {model.name!r} is not led here: the one that it follows is not")
        self._models.adopt_follower(taken.learner, champion.model)
        self._challengers.begin(taken.learner, taken.own)
        logger.info(
            "model %s: follows %s from sequence %d on",
            model.name,
            champion.model.name,
            taken.learner.sequence,
        )

    async def lead_followers(self, champion: Model) -> None:
        """Lead all models that follow one that is led here.

        Raises NotLeader, StorageFailed, NotReady.
        """
        try:
            there = await self._on(self._workers, self._storage.catalogue.models)
        except StartupError as error:
            raise StorageFailed(str(error)) from None
        for found in there:
            if found.follows == champion.id:
                await self.lead(found.name)

    def _begin(self, standby: Standby) -> None:
        """Learn for a model whose term has begun, on the writer's thread."""
        model = standby.learner.model
        answered = standby.answered()
        self._models.adopt(standby.learner)
        self._keys.add_answered(answered)
        self.takeovers += 1
        logger.info(
            "model %s: led from sequence %d on, in epoch %s",
            model.name,
            model.published.sequence,
            model.published.epoch,
        )

    async def release(self, name: str) -> None:
        """Stop learning a model, after the requests that came for it before."""
        model = self._models.get(name)
        if model is not None:
            await self._in_order(model, lambda: self._models.release(model))

    async def follow(self, name: str) -> None:
        """Learn everything that a model's log has by now, to be ready to lead it."""
        async with self._room, self._locks.setdefault(name, asyncio.Lock()):
            if self.leads(name):
                return
            standby = self._followed.get(name)
            if standby is None:
                entry = await self._on(self._standby, self._storage.catalogue.find, name)
                if entry is None:
                    return
                standby = self._followed[name] = Standby(entry, self._storage)
            try:
                await self._on(self._standby, standby.catch_up)
            except (StartupError, StorageFailed, OSError) as error:
                logger.warning("model %s cannot be followed: %s", name, error)
                self._followed.pop(name, None)

    def unfollow(self, name: str) -> None:
        """Stop following a model."""
        lock = self._locks.get(name)
        if lock is None or not lock.locked():
            self._followed.pop(name, None)

    def stop(self) -> None:
        """Start no more terms and replays."""
        self._workers.shutdown(wait=False, cancel_futures=True)
        self._after_champions.shutdown(wait=False, cancel_futures=True)
        self._standby.shutdown(wait=False, cancel_futures=True)
