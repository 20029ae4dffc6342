"""The client for asyncio: the same calls as the blocking one, and what only tasks can do to it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given

from tests.service.client.test_sync import SPEC
from tests.service.faults import (
    FAULTS,
    TIMEOUT,
    PretendModel,
    faulty_http,
    faulty_stream,
    few,
    hasten,
    scripts,
    stream_scripts,
)
from tests.service.process import ServerProcess
from tests.service.streams import two_classes
from wolfstream import (
    AsyncClient,
    Client,
    ClientError,
    Learned,
    Predictions,
    Refused,
)
from wolfstream.service.client import steps


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_FIRST_PAUSE", 0.002)


def done(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 60))


def test_it_has_the_methods_of_the_blocking_client() -> None:
    def public(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert public(AsyncClient) == public(Client)


class TestRealServer:
    def test_life_of_a_model(self, server: ServerProcess, name: str):
        samples = two_classes(200)

        async def live() -> None:
            async with AsyncClient(server.url) as client:
                await client.create(name, SPEC)
                learned = await client.learn(name, samples.X, samples.y, batch=64)
                said = await client.predict(name, samples.X, min_sequence=200)
                assert (learned.sequence, said.predictions.shape) == (200, (200,))
                assert (await client.describe(name))["sequence"] == 200
                assert name in [model["model"] for model in await client.models()]
                with pytest.raises(Refused, match="409"):
                    await client.refit(name)
                await client.delete(name)
                with pytest.raises(Refused, match="404"):
                    await client.describe(name)

        done(live())

    def test_a_stream_gives_results_in_the_order_of_sending(self, server: ServerProcess, name: str):
        samples = two_classes(400)

        async def pairs() -> AsyncIterator[tuple[Any, Any]]:
            for pair in zip(samples.X, samples.y, strict=True):
                yield pair

        async def live() -> list[Any]:
            async with AsyncClient(server.url) as client:
                await client.create(name, SPEC)
                async with client.stream(name) as stream:
                    results = [result async for result in stream.learn_each(pairs())]
                    await stream.predict(samples.X[:5])
                    return [*results, *[result async for result in stream]]

        *learned, said = done(live())
        assert [result.sequence for result in learned] == list(range(1, 401))
        assert [type(learned[0]), type(said)] == [Learned, Predictions]
        assert said.decisions.shape == (5,)

    def test_tasks_share_a_client_and_a_stream(self, server: ServerProcess, name: str):
        samples = two_classes(40)

        async def live() -> tuple[int, list[int]]:
            async with AsyncClient(server.url) as client:
                await client.create(name, SPEC)
                calls = [client.learn(name, x, y) for x, y in zip(*samples[:2], strict=True)]
                await asyncio.gather(*calls)
                async with client.stream(name) as stream:
                    sending = [stream.learn(x, y) for x, y in zip(*samples[:2], strict=True)]
                    tickets = await asyncio.gather(*sending)
                    return (await client.describe(name))["sequence"], tickets

        sequence, tickets = done(live())
        assert sequence >= 40
        assert tickets == list(range(1, 41))
        with Client(server.url) as client:
            assert client.describe(name)["sequence"] == 80


def client_of(model: PretendModel, url: str, retry: float) -> AsyncClient:
    """A client of a pretend model over HTTP that waits only for what comes."""

    async def hook(request: httpx.Request) -> None:
        hasten(model, request)

    client = AsyncClient(url, retry=retry)
    client._http._http.event_hooks = {"request": [hook]}
    return client


class TestFaults:
    @few
    @given(scripts)
    def test_each_sample_is_learned_once_in_order(self, faults: list[str]):
        model = PretendModel(faults)

        async def learn(url: str) -> Learned:
            async with client_of(model, url, retry=30) as client:
                return await client.learn("m", np.zeros((20, 2)), list(range(20)), batch=6)

        with faulty_http(model) as url:
            result = done(learn(url))
        assert model.learned == result.predictions.tolist() == list(range(20))

    @few
    @given(stream_scripts)
    def test_each_frame_is_learned_once_in_order(self, faults: list[str]):
        model = PretendModel(faults)
        pairs = [(np.zeros(2), k) for k in range(12)]

        async def learn(url: str) -> list[Any]:
            async with (
                AsyncClient(url, timeout=TIMEOUT, retry=5) as client,
                client.stream("m") as stream,
            ):
                return [result async for result in stream.learn_each(pairs)]

        with faulty_stream(model) as url:
            results = done(learn(url))
        assert model.learned == list(range(12))
        assert [int(result.predictions[0]) for result in results] == list(range(12))

    @pytest.mark.parametrize("fault", FAULTS)
    def test_it_gives_up_in_time_and_says_how_far_it_came(self, fault: str):
        async def learn(url: str) -> None:
            async with client_of(model, url, retry=0.2) as client:
                await client.learn("m", np.zeros((20, 2)), list(range(20)), batch=6)

        model = PretendModel(["", "", *[fault] * 1000])
        with faulty_http(model) as url, pytest.raises(ClientError) as caught:
            done(learn(url))
        assert caught.value.acknowledged == 12

    def test_a_call_that_is_cancelled_leaves_the_stream_whole(self):
        model = PretendModel(["", "late", "late"])

        async def learn(url: str) -> list[Any]:
            async with AsyncClient(url, timeout=5) as client, client.stream("m") as stream:
                for k in range(4):
                    await stream.learn(np.zeros(2), k)
                await stream.receive()
                for _ in range(3):
                    with pytest.raises(TimeoutError):
                        await asyncio.wait_for(stream.receive(), 0.05)
                return [result async for result in stream]

        with faulty_stream(model) as url:
            results = done(learn(url))
        assert [result.sequence for result in results] == [2, 3, 4]
        assert model.learned == list(range(4))
