"""Three replicas of a fleet, and the calls that tests make to them."""

import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

if TYPE_CHECKING:
    from tests.service.fleet.conftest import Replica

Result = TypeVar("Result")
X = [[i % 7, i % 5] for i in range(40)]
Y = [i % 2 for i in range(40)]


def wait_for_places(clients: Sequence[httpx.Client]) -> None:
    """Wait until each of some replicas knows that all of them take models.

    Until then a replica may lead a model for which another replica ranks first, and hand the model
    over when it hears of that replica.
    """
    for client in clients:
        wait_for(partial(_all_take_models, client, len(clients)))


def _all_take_models(client: httpx.Client, replicas: int) -> bool:
    rows = client.get("/v1/fleet").json()["replicas"]
    return sum(bool(row["ready"]) for row in rows) == replicas


class Trio:
    """Three replicas, and a client of each."""

    def __init__(self, replicas: "list[Replica]") -> None:
        self.replicas = replicas
        self.clients = [httpx.Client(base_url=replica.url, timeout=30) for replica in replicas]

    def fleet(self) -> dict[str, dict[str, Any]]:
        """Return the row of each replica in the fleet's list, by the replica's address."""
        running = [number for number, replica in enumerate(self.replicas) if runs(replica)]
        rows = self.clients[running[0]].get("/v1/fleet").json()["replicas"]
        return {row["url"]: row for row in rows}

    def leader(self, name: str) -> int:
        """Return the number of the replica that leads a model, once the others have heard so."""
        urls = [replica.url for replica in self.replicas]
        return wait_for(
            lambda: [urls.index(url) for url, row in self.fleet().items() if name in row["leads"]]
        )[0]

    def standby(self, name: str, sequence: int) -> int:
        """Return the number of the replica that follows a model, once it has reached a sequence."""
        urls = [replica.url for replica in self.replicas]

        def standbys() -> list[int]:
            rows = self.fleet().items()
            return [urls.index(url) for url, row in rows if row["follows"].get(name) == sequence]

        return wait_for(standbys)[0]

    def following(self, name: str, sequence: int) -> list[int]:
        """Return the replicas that do not lead a model, once each has its view of a sequence."""
        others = [number for number in range(3) if number != self.leader(name)]

        def has_view(number: int) -> bool:
            predict(self.clients[number], name)
            views = self.clients[number].get("/v1/fleet").json()["views"]
            return name in views and bool(views[name]["sequence"] == sequence)

        wait_for(lambda: all(has_view(number) for number in others))
        return others


def runs(replica: "Replica") -> bool:
    return replica.process is not None and replica.process.poll() is None


def wait_for(look: Callable[[], Result | None]) -> Result:
    """Return the first result of a function that is true, within a minute."""
    deadline = time.monotonic() + 60
    while not (result := look()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return result


def call(client: httpx.Client, method: str, path: str, **request: Any) -> httpx.Response:
    """Make a call again while its status is 503, as on a busy machine, and return its response.

    A call that must not be done twice needs an Idempotency-Key in `headers`.
    """

    def attempt() -> httpx.Response | None:
        response = client.request(method, path, **request)
        return None if response.status_code == 503 else response

    response: httpx.Response = wait_for(attempt)
    assert response.is_success, response.text
    return response


def learn(client: httpx.Client, name: str, n: int = 40, key: str | None = None) -> Any:
    """Return the response to samples that are learned once."""
    headers = {"Idempotency-Key": key or uuid.uuid4().hex}
    path, body = f"/v1/models/{name}/samples", {"x": X[:n], "y": Y[:n]}
    return call(client, "POST", path, json=body, headers=headers).json()


def predict(client: httpx.Client, name: str, **query: str) -> Any:
    """Return the response to the rows of `X`."""
    path = f"/v1/models/{name}/predict"
    return call(client, "POST", path, json={"x": X}, params=query).json()
