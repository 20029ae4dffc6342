"""Leads the models of a fleet that are this replica's, and stands by for others.

One replica leads a model: it alone learns the model's samples. Another one is the standby: it
replays the model's log on a thread of its own, so that it has little left to read if the leader is
lost. A replica that takes a model over writes a new term into the log, after everything that it has
read; from then on the log accepts nothing from the leader before.

Challengers are led where their champions are, and are taken over after them. They have no standby,
and do not delay the takeover of their champions.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

from wolfstream.service.engine.challengers import Challengers
from wolfstream.service.engine.idempotency import IdempotencyKeys
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.takeover import ChallengerTerm, Standby, take_over
from wolfstream.service.errors import NotLeader, NotReady, StartupError, StorageFailed
from wolfstream.service.model.live import Model
from wolfstream.service.storage.entries import CatalogueEntry
from wolfstream.service.storage.interfaces import LogDeleted, Storage
from wolfstream.service.storage.term import Term

logger = logging.getLogger(__name__)

T = TypeVar("T")

# How many models are taken over, and how many standbys catch up, at the same time: a model that
# takes long to load must not keep another one from keeping up.
_AT_A_TIME, _FOLLOWED_AT_A_TIME = 2, 2


class RunInOrder(Protocol):
    """Runs a function on the writer's thread, in its place among the requests of a model."""

    def __call__(self, model: Model | None, run: Callable[[], T], samples: int = 1) -> Awaitable[T]:
        """Return the function's result; see `Orders.in_order`."""


class _Lock:
    """A lock, and how many tasks hold it or wait for it."""

    def __init__(self) -> None:
        self.lock, self.users = asyncio.Lock(), 0


class Leadership:
    """The models that this replica leads and stands by for. Used on the event loop.

    Args:
        storage: that the fleet shares.
        models: the models that are led here.
        keys: their idempotency keys.
        challengers: among them.
        in_order: runs a function on the writer's thread.
        begin_to_follow: called with a challenger that follows its champion from now on.

    Attributes:
        takeovers: how many models were taken over so far.
    """

    def __init__(
        self,
        storage: Storage,
        models: LiveModels,
        keys: IdempotencyKeys,
        challengers: Challengers,
        in_order: RunInOrder,
        begin_to_follow: Callable[[Model], None],
    ) -> None:
        self._storage, self._models, self._keys = storage, models, keys
        self._challengers = challengers
        self._in_order, self._begin_to_follow = in_order, begin_to_follow
        self._workers = ThreadPoolExecutor(_AT_A_TIME, "takeover")
        self._after_champions = ThreadPoolExecutor(1, "challenger takeover")
        self._standby = ThreadPoolExecutor(_FOLLOWED_AT_A_TIME, "standby")
        # Taken before a model's lock: a task that waits for a standby thread must hold no lock that
        # a takeover needs.
        self._room = asyncio.Semaphore(_FOLLOWED_AT_A_TIME)
        self._followed: dict[str, Standby] = {}
        # Models whose logs are being read to the end, to lead them.
        self._taken_over: dict[str, Standby] = {}
        # name -> lock, only while some task uses it: clients may ask for any name.
        self._locks: dict[str, _Lock] = {}
        self.takeovers = 0

    @property
    def followed(self) -> dict[str, int]:
        """The models that this replica stands by for: name -> sequence."""
        return {name: standby.learner.sequence for name, standby in self._followed.items()}

    def restored(self, name: str) -> Model | None:
        """Return the model of a standby, or of a takeover under way."""
        standby = self._taken_over.get(name) or self._followed.get(name)
        return None if standby is None else standby.learner.model

    def progress(self, name: str) -> str:
        """Return how far the takeover of a model is, in words for a client."""
        standby = self._taken_over.get(name)
        if standby is None:
            return f"this replica is about to lead model {name!r}"
        learned, end = standby.progress
        return (
            f"this replica takes model {name!r} over, and has learned {learned} of {end} samples "
            "of its log"
        )

    def leads(self, name: str) -> bool:
        """Return whether this replica leads a model."""
        model = self._models.get(name)
        return model is not None and model.led

    async def lead(self, name: str) -> bool:
        """Lead a model from now on; return False if no model has this name.

        Raises NotLeader, StorageFailed, NotReady.
        """
        if self.leads(name):
            return True
        async with self._locked(name):
            if self.leads(name):
                return True
            entry = await self.entry(name)
            if entry is None:
                self._followed.pop(name, None)
                self._models.forget_released(name)
                return False
            if self._models.is_being_made(name):
                raise NotLeader(f"model {name!r} is being made here; try again")
            if self.leads(name):
                return True
            try:
                if await self._has_champion(entry):
                    await self._lead_challenger(entry)
                else:
                    await self._lead_alone(entry)
            except LogDeleted:  # by a replica that stopped before it had deleted the rest
                await self._on(self._workers, self._storage.catalogue.finish_deletion, entry)
                return False
            except StartupError as error:
                raise NotLeader(f"model {name!r} cannot be read: {error}") from None
            except OSError as error:  # the snapshots cannot be read, and nothing was learned
                raise NotReady(f"model {name!r} cannot be read: {error}; try again") from None
            return True

    @asynccontextmanager
    async def _locked(self, name: str) -> AsyncIterator[None]:
        """Let one task at a time take over or stand by for a model.

        The lock lives as long as a task waits for it: two takeovers at a time would each end the
        other's term.
        """
        lock = self._locks.setdefault(name, _Lock())
        lock.users += 1
        try:
            async with lock.lock:
                yield
        finally:
            lock.users -= 1
            if not lock.users:
                del self._locks[name]

    async def _check_exists(self, entry: CatalogueEntry) -> None:
        """Raise NotLeader if a model was deleted during its takeover: its log has only our term.

        Raises StorageFailed.
        """
        current = await self.entry(entry.name)
        if current is None or current.number != entry.number:
            raise NotLeader(f"model {entry.name!r} was deleted while it was taken over; try again")

    async def entry(self, name: str) -> CatalogueEntry | None:
        """Return the catalogue's entry of a model, if it exists. Raises StorageFailed."""
        return await self._on(self._workers, self._storage.catalogue.find, name)

    async def _on(self, pool: ThreadPoolExecutor, run: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, run, *args)

    async def _lead_alone(self, entry: CatalogueEntry) -> None:
        standby = self._followed.pop(entry.name, None)
        if standby is None or standby.entry.number != entry.number:
            standby = Standby(entry, self._storage)
        self._taken_over[entry.name] = standby
        try:
            await self._on(self._workers, standby.catch_up)
            # The log may take seconds to answer: the writer, which has other models, must not wait.
            term = await self._on(self._workers, standby.begin_term)
        finally:
            del self._taken_over[entry.name]
        await self._check_exists(entry)
        await self._in_order(None, lambda: self._begin(standby, term), samples=0)

    async def _has_champion(self, entry: CatalogueEntry) -> bool:
        """Return whether a model is a challenger whose champion exists.

        Raises NotLeader if that is led elsewhere, and StartupError.
        """
        if entry.follows is None or self._models.with_id(entry.follows) is not None:
            return entry.follows is not None
        entries = await self._on(self._workers, self._storage.catalogue.models)
        champion = next((other.name for other in entries if other.number == entry.follows), None)
        if champion is not None:
            raise NotLeader(f"model {entry.name!r} is led where {champion!r} is, which it follows")
        return False

    async def _lead_challenger(self, entry: CatalogueEntry) -> None:
        taken_over = await self._on(self._after_champions, take_over, entry, self._storage)
        await self._check_exists(entry)
        # A champion that was replaced unnoticed has learned less than its challenger, which would
        # be blamed for that.
        if (champion := self._models.with_id(entry.follows or 0)) is not None:
            term = self._models.term(champion.model)
            await self._on(self._after_champions, term.confirm)
        await self._in_order(
            None, lambda: self._begin_challenger(taken_over, entry.follows), samples=0
        )
        self._begin_to_follow(taken_over.learner.model)

    def _begin_challenger(self, taken_over: ChallengerTerm, follows: int | None) -> None:
        """Learn for a challenger from now on; on the writer's thread."""
        champion, model = self._models.with_id(follows or 0), taken_over.learner.model
        if champion is None:  # it was handed over or deleted meanwhile
            raise NotLeader(f"model {model.name!r} is not led here: the one that it follows is not")
        self._models.adopt_follower(taken_over.learner, taken_over.term, champion.model)
        self._challengers.begin(taken_over.learner, taken_over.entries)
        logger.info(
            "challenger led: model=%s champion=%s sequence=%d",
            model.name,
            champion.model.name,
            taken_over.learner.sequence,
        )

    async def lead_followers(self, champion: Model) -> None:
        """Lead all challengers of a model that is led here.

        Raises NotLeader, StorageFailed, NotReady.
        """
        try:
            entries = await self._on(self._workers, self._storage.catalogue.models)
        except StartupError as error:
            raise StorageFailed(str(error)) from None
        for entry in entries:
            if entry.follows == champion.id:
                await self.lead(entry.name)

    def _begin(self, standby: Standby, term: Term) -> None:
        """Learn for a model whose term has begun; on the writer's thread."""
        model = standby.learner.model
        requests = standby.answered(term.log)
        self._models.adopt(standby.learner, term)
        self._keys.add_answered(requests)
        self.takeovers += 1
        logger.info(
            "model led: model=%s sequence=%d epoch=%s",
            model.name,
            model.published.sequence,
            model.published.epoch,
        )

    async def release(self, name: str) -> None:
        """Stop leading a model, after the requests that have come for it."""
        model = self._models.get(name)
        if model is not None:
            await self._in_order(model, lambda: self._end(model), samples=0)

    def release_now(self, name: str) -> None:
        """Stop leading a model; what its log has and it has not learned is the next leader's."""
        model = self._models.get(name)
        if model is not None:
            self._end(model)

    def _end(self, model: Model) -> None:
        """End a model's term, unless it has ended; on any thread."""
        if model.led and self._models.is_live(model):
            self._models.term(model).end()

    async def confirm(self, name: str) -> None:
        """Make sure that no other replica has learned for a model that is led here.

        Raises NotLeader, StorageFailed.
        """
        model = self._models.get(name)
        if model is not None:
            await asyncio.wrap_future(self._models.term(model).begin_to_confirm())

    async def follow(self, name: str) -> None:
        """Stand by for a model: learn everything that its log has by now."""
        async with self._room, self._locked(name):
            if self.leads(name) or self._models.is_being_made(name):
                return
            standby = self._followed.get(name)
            if standby is None:
                entry = await self._on(self._standby, self._storage.catalogue.find, name)
                if entry is None:
                    return
                try:
                    standby = self._followed[name] = Standby(entry, self._storage)
                except StartupError as error:  # the replica that leads it takes other specs
                    logger.warning("standby not begun: model=%s error=%s", name, error)
                    return
            try:
                await self._on(self._standby, standby.catch_up)
            except (NotReady, StartupError, StorageFailed, OSError) as error:
                logger.warning("standby given up: model=%s error=%s", name, error)
                self._followed.pop(name, None)

    def unfollow(self, name: str) -> None:
        """Stop standing by for a model, unless a takeover or standby holds or awaits its lock."""
        if name not in self._locks:
            self._followed.pop(name, None)

    def stop(self) -> None:
        """Begin no more takeovers and replays."""
        for pool in (self._workers, self._after_champions, self._standby):
            pool.shutdown(wait=False, cancel_futures=True)
