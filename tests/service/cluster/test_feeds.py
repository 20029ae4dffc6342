"""Whoever waits for a newer view of a model is told why there will be none."""

import asyncio

import pytest

from tests.service.specs import PAPERS
from wolfstream.service.cluster.feeds import Feeds
from wolfstream.service.errors import NotLeader, Refusal, UnknownModel
from wolfstream.service.model.live import Model
from wolfstream.service.spec.model import ModelSpec


@pytest.mark.parametrize(("led", "expected"), [(True, UnknownModel), (False, NotLeader)])
def test_model_that_is_gone_was_deleted_or_handed_over(led: bool, expected: type[Refusal]):
    async def work() -> None:
        model = Model(1, "m", ModelSpec.model_validate(PAPERS))
        feeds, present = Feeds(), [model]
        running = asyncio.create_task(feeds.run(lambda: present))
        async with asyncio.timeout(30):
            newer = feeds.newer(model, await feeds.current_version(model))
            model.led = led
            present.clear()
            with pytest.raises(expected):
                await newer
        running.cancel()

    asyncio.run(work())
