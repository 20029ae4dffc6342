"""What a worker says of a model that its leader does not announce any more."""

import asyncio
import time

import pytest

from wolfstream.service.cluster.calls import Calls
from wolfstream.service.cluster.channel import FrameKind, LeaderState
from wolfstream.service.cluster.follower_engine import FollowerEngine
from wolfstream.service.errors import NotLeader, NotReady, Refusal, UnknownModel
from wolfstream.service.settings import Settings
from wolfstream.service.spec.model import ModelSpec

FLEET = {"fleet": "nats://nowhere:4222", "advertise": "http://here:8000"}


class Silent(Calls):
    """Calls that are never answered."""

    async def answer(self, _: FrameKind, *given: object) -> None:
        del given
        await asyncio.Event().wait()


async def engine_with_a_model(**settings: str) -> FollowerEngine:
    engine = FollowerEngine(Settings(**settings))  # type: ignore[arg-type]
    engine.take(
        [FrameKind.STATE, *LeaderState("ready", readable=True, accepting=True, compiled=True)]
    )
    engine.take([FrameKind.MODELS, [[1, "m", ModelSpec().plain()]], []])
    return engine


# In a fleet it may live on, led by another replica, which a client must not take for its deletion.
@pytest.mark.parametrize(("settings", "expected"), [({}, UnknownModel), (FLEET, NotLeader)])
def test_a_call_that_was_on_its_way(settings: dict[str, str], expected: type[Refusal]):
    async def ask() -> None:
        engine = await engine_with_a_model(**settings)
        assert engine.is_model("m")
        engine.take([FrameKind.MODELS, [], [1]])
        engine.model("m")

    with pytest.raises(expected):
        asyncio.run(ask())


@pytest.mark.parametrize(("settings", "expected"), [({}, UnknownModel), (FLEET, NotLeader)])
def test_a_prediction_that_waits_for_its_view(settings: dict[str, str], expected: type[Refusal]):
    async def ask() -> None:
        engine = await engine_with_a_model(**settings)
        engine._views._calls = Silent()
        waiting = asyncio.ensure_future(engine.view(engine.model("m"), "adaptive", None))
        await asyncio.sleep(0)
        engine.take([FrameKind.MODELS, [], [1]])
        async with asyncio.timeout(30):
            await waiting

    with pytest.raises(expected):
        asyncio.run(ask())


class TestFleetThatWasNotHeard:
    """Another replica may lead the model by then, and have learned more."""

    def test_refuses_predictions_where_the_leading_process_is_stopped(self):
        self.check_refused({"max_lag_seconds": "0"}, 0.0)

    def test_refuses_predictions_where_that_process_hears_nothing(self):
        self.check_refused({"max_lag_seconds": "60"}, 61.0)

    def check_refused(self, settings: dict[str, str], age: float) -> None:
        async def ask() -> None:
            engine = await engine_with_a_model(**FLEET, **settings)
            engine.take([FrameKind.HEARD, time.monotonic() - age])
            if not age:
                model = engine.model("m")
                await asyncio.sleep(1.1)
            with pytest.raises(NotReady, match="has not heard of its fleet for"):
                engine.model("m")
            if not age:
                with pytest.raises(NotReady):
                    await engine.view(model, "adaptive", None)

        asyncio.run(ask())

    def test_matters_to_no_single_server(self):
        async def ask() -> None:
            engine = await engine_with_a_model(max_lag_seconds="0.01")
            await asyncio.sleep(0.05)
            assert engine.model("m").name == "m"

        asyncio.run(ask())
