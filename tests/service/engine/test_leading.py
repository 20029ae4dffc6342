"""Leading models of a fleet: while its storage does not answer, while they are made and deleted."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from tests.service.memory_storage import MemoryStorage
from wolfstream.service.engine.idempotency import IdempotencyKeys
from wolfstream.service.engine.leading import Leadership
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.new_models import NewModels
from wolfstream.service.errors import NotLeader, StorageFailed
from wolfstream.service.model.live import Model
from wolfstream.service.model.memory import ModelMemory
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.storage.entries import CatalogueEntry
from wolfstream.service.storage.term import Term
from wolfstream.service.web.formats.problems import problem_of


def test_unlisted_snapshots_are_retried():
    """As 503, which says that nothing was learned; a 500 would leave that open."""

    def sequences(_: int) -> list[int]:
        raise OSError("no answer from NATS")

    entry = CatalogueEntry(1, "m", ModelSpec().plain(), "first")
    storage: Any = SimpleNamespace(
        catalogue=SimpleNamespace(find=lambda _: entry, is_followed=lambda _: False),
        snapshots=SimpleNamespace(sequences=sequences),
        journal=MemoryStorage().storage.journal,
    )
    models: Any = SimpleNamespace(get=lambda _: None, is_being_made=lambda _: False)
    unused: Any = None

    async def lead() -> None:
        await Leadership(storage, models, unused, unused, unused, unused).lead("m")

    with pytest.raises(StorageFailed, match="no answer from NATS") as caught:
        asyncio.run(lead())
    assert problem_of(caught.value)["status"] == 503
    assert caught.value.outcome == "not-learned"


def test_refused_term_delays_no_led_model(monkeypatch: pytest.MonkeyPatch):
    """It is waited for beside the writer, which is not asked before the term has begun."""
    storage = MemoryStorage().storage
    with storage.catalogue.creating("m", ModelSpec().plain(), "first"):
        pass

    def begin_term(*_: object) -> Term:
        raise StorageFailed("the log has not answered")

    monkeypatch.setattr(type(storage.journal.reader(1)), "begin_term", begin_term)
    models: Any = SimpleNamespace(get=lambda _: None, is_being_made=lambda _: False)
    never_asked: Any = None

    async def lead() -> None:
        await Leadership(storage, models, *[never_asked] * 4).lead("m")

    with pytest.raises(StorageFailed, match="has not answered"):
        asyncio.run(lead())


def test_spec_of_another_version_is_no_fault_of_a_client():
    storage = MemoryStorage().storage
    with storage.catalogue.creating("m", {**ModelSpec().plain(), "unheard_of": 1}, "first"):
        pass
    models: Any = SimpleNamespace(get=lambda _: None, is_being_made=lambda _: False)
    unused: Any = None
    leading = Leadership(storage, models, *[unused] * 4)
    with pytest.raises(NotLeader, match="unheard_of"):
        asyncio.run(leading.lead("m"))
    asyncio.run(leading.follow("m"))
    assert leading.followed == {}


def test_a_model_whose_follow_waits_for_others_is_led_at_once():
    """Whoever waits for a thread to follow a model must not keep its takeover waiting."""
    stopped, begun = threading.Event(), list[str]()

    def find(name: str) -> CatalogueEntry | None:
        begun.append(name)
        if name.startswith("slow"):
            assert stopped.wait(60)
        return None

    storage: Any = SimpleNamespace(catalogue=SimpleNamespace(find=find))
    models: Any = SimpleNamespace(
        get=lambda _: None, forget_released=lambda _: None, is_being_made=lambda _: False
    )
    unused: Any = None

    async def lead() -> None:
        leading = Leadership(storage, models, *[unused] * 4)
        slow = [asyncio.create_task(leading.follow(f"slow-{number}")) for number in range(2)]
        async with asyncio.timeout(60):
            while len(begun) < len(slow):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            waiting = asyncio.create_task(leading.follow("quick"))
            await asyncio.sleep(0)
            assert not await leading.lead("quick")
            assert begun == ["slow-0", "slow-1", "quick"]
            stopped.set()
            await asyncio.gather(*slow, waiting)

    try:
        asyncio.run(lead())
    finally:
        stopped.set()


class Replica:
    """What leads models of a storage in memory; the writer's thread is whichever asks it."""

    def __init__(self) -> None:
        self.memory = MemoryStorage()
        self.storage = self.memory.storage
        keys = IdempotencyKeys(10, 1000)
        self.models = LiveModels(self.storage, keys, ModelMemory(1 << 40))
        unused: Any = None
        self.leading = Leadership(self.storage, self.models, keys, unused, self._in_order, unused)

    async def _in_order(self, _: Model | None, run: Callable[[], Any]) -> Any:
        return run()

    def create(self) -> Model:
        return NewModels(self.storage, self.models, 10).create("m", ModelSpec())[0]

    def lead(self) -> bool:
        return asyncio.run(self.leading.lead("m"))


def test_model_in_creation_led_once(
    monkeypatch: pytest.MonkeyPatch,
):
    """It is in the catalogue before it is learned, and two learners would share its log."""
    replica = Replica()
    creating = replica.storage.catalogue.creating
    asked = list[BaseException | None]()

    @contextmanager
    def in_sight(*given: Any) -> Iterator[Term]:
        with creating(*given) as term:
            yield term
        with ThreadPoolExecutor() as beside:
            asked.append(beside.submit(replica.lead).exception(60))

    monkeypatch.setattr(replica.storage.catalogue, "creating", in_sight)
    made = replica.create()
    assert [type(one) for one in asked] == [NotLeader]
    assert replica.models.get("m") is made
    assert replica.storage.journal.reader(made.id).epoch_since(0) is None
    assert replica.lead()
    assert replica.models.get("m") is made


@pytest.mark.parametrize("when", ["before its term", "after its term"])
def test_model_deleted_in_takeover_not_led(monkeypatch: pytest.MonkeyPatch, when: str):
    """The log says so before a term has begun, and the catalogue after it."""
    replica = Replica()
    catalogue = replica.storage.catalogue
    with catalogue.creating("m", ModelSpec().plain(), "first") as first:
        pass
    log = type(replica.storage.journal.reader(first.model))
    begin_term = log.begin_term

    def deleted(*given: Any) -> Term:
        if when == "before its term":
            catalogue.delete(first)
        term = begin_term(*given)
        catalogue.delete(term)
        return term

    monkeypatch.setattr(log, "begin_term", deleted)
    if when == "before its term":
        assert not replica.lead()
    else:
        with pytest.raises(NotLeader, match="was deleted"):
            replica.lead()
    assert replica.models.all() == []
    assert not replica.lead()
