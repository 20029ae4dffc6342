"""What a worker says of a model that its leader does not announce any more."""

import asyncio
from typing import Any

import pytest

from wolfstream.service.boot_clock import boot_seconds
from wolfstream.service.cluster.calls import Calls
from wolfstream.service.cluster.channel import FrameKind, LeaderState
from wolfstream.service.cluster.follower_engine import FollowerEngine
from wolfstream.service.cluster.versions import Versions
from wolfstream.service.errors import AnotherState, NotLeader, NotReady, Refusal, UnknownModel
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView
from wolfstream.service.model.revision import Revision
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


class OneView(Calls):
    """Calls to a leader that sends one view, and may hand the model over then."""

    def __init__(self, epoch: str, *, hands_over: bool) -> None:
        self._versions = Versions()
        view = Model(1, "m", ModelSpec()).published._replace(epoch=epoch, sequence=7)
        self._versions.record(view)
        self._hands_over, self._sent = hands_over, False

    async def answer(self, kind: FrameKind, *_: object) -> Any:
        if kind is FrameKind.REACHED:
            await asyncio.sleep(0.01)
            return [None, None, self._versions.latest]
        if self._sent:
            await asyncio.sleep(0.001)
            if not self._hands_over:
                await asyncio.Event().wait()
            raise NotLeader("another replica leads the model")
        self._sent = True
        return self._versions.newer(None)


def seen(awaited: Revision, *, hands_over: bool = False) -> ModelView:
    """Return the view with which a worker answers a request that awaits a revision."""

    async def ask() -> ModelView:
        engine = await engine_with_a_model(**FLEET)
        engine.take([FrameKind.HEARD, boot_seconds()])
        engine._calls = engine._views._calls = OneView("life.6", hands_over=hands_over)
        model = engine.model("m")
        async with asyncio.timeout(30):  # without the compiled code, which may take longer to load
            await engine._views.subscribe(model)
            await engine._reach(model, awaited)
        return model.published

    return asyncio.run(ask())


def test_later_term_has_what_an_earlier_one_has_acknowledged():
    assert seen(Revision("life.5", 7)).sequence == 7


def test_another_life_is_refused():
    with pytest.raises(AnotherState):
        seen(Revision("other.5", 7))


def test_request_during_handover_goes_to_leader():
    with pytest.raises(NotLeader):
        seen(Revision("life.6", None), hands_over=True)


def test_request_keeps_its_view_during_handover():
    """An empty one is that of a model that has learned nothing."""

    async def ask() -> None:
        engine = await engine_with_a_model(**FLEET)
        engine.take([FrameKind.HEARD, boot_seconds()])
        engine._calls = engine._views._calls = OneView("life.6", hands_over=True)
        model = engine.model("m")
        async with asyncio.timeout(30):
            await engine._views.subscribe(model)
            while engine._views.holds(model):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        assert model.published.sequence == 7

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
            engine.take([FrameKind.HEARD, boot_seconds() - age])
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
