"""Feeds of views: who waits for a version gets it, or is told why there will be none."""

import asyncio
import time

import pytest

from tests.service.specs import PAPERS
from wolfstream.service.cluster import feeds
from wolfstream.service.cluster.versions import Versions
from wolfstream.service.errors import NotLeader, Refusal, UnknownModel
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView
from wolfstream.service.spec.model import ModelSpec


def new_model(model_id: int) -> Model:
    model = Model(model_id, f"m{model_id}", ModelSpec.model_validate(PAPERS))
    Learner(model, "first").publish()
    return model


def test_idle_feed_stays_while_its_version_is_awaited(monkeypatch: pytest.MonkeyPatch):
    """The first view takes so long to write that the second one's feed counts as unused."""
    record = Versions.record

    def record_slowly(versions: Versions, published: ModelView) -> bool:
        time.sleep(0.1)
        return record(versions, published)

    monkeypatch.setattr(Versions, "record", record_slowly)
    monkeypatch.setattr(feeds, "_INLINE_BYTES", -1)
    monkeypatch.setattr(feeds, "_IDLE_SECONDS", 0.0)
    monkeypatch.setattr(feeds, "_POLL_SECONDS", 0.001)
    models = [new_model(1), new_model(2)]

    async def run() -> list[int]:
        all_feeds = feeds.Feeds()
        writing = asyncio.create_task(all_feeds.run(lambda: models))
        try:
            versions = [asyncio.create_task(all_feeds.current_version(model)) for model in models]
            return [
                version.number for version in await asyncio.wait_for(asyncio.gather(*versions), 10)
            ]
        finally:
            writing.cancel()

    assert asyncio.run(run()) == [1, 1]


@pytest.mark.parametrize(("led", "expected"), [(True, UnknownModel), (False, NotLeader)])
def test_model_that_is_gone_was_deleted_or_handed_over(led: bool, expected: type[Refusal]):
    async def work() -> None:
        model = Model(1, "m", ModelSpec.model_validate(PAPERS))
        all_feeds, present = feeds.Feeds(), [model]
        running = asyncio.create_task(all_feeds.run(lambda: present))
        async with asyncio.timeout(30):
            newer = all_feeds.newer(model, await all_feeds.current_version(model))
            model.led = led
            present.clear()
            with pytest.raises(expected):
                await newer
        running.cancel()

    asyncio.run(work())
