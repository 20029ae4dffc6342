"""Three replicas over three NATS servers, and clients of them, for measurements of a fleet."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx
import numpy as np

from tests.service.fleet.conftest import Replica
from tests.service.nats import NatsServers

T = TypeVar("T")

FEATURES = 20
_TRY_AGAIN = 503
_PATIENCE_SECONDS, _PAUSE_SECONDS = 1800.0, 0.01


class Trio:
    """A fleet of three, which flushes each message to disk; no snapshots come by themselves."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.nats = NatsServers(folder / "nats", 3, sync=True)
        settings = {"snapshot_samples": 1 << 30, "models": 1000}
        self.replicas = [Replica(folder / f"r{n}", self.nats, **settings) for n in range(3)]
        self.client = httpx.Client(timeout=60, trust_env=False)

    @property
    def urls(self) -> list[str]:
        """The replicas' addresses."""
        return [replica.url for replica in self.replicas]

    def start(self) -> "Trio":
        """Start all, and wait until they have heard each other."""
        self.nats.start()
        for replica in self.replicas:
            replica.launch()
        for replica in self.replicas:
            replica.wait()
        wait_for(lambda: len(self.reported()) == len(self.replicas))
        return self

    def reported(self) -> dict[str, dict[str, Any]]:
        """Return what the replicas say of themselves, by their addresses, as the first tells it."""
        for replica in self.replicas:
            try:
                replicas = self.client.get(f"{replica.url}/v1/fleet", timeout=1).json()["replicas"]
            except (httpx.TransportError, KeyError):
                continue
            return {replica["url"]: replica for replica in replicas}
        return {}

    def leaders(self) -> dict[str, str]:
        """Return the address of each model's leader."""
        return {name: url for url, replica in self.reported().items() for name in replica["leads"]}

    def is_ready(self, model: str, sequence: int) -> bool:
        """Whether all three live, and one leads a model and another one has followed it so far."""
        replicas = self.reported().values()
        leads = any(model in replica["leads"] for replica in replicas)
        follows = any(replica["follows"].get(model, -1) >= sequence for replica in replicas)
        return leads and follows and len(replicas) == len(self.replicas)

    def make(self, model: str, spec: dict[str, Any]) -> None:
        """Make a model."""
        url = f"{self.replicas[0].url}/v1/models/{model}"
        wait_for(lambda: self.client.put(url, json=spec).is_success)

    def learn(self, urls: Sequence[str], model: str, n: int, seed: int = 0) -> int:
        """The sequence of so many samples that are sent to one address after the other until taken.

        A request that is not answered in time is sent again under its key.
        """
        X, y = samples(n, seed)
        body, key = {"x": X.tolist(), "y": y.tolist()}, f"{model}-{time.monotonic_ns()}"
        for number in range(1 << 20):
            url = f"{urls[number % len(urls)]}/v1/models/{model}/samples"
            try:
                answer = self.client.post(url, json=body, headers={"Idempotency-Key": key})
            except httpx.TransportError:
                continue
            if answer.is_success:
                sequence: int = answer.json()["sequence"]
                return sequence
            if answer.status_code != _TRY_AGAIN:
                answer.raise_for_status()
            time.sleep(_PAUSE_SECONDS)
        raise TimeoutError

    def close(self) -> None:
        """End everything."""
        self.client.close()
        for replica in self.replicas:
            replica.close()
        self.nats.close()


def samples(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of two classes that no line divides, and their labels."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, FEATURES))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def wait_for(look: Callable[[], T]) -> T:
    """Return the first result that is something."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not (result := look()):
        if time.monotonic() > deadline:
            raise TimeoutError("a fleet does not do what is measured")
        time.sleep(_PAUSE_SECONDS)
    return result
