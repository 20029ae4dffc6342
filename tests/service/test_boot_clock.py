"""What was known before a machine was suspended is old once it has resumed."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.service.specs import PAPERS
from tests.service.suspending import suspend
from wolfstream.service.boot_clock import boot_seconds
from wolfstream.service.cluster.quorum import Quorum
from wolfstream.service.engine.confirmations import Confirmations
from wolfstream.service.model.live import Model
from wolfstream.service.spec.model import ModelSpec


def test_majority_of_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    nats: Any = None
    quorum = Quorum(nats, 5.0)
    suspend(monkeypatch, 100.0)
    assert boot_seconds() - quorum.confirmed >= 100.0
    quorum._confirm(boot_seconds())
    # Announcements may have been missed, so others are to be heard again before models are taken.
    assert boot_seconds() - quorum.unbroken_since < 50.0


def test_confirmation_that_a_log_has_no_later_term(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> None:
        model = Model(1, "m", ModelSpec.model_validate(PAPERS))
        term = SimpleNamespace(confirmed=boot_seconds())
        models: Any = SimpleNamespace(term=lambda _: term)
        asked = list[str]()

        async def confirm(name: str) -> None:
            asked.append(name)
            term.confirmed = boot_seconds()

        confirmations = Confirmations(models, confirm, 10.0)
        await confirmations.check(model)
        assert not asked
        suspend(monkeypatch, 100.0)
        await confirmations.check(model)
        assert asked == ["m"]

    asyncio.run(ask())
