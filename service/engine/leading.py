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
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

from wolfstream.service.engine.challenger_takeover import TakenOver, take_over
from wolfstream.service.engine.challengers import Challengers
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.remembered_keys import RememberedKeys
from wolfstream.service.engine.standby import Standby
from wolfstream.service.errors import NotLeader, NotReady, StartupError, StorageFailed
from wolfstream.service.model.live import Model
from wolfstream.service.storage.entries import CatalogueEntry
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.journal import LogDeleted
from wolfstream.service.storage.term import Term

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Models that are brought back at the same time, to lead them, and to stand by for them: one that
# takes long to load must not keep another one from keeping up.
_AT_A_TIME, _FOLLOWED_AT_A_TIME = 2, 2
# Each waits for one answer of NATS.
_CONFIRMED_AT_A_TIME = 4


class InOrder(Protocol):
    """Runs a function on the writer's thread, between the requests of a model."""

    def __call__(
        self, model: Model | None, run: Callable[[], Any], samples: int = 1
    ) -> Awaitable[Any]:
        """Return the function's result; see `Orders.in_order`."""


class _Lock:
    """A lock, and how many have it or await it."""

    def __init__(self) -> None:
        self.lock, self.users = asyncio.Lock(), 0


class Leading:
    """The models that this server leads and follows. Used on the event loop.

    in_order: runs a function on the writer's thread.
    begin_to_follow: called with a model that follows another one from now on.
    """

    def __init__(
        self,
        storage: Storage,
        models: LiveModels,
        keys: RememberedKeys,
        challengers: Challengers,
        in_order: InOrder,
        begin_to_follow: Callable[[Model], None],
    ) -> None:
        self._storage, self._models, self._keys = storage, models, keys
        self._challengers = challengers
        self._in_order, self._begin_to_follow = in_order, begin_to_follow
        self._workers = ThreadPoolExecutor(_AT_A_TIME, "takeover")
        self._after_champions = ThreadPoolExecutor(1, "challenger takeover")
        self._standby = ThreadPoolExecutor(_FOLLOWED_AT_A_TIME, "standby")
        self._confirming = ThreadPoolExecutor(_CONFIRMED_AT_A_TIME, "confirm")
        # Whoever waits for a thread has no lock, which a takeover would have to wait for.
        self._room = asyncio.Semaphore(_FOLLOWED_AT_A_TIME)
        self._followed: dict[str, Standby] = {}
        # Those whose logs are read to the end now, to lead them.
        self._taken_over: dict[str, Standby] = {}
        # By names, while somebody has or awaits them: anybody may ask for any name.
        self._locks: dict[str, _Lock] = {}
        self.takeovers = 0

    @property
    def followed(self) -> dict[str, int]:
        """The models that are followed, with their sequences."""
        return {name: one.learner.sequence for name, one in self._followed.items()}

    def restored(self, name: str) -> Model | None:
        """Return a model that is followed, or whose log is read to the end, to lead it."""
        standby = self._taken_over.get(name) or self._followed.get(name)
        return None if standby is None else standby.learner.model

    def progress(self, name: str) -> str:
        """Return how far the takeover of a model is, as a client is told."""
        standby = self._taken_over.get(name)
        if standby is None:
            return f"this replica is about to lead model {name!r}"
        learned, end = standby.progress
        return (
            f"this replica takes model {name!r} over, and has learned {learned} of {end} samples "
            "of its log"
        )

    def leads(self, name: str) -> bool:
        """Return whether this server learns a model."""
        model = self._models.get(name)
        return model is not None and model.led

    async def lead(self, name: str) -> bool:
        """Learn a model from now on; return False if no model has its name.

        Raises NotLeader, StorageFailed, NotReady.
        """
        if self.leads(name):
            return True
        async with self._locked(name):
            if self.leads(name):
                return True
            entry = await self._on(self._workers, self._storage.catalogue.find, name)
            if entry is None:
                self._followed.pop(name, None)
                self._models.forget_released(name)
                return False
            self._check_made(name)
            if self.leads(name):
                return True
            try:
                if await self._has_champion(entry):
                    await self._lead_challenger(entry)
                else:
                    await self._lead_alone(entry)
            except LogDeleted:  # by a replica that has not come to the end of it
                await self._on(self._workers, self._storage.catalogue.finish_deletion, entry)
                return False
            except StartupError as error:
                raise NotLeader(f"model {name!r} cannot be read: {error}") from None
            except OSError as error:  # of snapshots: nothing was learned
                raise NotReady(f"model {name!r} cannot be read: {error}; try again") from None
            return True

    @asynccontextmanager
    async def _locked(self, name: str) -> AsyncIterator[None]:
        """Let one at a time take over or follow a model.

        The lock is kept as long as somebody waits for it: two takeovers at a time would each end
        the other's term.
        """
        one = self._locks.setdefault(name, _Lock())
        one.users += 1
        try:
            async with one.lock:
                yield
        finally:
            one.users -= 1
            if not one.users:
                del self._locks[name]

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
        self._taken_over[entry.name] = standby
        try:
            await self._on(self._workers, standby.catch_up)
            # Its log may take seconds to answer, which the models that are led need not.
            term = await self._on(self._workers, standby.begin_term)
        finally:
            del self._taken_over[entry.name]
        await self._check_exists(entry)
        await self._in_order(None, lambda: self._begin(standby, term), samples=0)

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
        # One that was replaced without having noticed has less than its challenger: that is not
        # the challenger's fault.
        if (champion := self._models.with_id(entry.follows or 0)) is not None:
            term = self._models.term(champion.model)
            await self._on(self._after_champions, term.confirm)
        await self._in_order(None, lambda: self._begin_challenger(taken, entry.follows), samples=0)
        self._begin_to_follow(taken.learner.model)

    def _begin_challenger(self, taken: TakenOver, follows: int | None) -> None:
        """Learn for a model that follows another one, on the writer's thread."""
        champion, model = self._models.with_id(follows or 0), taken.learner.model
        if champion is None:  # it was handed over or deleted meanwhile
            raise NotLeader(f"model {model.name!r} is not led here: the one that it follows is not")
        self._models.adopt_follower(taken.learner, taken.term, champion.model)
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

    def _begin(self, standby: Standby, term: Term) -> None:
        """Learn for a model whose term has begun, on the writer's thread."""
        model = standby.learner.model
        answered = standby.answered(term.log)
        self._models.adopt(standby.learner, term)
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
            await self._in_order(model, lambda: self._end(model), samples=0)

    def _end(self, model: Model) -> None:
        """End the term of a model, on the writer's thread; for one that has ended do nothing."""
        if model.led and self._models.is_live(model):
            self._models.term(model).end()

    async def confirm(self, name: str) -> None:
        """Make sure that no other replica has learned for a model that is learned here.

        Raises NotLeader, StorageFailed.
        """
        model = self._models.get(name)
        if model is not None:
            await self._on(self._confirming, self._models.term(model).confirm)

    async def follow(self, name: str) -> None:
        """Learn everything that a model's log has by now, to be ready to lead it."""
        async with self._room, self._locked(name):
            if self.leads(name) or self._models.is_being_made(name):
                return
            standby = self._followed.get(name)
            if standby is None:
                entry = await self._on(self._standby, self._storage.catalogue.find, name)
                if entry is None:
                    return
                standby = self._followed[name] = Standby(entry, self._storage)
            try:
                await self._on(self._standby, standby.catch_up)
            except (NotReady, StartupError, StorageFailed, OSError) as error:
                logger.warning("model %s cannot be followed: %s", name, error)
                self._followed.pop(name, None)

    def unfollow(self, name: str) -> None:
        """Stop following a model."""
        if name not in self._locks:
            self._followed.pop(name, None)

    def stop(self) -> None:
        """Start no more terms and replays."""
        self._workers.shutdown(wait=False, cancel_futures=True)
        self._after_champions.shutdown(wait=False, cancel_futures=True)
        self._standby.shutdown(wait=False, cancel_futures=True)
        self._confirming.shutdown(wait=False, cancel_futures=True)
