"""Leading models of a fleet whose storage does not answer."""

import asyncio
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
        catalogue=SimpleNamespace(find=lambda _: entry),
        snapshots=SimpleNamespace(sequences=sequences),
        journal=SimpleNamespace(
            reread=lambda _: None,
            replays=SimpleNamespace(begin=lambda *_: 0, most=2),
            rolled_back_at=lambda _: None,
        ),
    )
    models: Any = SimpleNamespace(get=lambda _: None)
    unused: Any = None

    async def lead() -> None:
        await Leading(storage, models, unused, unused).lead("m")

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
        await Leading(storage, models, never_asked, never_asked).lead("m")

    with pytest.raises(StorageFailed, match="has not answered"):
        asyncio.run(lead())
