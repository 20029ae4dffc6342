"""Replicas with workers: every process of every replica gives the same answers."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from tests.service.fleet.conftest import Replica, look_for_leaders_for_long
from tests.service.fleet.test_replicas import wait_for
from tests.service.nats import NatsServers
from tests.service.specs import PAPERS
from wolfstream.service.access.keys import add_key, revoke_key
from wolfstream.service.fleet.opening import keys_at

X = [[i % 7, i % 5] for i in range(40)]
Y = [i % 2 for i in range(40)]
BODY = {"x": X, "y": Y}


@pytest.fixture(scope="module")
def pair(servers: NatsServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Replica]]:
    """Two replicas with a worker each."""
    folder = tmp_path_factory.mktemp("replicas")
    replicas = [Replica(folder / str(number), servers, workers=1) for number in range(2)]
    for one in replicas:
        one.prelude = look_for_leaders_for_long
        one.launch()
    for one in replicas:
        one.wait()
    for one in replicas:
        wait_for(lambda of=one: len(fleet(of)["replicas"]) == 2)  # type: ignore[misc]
    yield replicas
    for one in replicas:
        one.close()


def fleet(replica: Replica) -> Any:
    return httpx.get(f"{replica.url}/v1/fleet", timeout=30).json()


def post(replica: Replica, path: str, **given: Any) -> httpx.Response:
    """Return the answer to a request with a key, made again while it is refused for now."""
    url, headers = f"{replica.url}/v1/models/{path}", {"Idempotency-Key": uuid.uuid4().hex}

    def answer() -> httpx.Response | None:
        found = httpx.post(url, timeout=30, headers=headers, **given)
        return None if found.status_code == 503 else found

    found: httpx.Response = wait_for(answer)
    return found


def made(pair: list[Replica], of: str) -> dict[int, str]:
    """Return a model that has learned at each of the two leaders, by the number of its leader."""
    urls, found = [one.url for one in pair], dict[int, str]()
    for number in range(40):
        name = f"{of}-{number}"
        url = f"{urls[0]}/v1/models/{name}"
        wait_for(lambda at=url: httpx.put(at, json=PAPERS, timeout=30).is_success)  # type: ignore[misc]
        answer = post(pair[1], f"{name}/samples", json=BODY)
        assert answer.json()["sequence"] == 40, answer.text

        def leader(name: str = name) -> list[str]:
            told = fleet(pair[0])["replicas"]
            return [one["url"] for one in told if name in one["leads"]]

        found.setdefault(urls.index(wait_for(leader)[0]), name)
        if len(found) == 2:
            return found
    raise AssertionError(f"all models are led by {found}")


def test_every_worker_serves_every_model(pair: list[Replica]):
    for name in made(pair, "every").values():
        sequences = [post(one, f"{name}/samples", json=BODY).json()["sequence"] for one in pair]
        assert sequences == [80, 120]
        answers = [
            post(one, f"{name}/predict?min_sequence=120", json={"x": X}).json() for one in pair
        ]
        assert answers[0] == answers[1]
        assert answers[0]["sequence"] == 120


def test_every_worker_opens_streams(pair: list[Replica]):
    for name in made(pair, "streams").values():
        for number, one in enumerate(pair, 2):
            url = f"ws{one.url.removeprefix('http')}/v1/models/{name}/stream"
            with connect(url, subprotocols=["wolfstream.v1.json"], proxy=None) as stream:  # type: ignore[list-item]
                assert json.loads(stream.recv())["hello"]["model"] == name
                stream.send(json.dumps({"id": 1, "op": "learn", **BODY}))
                assert json.loads(stream.recv())["sequence"] == 40 * number


def test_what_does_not_exist_is_not_found(pair: list[Replica]):
    for one in pair:
        assert post(one, "nobody/predict", json={"x": X}).status_code == 404
        assert post(one, "nobody/samples", json=BODY).status_code == 404


def test_a_replica_that_is_stopped_refuses_nothing(pair: list[Replica]):
    names = made(pair, "stopped")
    stopped, other = pair
    process = stopped.process
    assert process is not None
    process.terminate()
    answers = list[httpx.Response]()
    url, one = f"{other.url}/v1/models/{names[0]}/samples", {"x": X[:1], "y": Y[:1]}
    while process.poll() is None or len(answers) < 20:
        answers.append(httpx.post(url, json=one, timeout=30))
    stopped.start()
    assert [answer.text for answer in answers if answer.status_code != 200] == []
    assert [answer.json()["sequence"] for answer in answers] == list(range(41, 41 + len(answers)))


def test_workers_know_the_keys_of_the_fleet(tmp_path: Path):
    servers = NatsServers(tmp_path / "nats").start()
    replica = Replica(tmp_path / "data", servers, workers=1)
    try:
        with keys_at(servers.addresses) as keys:
            key = add_key(keys, "ops", ("admin",))
            spare = add_key(keys, "spare", ("admin",))
            replica.start()
            url = f"{replica.url}/v1/models/m"
            headers = {"Authorization": f"Bearer {key}"}
            made = wait_for(
                lambda: httpx.put(url, json=PAPERS, headers=headers, timeout=30).is_success
            )
            assert made
            learned = httpx.post(f"{url}/samples", json=BODY, headers=headers, timeout=30)
            assert learned.json()["sequence"] == 40, learned.text

            def status(headers: dict[str, str]) -> int:
                asked = {"x": X[:1]}
                return httpx.post(
                    f"{url}/predict", json=asked, headers=headers, timeout=30
                ).status_code

            assert status({}) == 401
            assert status(headers) == 200
            revoke_key(keys, "ops")
            wait_for(lambda: status(headers) == 401)
            assert status({"Authorization": f"Bearer {spare}"}) == 200
    finally:
        replica.close()
        servers.close()
