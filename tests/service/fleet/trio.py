"""Three replicas of a fleet, and what its clients ask them."""

import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

if TYPE_CHECKING:
    from tests.service.fleet.conftest import Replica

Found = TypeVar("Found")
X = [[i % 7, i % 5] for i in range(40)]
Y = [i % 2 for i in range(40)]


def wait_for_places(clients: Sequence[httpx.Client]) -> None:
    """Wait until each of some replicas knows that all of them take models.

    Until then one may lead a model for which another ranks first, and hand it over when it hears
    of that one.
    """
    for client in clients:
        wait_for(partial(_all_take_models, client, len(clients)))


def _all_take_models(client: httpx.Client, replicas: int) -> bool:
    told = client.get("/v1/fleet").json()["replicas"]
    return sum(one["ready"] for one in told) == replicas


class Trio:
    """Three replicas, and a client of each."""

    def __init__(self, replicas: "list[Replica]") -> None:
        self.replicas = replicas
        self.clients = [httpx.Client(base_url=one.url, timeout=30) for one in replicas]

    def fleet(self) -> dict[str, dict[str, Any]]:
        """Return what the replicas say of themselves, by their addresses."""
        living = [number for number, one in enumerate(self.replicas) if runs(one)]
        told = self.clients[living[0]].get("/v1/fleet").json()
        return {replica["url"]: replica for replica in told["replicas"]}

    def leader(self, name: str) -> int:
        """Return the number of the replica that leads a model, once the others have heard so."""
        urls = [one.url for one in self.replicas]
        return wait_for(
            lambda: [urls.index(url) for url, one in self.fleet().items() if name in one["leads"]]
        )[0]

    def standby(self, name: str, sequence: int) -> int:
        """Return the number of the replica that follows a model, once it has reached a sequence."""
        urls = [one.url for one in self.replicas]

        def found() -> list[int]:
            told = self.fleet().items()
            return [urls.index(u) for u, one in told if one["follows"].get(name) == sequence]

        return wait_for(found)[0]

    def following(self, name: str, sequence: int) -> list[int]:
        """Return the replicas that do not lead a model, once they hold its view of a sequence."""
        others = [number for number in range(3) if number != self.leader(name)]

        def held(number: int) -> bool:
            predicted(self.clients[number], name)
            views = self.clients[number].get("/v1/fleet").json()["views"]
            return name in views and bool(views[name]["sequence"] == sequence)

        wait_for(lambda: all(held(number) for number in others))
        return others


def runs(replica: "Replica") -> bool:
    return replica.process is not None and replica.process.poll() is None


def wait_for(look: Callable[[], Found | None]) -> Found:
    """Return the first result that is true."""
    deadline = time.monotonic() + 60
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def asked(client: httpx.Client, method: str, path: str, **request: Any) -> httpx.Response:
    """The answer to a call, which is made again while it is refused for now, as by a busy machine.

    Where it must not be done twice, it has a key.
    """

    def answer() -> httpx.Response | None:
        found = client.request(method, path, **request)
        return None if found.status_code == 503 else found

    found: httpx.Response = wait_for(answer)
    assert found.is_success, found.text
    return found


def learn(client: httpx.Client, name: str, n: int = 40, key: str | None = None) -> Any:
    """Return the answer to samples that are learned once."""
    headers = {"Idempotency-Key": key or uuid.uuid4().hex}
    path, body = f"/v1/models/{name}/samples", {"x": X[:n], "y": Y[:n]}
    return asked(client, "POST", path, json=body, headers=headers).json()


def predicted(client: httpx.Client, name: str, **query: str) -> Any:
    path = f"/v1/models/{name}/predict"
    return asked(client, "POST", path, json={"x": X}, params=query).json()
