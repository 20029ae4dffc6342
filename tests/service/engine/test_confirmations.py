"""A leader asks the log whether it leads a model before its predictions are too old."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.service.specs import PAPERS
from wolfstream.service.boot_clock import boot_seconds
from wolfstream.service.engine import confirmations as module
from wolfstream.service.engine.confirmations import Confirmations
from wolfstream.service.errors import NotLeader, NotReady, StorageFailed
from wolfstream.service.model.live import Model
from wolfstream.service.spec.model import ModelSpec

MAX_LAG_SECONDS = 8.0


class Logs:
    """Logs of models that answer as a test says. asked: the models that were asked for."""

    def __init__(self) -> None:
        self.model = Model(1, "m", ModelSpec.model_validate(PAPERS))
        self.terms = {self.model: SimpleNamespace(confirmed=boot_seconds())}
        self.asked = list[str]()
        self.answer: Exception | None = None
        self.answers = asyncio.Event()
        self.answers.set()
        models: Any = self
        self.confirmations = Confirmations(models, self.confirm, MAX_LAG_SECONDS)

    def term(self, model: Model) -> SimpleNamespace:
        if not model.led:
            raise model.absence()
        return self.terms[model]

    async def confirm(self, name: str) -> None:
        self.asked.append(name)
        await self.answers.wait()
        if self.answer is not None:
            raise self.answer
        for model, term in self.terms.items():
            if model.name == name:
                term.confirmed = boot_seconds()

    def age(self, seconds: float) -> None:
        """Let the model's log have answered so long ago."""
        self.terms[self.model].confirmed = boot_seconds() - seconds


def run(work: Callable[[Logs], Awaitable[None]]) -> None:
    async def live() -> None:
        async with asyncio.timeout(30):
            await work(Logs())

    asyncio.run(live())


def test_recent_confirmation_is_not_renewed():
    async def work(logs: Logs) -> None:
        logs.age(MAX_LAG_SECONDS / 8)
        await logs.confirmations.check(logs.model)
        await asyncio.sleep(0)
        assert logs.asked == []

    run(work)


def test_confirmation_is_renewed_before_it_is_too_old():
    """Predictions do not wait for that, and it is done once at a time."""

    async def work(logs: Logs) -> None:
        logs.age(MAX_LAG_SECONDS / 2)
        logs.answers.clear()
        for _ in range(3):
            await logs.confirmations.check(logs.model)
            await asyncio.sleep(0)
        assert logs.asked == ["m"]
        logs.answers.set()
        await asyncio.sleep(0.01)
        assert logs.confirmations.lag_seconds(logs.model) < 1.0

    run(work)


def test_old_confirmation_is_waited_for():
    async def work(logs: Logs) -> None:
        logs.age(2 * MAX_LAG_SECONDS)
        await asyncio.gather(*(logs.confirmations.check(logs.model) for _ in range(3)))
        assert logs.asked == ["m"]

    run(work)


def test_replaced_leader_predicts_no_more():
    async def work(logs: Logs) -> None:
        logs.age(2 * MAX_LAG_SECONDS)
        logs.answer = NotLeader("another replica writes the log")
        with pytest.raises(NotLeader):
            await logs.confirmations.check(logs.model)
        logs.model.led = False
        with pytest.raises(NotLeader):
            await logs.confirmations.check(logs.model)

    run(work)


@pytest.mark.parametrize("is_silent", [True, False])
def test_log_that_does_not_answer_refuses_predictions(
    monkeypatch: pytest.MonkeyPatch, is_silent: bool
):
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0.05)

    async def work(logs: Logs) -> None:
        logs.age(2 * MAX_LAG_SECONDS)
        logs.answer = StorageFailed("no answer from NATS")
        if is_silent:
            logs.answers.clear()
        began = time.monotonic()
        with pytest.raises(NotReady, match="another replica may lead model 'm' by now"):
            await logs.confirmations.check(logs.model)
        assert time.monotonic() - began >= 0.05  # a log is not asked again and again at once

    run(work)


def test_challenger_is_confirmed_with_its_champion():
    async def work(logs: Logs) -> None:
        challenger = Model(2, "c", ModelSpec.model_validate(PAPERS))
        challenger.champion = logs.model
        logs.terms[challenger] = SimpleNamespace(confirmed=boot_seconds())
        logs.age(2 * MAX_LAG_SECONDS)
        await logs.confirmations.check(challenger)
        assert logs.asked == ["m"]

    run(work)
