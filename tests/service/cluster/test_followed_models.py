"""What a replica predicts with: the views of models that another one leads."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import numpy as np
import pytest

from tests.service.specs import PAPERS
from tests.service.suspending import suspend
from wolfstream.service.cluster import peers as peers_module
from wolfstream.service.cluster.feeds import Feeds
from wolfstream.service.cluster.followed_models import FollowedModels
from wolfstream.service.cluster.followed_views import FollowedView
from wolfstream.service.cluster.peers import PeerFailed, Peers
from wolfstream.service.cluster.served_views import ServedViews
from wolfstream.service.cluster.versions import Versions
from wolfstream.service.cluster.view_messages import SEAL, NewerView, read_request, seal_request
from wolfstream.service.errors import (
    NotLeader,
    NotReached,
    StartupError,
    Unauthenticated,
    UnknownModel,
)
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.revision import Revision
from wolfstream.service.samples.validation import read_samples
from wolfstream.service.settings import Settings
from wolfstream.service.spec.model import ModelSpec

SECRET = "a secret"
ROWS = np.arange(20.0).reshape(10, 2)


class Leader:
    """A replica that leads one model; what asks it has the part of `Roles` that both of them use.

    writing: the task that writes its views for those who follow them.
    """

    writing: "asyncio.Task[None]"

    url, secret, lag_seconds = "http://leader", SECRET, 0.0
    confirmations: Any = None

    def __init__(self) -> None:
        self.feeds = Feeds()
        self.served = ServedViews(self, self.feeds, self, SECRET)  # type: ignore[arg-type]
        self.learner = Learner(Model(7, "m", ModelSpec.model_validate(PAPERS)), "life.1")
        self.models = {"m": self.learner.model}
        self.answering = True
        self.elsewhere = self.takes_over = False

    def learn(self) -> None:
        samples = read_samples({"x": ROWS.tolist(), "y": [0, 1] * 5}, "classification")
        self.learner.absorb(self.learner.model.head_of["samples"], samples)
        self.learner.publish()
        self.feeds.changed([self.learner.model])

    # As an engine.
    def model(self, name: str) -> Model:
        if self.elsewhere:
            raise NotLeader("another one leads it")
        if name not in self.models:
            raise UnknownModel("there is none")
        return self.models[name]

    # As the leader.
    def leads(self, _: str) -> bool:
        return not self.takes_over

    def responsible(self, _: str) -> "Leader":
        return self

    def is_here(self, _: object) -> bool:
        return True

    async def lead(self, _: str) -> bool:
        await asyncio.Event().wait()
        return False

    # As a server.
    async def respond(self, request: httpx.Request) -> httpx.Response:
        if not self.answering:
            raise httpx.ConnectError("nobody is there")
        told, seal = await self.served.answer(request.content, request.headers[SEAL])
        if not self.answering:
            raise httpx.ReadError("it has left")
        return response(told, seal)


def response(told: bytes, seal: str) -> httpx.Response:
    """The response with an answer, as it comes from a network."""

    async def pieces() -> AsyncIterator[bytes]:
        yield told

    return httpx.Response(200, content=pieces(), headers={SEAL: seal})


class Elsewhere:
    """Roles of a replica that leads nothing."""

    lag_seconds = 0.0

    def __init__(self, leader: Leader) -> None:
        self._leader = leader

    def leads(self, _: str) -> bool:
        return False

    def responsible(self, _: str) -> Leader:
        return self._leader

    def is_here(self, _: object) -> bool:
        return False

    def suspect(self, _: object) -> None:
        pass


def peers_of(respond: Any) -> Peers:
    """What asks replicas of which a function answers."""
    return Peers("/views", httpx.AsyncClient(transport=httpx.MockTransport(respond)))


class Engine:
    """The engine of a replica on which everything is compiled."""

    async def compiled(self, *_: object) -> None:
        pass


@asynccontextmanager
async def following(**settings: Any) -> AsyncIterator[tuple[Leader, FollowedModels]]:
    """A leader that has learned, and a replica that holds its view."""
    leader = Leader()
    leader.learn()
    followed = FollowedModels(
        Engine(),  # type: ignore[arg-type]
        Elsewhere(leader),  # type: ignore[arg-type]
        Settings(_env_file=None, **{"max_lag_seconds": 3600.0} | settings),  # type: ignore[arg-type]
        peers_of(leader.respond),
    )
    leader.writing = asyncio.create_task(leader.feeds.run(lambda: leader.models.values()))
    running = [leader.writing, asyncio.create_task(followed.views.run())]
    try:
        yield leader, followed
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def until(look: Callable[[], Any]) -> None:
    """Wait until something is true."""
    async with asyncio.timeout(20):
        while not look():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def model_of(followed: FollowedModels) -> Model:
    """The model, once its view is held."""
    await until(lambda: followed.views.use("m") is not None)
    return followed.model("m")


def run(work: Callable[[], Awaitable[None]]) -> None:
    """Run a test to its end."""
    asyncio.run(work())  # type: ignore[arg-type]


def test_a_view_predicts_what_the_leader_does():
    async def work() -> None:
        async with following() as (leader, followed):
            assert not followed.predicts("m")  # but it is followed from now on
            model = await model_of(followed)
            assert followed.predicts("m")
            for _ in range(3):
                leader.learn()
                sequence = leader.learner.sequence
                view = await followed.view(model, "working_set", ROWS, Revision(None, sequence))
                assert view.sequence == sequence
                of_leader = leader.learner.model.published
                decisions = [
                    one.predict("working_set", one.head_rows(ROWS)).decision
                    for one in (view, of_leader)
                ]
                assert decisions[0] == decisions[1]

    run(work)


def test_earlier_term_met_other_lineage_to_leader():
    async def work() -> None:
        async with following() as (_, followed):
            model = await model_of(followed)
            view = await followed.view(model, "working_set", ROWS, Revision("life", 10))
            assert view.epoch == "life.1"
            for epoch in ("life.2", "another"):
                with pytest.raises(NotLeader):
                    await followed.view(model, "working_set", ROWS, Revision(epoch, 10))

    run(work)


def test_what_never_comes_is_not_waited_for_without_end():
    async def work() -> None:
        async with following(wait_seconds=0.01) as (_, followed):
            model = await model_of(followed)
            with pytest.raises(NotReached):
                await followed.view(model, "working_set", ROWS, Revision(None, 11))

    run(work)


def test_predictions_go_on_without_a_leader():
    async def work() -> None:
        async with following() as (leader, followed):
            model = await model_of(followed)
            leader.answering = False
            lag = followed.views.lag_seconds("m")
            await until(lambda: followed.views.lag_seconds("m") > lag + 0.1)
            assert followed.predicts("m")
            view = await followed.view(model, "working_set", ROWS)
            assert view.sequence == 10
            leader.answering = True
            leader.learn()
            await followed.view(model, "working_set", ROWS, Revision(None, 20))

    run(work)


def test_a_view_may_be_too_old():
    async def work() -> None:
        async with following(max_lag_seconds=0.0) as (leader, followed):
            await model_of(followed)
            leader.answering = False
            await until(lambda: followed.is_stale("m"))
            assert not followed.predicts("m")

    run(work)


def test_a_view_may_be_as_old_as_its_caller_allows():
    async def work() -> None:
        async with following(max_lag_seconds=0.0) as (leader, followed):
            model = await model_of(followed)
            leader.answering = False
            await until(lambda: followed.is_stale("m"))
            allowing = followed.allowing(3600.0)
            assert allowing.predicts("m")
            assert (await allowing.view(model, "working_set", ROWS)).sequence == 10
            assert not followed.predicts("m")
            # No caller has to name the bound that holds in any case.
            assert not followed.allowing(0.0).predicts("m")

    run(work)


def test_view_age_includes_time_while_the_machine_is_suspended(monkeypatch: pytest.MonkeyPatch):
    """The first requests after it has resumed are not answered with what it knew before."""

    async def work() -> None:
        async with following(max_lag_seconds=60.0) as (_, followed):
            await model_of(followed)
            assert followed.predicts("m")
            suspend(monkeypatch, 3600.0)
            assert not followed.predicts("m")
            await until(lambda: followed.predicts("m"))  # once the leader has confirmed it

    run(work)


def test_view_age_includes_leaders_lag():
    async def work() -> None:
        async with following() as (leader, followed):
            leader.lag_seconds = 7200.0
            await model_of(followed)
            await until(lambda: followed.views.lag_seconds("m") >= 7200.0)
            assert not followed.predicts("m")

    run(work)


def test_former_leader_gives_no_age():
    async def work() -> None:
        async with following() as (leader, followed):
            await model_of(followed)
            leader.elsewhere = True
            lag = followed.views.lag_seconds("m")
            await until(lambda: followed.views.lag_seconds("m") > lag + 0.2)
            assert followed.predicts("m")

    run(work)


async def confirmed_no_more(followed: FollowedModels) -> None:
    """Wait until the view of the model grows older, whatever is asked."""
    await asyncio.sleep(0)
    lag = followed.views.lag_seconds("m")
    await until(lambda: followed.views.lag_seconds("m") > lag + 1.2)


def test_successor_that_takes_over_confirms_no_view():
    """It does not know what the last leader acknowledged before it has read the log."""

    async def work() -> None:
        async with following() as (leader, followed):
            await model_of(followed)
            leader.takes_over = True
            await confirmed_no_more(followed)
            leader.takes_over = False
            leader.learn()
            await followed.view(followed.model("m"), "working_set", ROWS, Revision(None, 20))

    run(work)


class OldConfirmations:
    """Confirmations of a leader whose logs have answered some time ago."""

    followed_lag_seconds = 5.0

    def __init__(self, lag: float) -> None:
        self.lag = lag

    def lag_seconds(self, _: Model) -> float:
        return self.lag

    async def check(self, *_: object) -> None:
        pass


def test_view_age_follows_its_log():
    async def work() -> None:
        async with following() as (leader, followed):
            leader.confirmations = OldConfirmations(4.0)
            await model_of(followed)
            assert followed.views.lag_seconds("m") >= 4.0
            leader.confirmations.lag = 6.0
            await confirmed_no_more(followed)
            leader.confirmations.lag = 0.0
            await until(lambda: followed.views.lag_seconds("m") < 4.0)

    run(work)


def test_unwritten_newer_view_confirms_no_older():
    async def work() -> None:
        async with following() as (leader, followed):
            await model_of(followed)
            leader.writing.cancel()
            leader.learn()
            await confirmed_no_more(followed)

    run(work)


def test_view_outdated_while_waiting_to_leader():
    async def work() -> None:
        async with following(max_lag_seconds=0.3) as (leader, followed):
            model = await model_of(followed)
            leader.answering = False
            await until(lambda: followed.is_stale("m"))
            with pytest.raises(NotLeader):
                await followed.view(model, "working_set", ROWS)

    run(work)


class TestSequences:
    """The sequences of one replica's predictions never go back, whoever makes them."""

    def test_reach_what_the_leader_has_answered_here(self):
        async def work() -> None:
            async with following() as (leader, followed):
                model = await model_of(followed)
                leader.answering = False
                leader.learn()
                followed.views.record_shown("m", '"life.1:20"')
                waiting = asyncio.ensure_future(followed.view(model, "working_set", ROWS))
                await asyncio.sleep(0.1)
                assert not waiting.done()
                leader.answering = True
                assert (await waiting).sequence == 20

        run(work)

    @pytest.mark.parametrize("told", ['"life.2:11"', '"another:3"'])
    def test_are_the_leaders_matter_where_the_view_does_not_get_there(self, told: str):
        async def work() -> None:
            async with following(wait_seconds=0.01) as (_, followed):
                model = await model_of(followed)
                followed.views.record_shown("m", told)
                with pytest.raises(NotLeader):
                    await followed.view(model, "working_set", ROWS)

        run(work)

    def test_do_not_go_back_with_a_leader_that_was_replaced(self):
        async def work() -> None:
            async with following() as (leader, followed):
                model, behind = await model_of(followed), leader.learner.model.published
                leader.learn()
                await followed.view(model, "working_set", ROWS, Revision(None, 20))
                leader.learner.model.published = behind
                await confirmed_no_more(followed)
                assert model.published.sequence == 20

        run(work)


def test_a_model_that_is_made_anew_is_another_one():
    async def work() -> None:
        async with following() as (leader, followed):
            first = await model_of(followed)
            leader.learner = Learner(Model(8, "m", first.spec), "other.1")
            leader.models["m"] = leader.learner.model
            leader.learn()
            await until(lambda: (model := followed.views.use("m")) and model.id == 8)
            assert followed.model("m").published.epoch == "other.1"

    run(work)


def test_a_model_that_is_gone_is_not_followed():
    async def work() -> None:
        async with following() as (leader, followed):
            await model_of(followed)
            del leader.models["m"]
            await until(lambda: not followed.is_model("m"))
            assert not followed.predicts("m")
            with pytest.raises(NotLeader):
                followed.model("m")

    run(work)


def test_a_head_that_cannot_predict_yet_is_the_leaders_matter():
    async def work() -> None:
        async with following() as (leader, followed):
            leader.learner = Learner(leader.learner.model, "life.1")
            leader.learner.publish()
            model = await model_of(followed)
            with pytest.raises(NotLeader):
                await followed.view(model, "working_set", ROWS)
            with pytest.raises(NotLeader):
                followed.check_stores_rows(model)

    run(work)


class TestBytes:
    """Nobody but the replica that was asked is listened to."""

    def test_a_question_needs_the_word(self):
        _, content, seal = seal_request("another secret", {"m": None})
        with pytest.raises(Unauthenticated):
            read_request(SECRET, content, seal)

    @pytest.mark.parametrize("seal", ["", "é", "0" * 64])
    def test_a_question_needs_its_seal(self, seal: str):
        _, content, _ = seal_request(SECRET, {"m": None})
        with pytest.raises(Unauthenticated):
            read_request(SECRET, content, seal)

    def test_an_answer_to_another_question_is_none(self):
        async def work() -> None:
            async with following() as (leader, _):
                _, content, seal = seal_request(SECRET, {"m": None})
                told, sealed = await leader.served.answer(content, seal)

                def again(_: httpx.Request) -> httpx.Response:
                    return response(told, sealed)

                peers = peers_of(again)
                with pytest.raises(PeerFailed, match="not from the replica"):
                    await peers.views(leader, {"m": None})

        run(work)

    def test_an_answer_is_not_read_without_end(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(peers_module, "MAX_BYTES", 100)

        async def work() -> None:
            async with following() as (leader, _):
                peers = peers_of(leader.respond)
                with pytest.raises(PeerFailed, match="100 bytes"):
                    await peers.views(leader, {"m": None})

        run(work)


def test_spec_that_this_replica_cannot_use_is_refused_with_words():
    learner = Learner(Model(7, "m", ModelSpec.model_validate(PAPERS)), "life.1")
    learner.publish()
    versions = Versions()
    versions.record(learner.model.published)
    spec = {**learner.model.spec.plain(), "unheard_of": 1}

    async def take() -> None:
        view = FollowedView("m", 0.0)
        with pytest.raises(StartupError, match="unheard_of"):
            await view.take(NewerView(7, spec, versions.newer(None)))
        assert view.version is None

    asyncio.run(take())
