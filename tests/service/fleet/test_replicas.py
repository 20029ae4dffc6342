"""Three replicas of a fleet: each serves every model, and one at a time learns it."""

import json
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from tests.service.fleet.conftest import Replica, look_for_leaders_for_long
from tests.service.nats import NatsServers
from tests.service.specs import PAPERS

X = [[i % 7, i % 5] for i in range(40)]
Y = [i % 2 for i in range(40)]


class Trio:
    """Three replicas, and a client of each."""

    def __init__(self, replicas: list[Replica]) -> None:
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


def runs(replica: Replica) -> bool:
    return replica.process is not None and replica.process.poll() is None


def wait_for(look: Callable[[], Any]) -> Any:
    """Return the first result that is true."""
    deadline = time.monotonic() + 60
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def trio(servers: NatsServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    folder = tmp_path_factory.mktemp("replicas")
    replicas = [Replica(folder / str(number), servers) for number in range(3)]
    for one in replicas:
        one.prelude = look_for_leaders_for_long
        one.launch()
    for one in replicas:
        one.wait()
    together = Trio(replicas)
    for client in together.clients:
        wait_for(lambda of=client: len(of.get("/v1/fleet").json()["replicas"]) == 3)  # type: ignore[misc]
    yield together
    for client in together.clients:
        client.close()
    for one in replicas:
        one.close()


@pytest.fixture
def name(trio: Trio) -> str:
    """A model, which was made through some replica."""
    made = f"a..{uuid.uuid4().hex[:8]}"
    asked(trio.clients[1], "PUT", f"/v1/models/{made}", json=PAPERS)
    return made


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


class TestEveryReplica:
    def test_takes_samples_and_predicts_the_same(self, trio: Trio, name: str):
        sequences = [learn(client, name)["sequence"] for client in trio.clients]
        assert sequences == [40, 80, 120]
        answers = [predicted(client, name, min_sequence="120") for client in trio.clients]
        assert answers[0] == answers[1] == answers[2]
        assert {answer["sequence"] for answer in answers} == {120}

    def test_lists_all_models(self, trio: Trio, name: str):
        listed = [asked(client, "GET", "/v1/models").json()["models"] for client in trio.clients]
        names = [[model["model"] for model in models] for models in listed]
        assert names[0] == names[1] == names[2]
        assert name in names[0]

    def test_knows_what_does_not_exist(self, trio: Trio):
        answers = [client.get("/v1/models/nobody") for client in trio.clients]
        assert [answer.status_code for answer in answers] == [404] * 3

    def test_opens_streams(self, trio: Trio, name: str):
        for number, one in enumerate(trio.replicas):
            url = f"ws{one.url.removeprefix('http')}/v1/models/{name}/stream"
            with connect(url, subprotocols=["wolfstream.v1.json"], proxy=None) as stream:  # type: ignore[list-item]
                assert json.loads(stream.recv())["hello"]["model"] == name
                stream.send(json.dumps({"id": 1, "op": "learn", "x": X, "y": Y}))
                assert json.loads(stream.recv())["sequence"] == 40 * (number + 1)

    def test_passes_on_what_has_no_end(self, trio: Trio, name: str):
        learn(trio.clients[0], name)
        for client in trio.clients:
            told_by = {"X-Request-ID": "abc"}
            with client.stream("GET", f"/v1/models/{name}/events", headers=told_by) as events:
                lines = events.iter_lines()
                told = next(line for line in lines if line.startswith("data:"))
            assert json.loads(told.removeprefix("data:"))["sequence"] == 40
            assert events.headers.get_list("x-request-id") == ["abc"]
        # All have left: nothing keeps a replica from answering.
        assert learn(trio.clients[0], name)["sequence"] == 80

    def test_knows_what_no_model_can_be_called(self, trio: Trio):
        answers = [client.get("/v1/models/a b/history") for client in trio.clients]
        assert [answer.status_code for answer in answers] == [404] * 3

    def test_says_who_is_not_to_be_asked(self, trio: Trio, name: str):
        leader = trio.leader(name)
        marked = {"Wolfstream-Forwarded": "1"}
        answers = [
            client.get(f"/v1/models/{name}", headers=marked).status_code for client in trio.clients
        ]
        assert answers == [200 if number == leader else 421 for number in range(3)]

    def test_deletes(self, trio: Trio, name: str):
        learn(trio.clients[0], name)
        assert asked(trio.clients[2], "DELETE", f"/v1/models/{name}").status_code == 204
        answers = [client.get(f"/v1/models/{name}").status_code for client in trio.clients]
        assert answers == [404] * 3
        assert asked(trio.clients[0], "PUT", f"/v1/models/{name}", json=PAPERS).status_code == 201
        assert learn(trio.clients[1], name)["sequence"] == 40


class TestFollowedViews:
    def test_predict_what_the_leader_does(self, trio: Trio, name: str):
        learn(trio.clients[0], name)
        trio.following(name, 40)
        learn(trio.clients[0], name)
        answers = [predicted(client, name, min_sequence="80") for client in trio.clients]
        assert answers[0] == answers[1] == answers[2]
        data = [value for row in X for value in row]
        tensor = {"name": "x", "datatype": "FP64", "shape": [40, 2], "data": data}
        inferred = [
            asked(client, "POST", f"/v2/models/{name}/infer", json={"inputs": [tensor]}).json()
            for client in trio.clients
        ]
        assert inferred[0]["outputs"] == inferred[1]["outputs"] == inferred[2]["outputs"]

    def test_let_the_leader_remember_rows(self, trio: Trio, name: str):
        learn(trio.clients[0], name)
        for number in trio.following(name, 40):
            client, path, ids = trio.clients[number], f"/v1/models/{name}", [f"row-{number}"]
            asked(client, "POST", f"{path}/predict", json={"x": [X[number]], "ids": ids})
            labelled = asked(client, "POST", f"{path}/labels", json={"ids": ids, "y": [1]}).json()
            assert labelled["learned"] == 1, labelled


class TestTakeover:
    def test_of_a_leader_that_was_killed(self, trio: Trio, name: str):
        first = learn(trio.clients[0], name, key="first")
        before = predicted(trio.clients[0], name)
        leader, standby = trio.leader(name), trio.standby(name, 40)
        trio.replicas[leader].kill()
        try:
            other = trio.clients[standby]
            again = learn(other, name, key="first")
            assert again["sequence"] == 40
            assert again["results"] == first["results"]
            after = predicted(other, name, min_sequence=f"{before['epoch']}:40")
            assert after["decision"] == before["decision"]
            taken = learn(other, name)
            assert taken["sequence"] == 80
            assert taken["epoch"] != before["epoch"]
        finally:
            trio.replicas[leader].start()
        # It returns to the replica with the highest rank, with everything that was learned.
        wait_for(lambda: trio.leader(name) == leader)
        assert learn(trio.clients[leader], name)["sequence"] == 120

    def test_of_a_leader_that_stands_still_and_goes_on(self, trio: Trio, name: str):
        learn(trio.clients[0], name)
        leader = trio.leader(name)
        process = trio.replicas[leader].process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        try:
            other = trio.clients[(leader + 1) % 3]
            taken = learn(other, name, 1)
        finally:
            process.send_signal(signal.SIGCONT)
        sequence = taken["sequence"]
        sequences = [learn(client, name, 1)["sequence"] for client in trio.clients]
        assert sequences == [sequence + 1, sequence + 2, sequence + 3]

    def test_of_one_that_is_stopped_refuses_nothing(self, trio: Trio, name: str):
        learn(trio.clients[0], name)
        leader = trio.leader(name)
        trio.standby(name, 40)
        process = trio.replicas[leader].process
        assert process is not None
        process.terminate()
        other, answers = trio.clients[(leader + 1) % 3], list[httpx.Response]()
        while process.poll() is None or len(answers) < 20:
            answers.append(other.post(f"/v1/models/{name}/samples", json={"x": X[:1], "y": Y[:1]}))
        trio.replicas[leader].start()
        assert [answer.text for answer in answers if answer.status_code != 200] == []
        sequences = [answer.json()["sequence"] for answer in answers]
        assert sequences == list(range(41, 41 + len(answers)))
