"""The blocking client over servers that misbehave on purpose, and one that is killed."""

import asyncio
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from websockets.exceptions import ConnectionClosedError

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
from tests.service.process import ServerProcess, free_port
from tests.service.specs import PAPERS
from tests.service.streams import two_classes
from wolfstream import AnswerLost, AsyncClient, Client, ClientError, Refused, Unreachable
from wolfstream.service.client import aio_stream, steps, stream


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_FIRST_PAUSE", 0.002)


def test_killed_in_the_middle_it_goes_on_where_it_was(tmp_path: Path):
    """kill -9 twice while a call and a stream learn; what was sent is learned once, in order."""
    samples = two_classes(2000)
    running = ServerProcess(tmp_path / "data").start()
    try:
        with Client(running.url, timeout=20) as client:
            for model in ("called", "streamed"):
                client.create(model, PAPERS | SPEC)
            with Killing(running, client, "called", 400):
                called = client.learn("called", samples.X, samples.y, batch=50)
            with Killing(running, client, "streamed", 400), client.stream("streamed") as stream:
                results = list(
                    stream.learn_each(
                        (samples.X[i : i + 5], samples.y[i : i + 5]) for i in range(0, 2000, 5)
                    )
                )
            assert called.sequence == client.describe("called")["sequence"] == 2000
            assert [r.sequence for r in results] == list(range(5, 2001, 5))
            assert client.describe("streamed")["sequence"] == 2000
            expected = client.predict("called", samples.X[:50]).predictions
            assert np.mean(expected == client.predict("streamed", samples.X[:50]).predictions) > 0.9
    finally:
        running.close()


class Killing:
    """Kills a server once a model has come some way, and starts it again."""

    def __init__(self, running: ServerProcess, client: Client, model: str, at: int) -> None:
        self._thread = threading.Thread(target=self._kill, args=(running, client, model, at))
        self.done = False

    def _kill(self, running: ServerProcess, client: Client, model: str, at: int) -> None:
        while client.describe(model)["sequence"] < at:
            time.sleep(0.005)
        running.kill()
        running.start()
        self.done = True

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: Any) -> None:
        self._thread.join()
        assert self.done


def client_of(model: PretendModel, url: str, retry: float) -> Client:
    """A client of a pretend model over HTTP that waits only for what comes."""
    client = Client(url, retry=retry)
    client._http._http.event_hooks = {"request": [partial(hasten, model)]}
    return client


class TestFaults:
    @few
    @given(scripts)
    def test_each_sample_is_learned_once_in_order(self, faults: list[str]):
        model = PretendModel(faults)
        with faulty_http(model) as url, client_of(model, url, retry=30) as client:
            result = client.learn("m", np.zeros((20, 2)), list(range(20)), batch=6)
        assert model.learned == result.predictions.tolist() == list(range(20))
        assert (result.learned, result.sequence) == (20, 20)

    @few
    @given(stream_scripts)
    def test_each_frame_is_learned_once_in_order(self, faults: list[str]):
        model = PretendModel(faults)
        pairs = [(np.zeros(2), k) for k in range(12)]
        with (
            faulty_stream(model) as url,
            Client(url, timeout=TIMEOUT, retry=5) as client,
            client.stream("m") as stream,
        ):
            results = list(stream.learn_each(pairs))
        assert model.learned == list(range(12))
        assert [int(result.predictions[0]) for result in results] == list(range(12))

    def test_a_server_that_takes_less_gets_less(self):
        model = PretendModel(most=7)
        with faulty_http(model) as url, Client(url, retry=5) as client:
            assert client.learn("m", np.zeros((50, 2)), list(range(50)), batch=40).learned == 50
        assert model.learned == list(range(50))

    @pytest.mark.parametrize("fault", FAULTS)
    def test_it_gives_up_in_time_and_says_how_far_it_came(self, fault: str):
        model = PretendModel(["", "", *[fault] * 1000])
        with (
            faulty_http(model) as url,
            client_of(model, url, retry=0.5) as client,
            pytest.raises((AnswerLost, Refused), match="; 12 samples were acknowledged") as caught,
        ):
            client.learn("m", np.zeros((20, 2)), list(range(20)), batch=6, idempotency_key="k")
        assert (caught.value.acknowledged, caught.value.idempotency_key) == (12, "k")
        model.faults.clear()
        with faulty_http(model) as url, Client(url, retry=5) as client:
            again = client.learn("m", np.zeros((20, 2)), range(20), batch=6, idempotency_key="k")
        assert again.replayed
        assert model.learned == list(range(20))

    def test_a_stream_that_gave_up_can_go_on(self):
        model = PretendModel(["", "", *["drop after"] * 3, *["drop before"] * 1000])
        with (
            faulty_stream(model) as url,
            Client(url, timeout=TIMEOUT, retry=0.3) as client,
            client.stream("m") as stream,
        ):
            with pytest.raises((AnswerLost, Unreachable), match="2 samples were acknowledged"):
                list(stream.learn_each((np.zeros(2), k) for k in range(4)))
            model.faults.clear()
            sent = 2 + stream.unanswered
            assert [result.sequence for result in stream] == list(range(3, sent + 1))
        assert model.learned == list(range(sent))

    def test_nobody_there(self):
        start = time.monotonic()
        url = f"http://127.0.0.1:{free_port()}"
        with Client(url, retry=0.2) as client:
            with pytest.raises(Unreachable, match="is the server running"):
                client.models()
            with pytest.raises(Unreachable), client.stream("m"):
                pass
        assert time.monotonic() - start < 10

    def test_a_server_that_ends_while_a_stream_opens(self, monkeypatch: pytest.MonkeyPatch):
        def ends(*_: object, **__: object) -> None:
            raise ConnectionClosedError(None, None)

        monkeypatch.setattr(stream, "connect", ends)
        monkeypatch.setattr(aio_stream, "connect", ends)
        url = f"http://127.0.0.1:{free_port()}"
        with (
            Client(url, retry=0) as client,
            pytest.raises(Unreachable),
            client.stream("m"),
        ):
            pass

        async def opened() -> None:
            async with AsyncClient(url, retry=0) as client, client.stream("m"):
                pass

        with pytest.raises(Unreachable):
            asyncio.run(opened())

    def test_not_a_url(self):
        with pytest.raises(ClientError, match="not the URL"):
            Client("127.0.0.1:8000")
