"""The compose files, brought up from nothing, and replaced one by one under load."""

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import nats
import pytest

from tests.image.compose import Compose, is_ready

pytestmark = [pytest.mark.image, pytest.mark.timeout(1800)]
REPLICAS, SERVERS = ("replica-a", "replica-b", "replica-c"), ("nats-a", "nats-b", "nats-c")
SOON = 120.0
CLIENTS = 4


@contextmanager
def running(file: str, name: str, maker: str) -> Iterator[Compose]:
    compose = Compose(file, name)
    try:
        compose.up(maker)
        yield compose
    finally:
        compose.close()


@pytest.mark.usefixtures("image")
def test_one_server():
    with running("compose.yaml", "wolfstream-one", "server") as compose:
        model, key = f"{compose.wait('server')}/v1/models/m", {"headers": compose.headers}
        assert httpx.get(model).status_code == 401
        httpx.put(model, json={}, **key).raise_for_status()
        sample = {"x": [[1.0], [2.0]], "y": ["a", "b"]}
        httpx.post(f"{model}/samples", json=sample, **key).raise_for_status()
        compose.replace("server")
        model = f"{compose.wait('server')}/v1/models/m"
        assert httpx.get(model, **key).json()["sequence"] == 2


class Load:
    """Clients that learn and predict without a pause; each failed request is noted."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self.failures = list[str]()
        self.requests = 0
        self._url, self._headers, self._ended = url, headers, threading.Event()
        self._acknowledged = [0] * CLIENTS
        self._threads = [threading.Thread(target=self._use, args=(i,)) for i in range(CLIENTS)]

    def __enter__(self) -> "Load":
        with self._client() as client:
            for i in range(CLIENTS):
                self.check(client.put(f"/v1/models/m{i}", json={}))
                self._learn(client, i, 0)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _client(self) -> httpx.Client:
        return httpx.Client(base_url=self._url, timeout=SOON, headers=self._headers)

    def check(self, response: httpx.Response) -> None:
        self.requests += 1
        if not response.is_success:
            self.failures.append(f"{response.status_code} {response.text[:300]}")

    def check_sequences(self) -> None:
        """What was acknowledged is there, each sample once."""
        with self._client() as client:
            for i, acknowledged in enumerate(self._acknowledged):
                assert client.get(f"/v1/models/m{i}").json()["sequence"] == acknowledged

    def _use(self, i: int) -> None:
        with self._client() as client:
            for number in itertools.count(1):
                if self._ended.is_set():
                    return
                try:
                    self._learn(client, i, number)
                    self.check(client.post(f"/v1/models/m{i}/predict", json={"x": [[0.5, 1.0]]}))
                except httpx.HTTPError as error:
                    self.failures.append(repr(error))

    def _learn(self, client: httpx.Client, i: int, number: int) -> None:
        rows = [[number % 7, 1.0], [number % 5, 0.0]]
        learned = client.post(f"/v1/models/m{i}/samples", json={"x": rows, "y": ["a", "b"]})
        self.check(learned)
        if learned.is_success:
            self._acknowledged[i] += 2


@pytest.mark.usefixtures("image")
def test_fleet_is_replaced_without_a_failed_request():
    with running("compose.fleet.yaml", "wolfstream-fleet-test", "replica-a") as compose:
        for name in REPLICAS:
            compose.wait(name)
        url = compose.wait("balancer")
        with Load(url, compose.headers) as load:
            time.sleep(5.0)
            for name in REPLICAS:
                compose.replace(name)
                compose.wait(name)
                time.sleep(3.0)  # as long as the balancer takes to notice
            replica_failures = list(load.failures)
            for name in SERVERS:
                compose.replace(name)
                asyncio.run(wait_for_copies(compose))
            assert is_ready(url)
        print(f"{load.requests} requests, {len(load.failures)} failed")
        assert replica_failures == []
        assert load.failures == []
        load.check_sequences()


async def wait_for_copies(compose: Compose) -> None:
    """Wait until each server of NATS has all of each stream again."""
    deadline = time.monotonic() + SOON
    while not await have_all(compose):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.5)


async def have_all(compose: Compose) -> bool:
    try:
        client = await nats.connect(
            [f"nats://{compose.address(name)}:4222" for name in SERVERS],
            max_reconnect_attempts=1,
            connect_timeout=2,
        )
    except Exception:  # a server is starting
        return False
    try:
        streams = await client.jetstream(timeout=5).streams_info()
        copies = [stream.cluster for stream in streams]
        return all(
            cluster is not None
            and cluster.leader
            and len(cluster.replicas or ()) == len(SERVERS) - 1
            and all(one.current and not one.offline for one in cluster.replicas or ())
            for cluster in copies
        )
    except Exception:  # no leader is chosen yet
        return False
    finally:
        await client.close()
