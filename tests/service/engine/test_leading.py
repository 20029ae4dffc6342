"""Leading models of a fleet whose storage does not answer."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from service.engine.leading import Leading
from service.errors import NotReady, StorageFailed
from service.spec.model import ModelSpec
from service.storage.entries import CatalogueEntry
from tests.service.memory_storage import MemoryStorage


def test_a_model_whose_snapshots_cannot_be_listed_is_to_be_tried_again():
    """As 503, which says that nothing was learned; a 500 would leave that open."""

    def sequences(_: int) -> list[int]:
        raise OSError("no answer from NATS")

    entry = CatalogueEntry(1, "m", ModelSpec().plain(), "first")
    storage: Any = SimpleNamespace(
        catalogue=SimpleNamespace(find=lambda _: entry, is_followed=lambda _: False),
        snapshots=SimpleNamespace(sequences=sequences),
        journal=SimpleNamespace(
            reread=lambda _: None,
            replays=SimpleNamespace(begin=lambda *_: 0, most=2),
            rolled_back_at=lambda _: None,
            rollbacks=lambda _: [],
        ),
    )
    models: Any = SimpleNamespace(get=lambda _: None)
    unused: Any = None

    async def lead() -> None:
        await Leading(storage, models, unused, unused, unused, unused).lead("m")

    with pytest.raises(NotReady, match="no answer from NATS; try again"):
        asyncio.run(lead())


def test_a_log_that_does_not_take_a_term_holds_up_no_led_model():
    """It is waited for beside the writer, which is not asked before the term has begun."""
    storage = MemoryStorage().storage
    with storage.catalogue.creating("m", ModelSpec().plain(), "first"):
        pass

    def append_epoch(*_: object) -> None:
        raise StorageFailed("the log has not answered")

    storage.journal.append_epoch = append_epoch  # type: ignore[method-assign]
    models: Any = SimpleNamespace(get=lambda _: None)
    never_asked: Any = None

    async def lead() -> None:
        await Leading(storage, models, *[never_asked] * 4).lead("m")

    with pytest.raises(StorageFailed, match="has not answered"):
        asyncio.run(lead())


def test_a_model_whose_follow_waits_for_others_is_led_at_once():
    """Whoever waits for a thread to follow a model must not keep its takeover waiting."""
    stopped, begun = threading.Event(), list[str]()

    def find(name: str) -> CatalogueEntry | None:
        begun.append(name)
        if name.startswith("slow"):
            assert stopped.wait(60)
        return None

    storage: Any = SimpleNamespace(catalogue=SimpleNamespace(find=find))
    models: Any = SimpleNamespace(get=lambda _: None, forget_released=lambda _: None)
    unused: Any = None

    async def lead() -> None:
        leading = Leading(storage, models, *[unused] * 4)
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
