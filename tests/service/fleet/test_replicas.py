"""Three replicas of a fleet: each serves every model, and one at a time learns it."""

import json
import signal

import httpx
from websockets.sync.client import connect

from tests.service.fleet.trio import Trio, X, Y, call, learn, predict, wait_for
from tests.service.specs import PAPERS


class TestEveryReplica:
    def test_takes_samples_and_predicts_the_same(self, trio: Trio, name: str):
        sequences = [learn(client, name)["sequence"] for client in trio.clients]
        assert sequences == [40, 80, 120]
        answers = [predict(client, name, min_sequence="120") for client in trio.clients]
        assert answers[0] == answers[1] == answers[2]
        assert {answer["sequence"] for answer in answers} == {120}

    def test_lists_all_models(self, trio: Trio, name: str):
        listed = [call(client, "GET", "/v1/models").json()["models"] for client in trio.clients]
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
        assert call(trio.clients[2], "DELETE", f"/v1/models/{name}").status_code == 204
        answers = [client.get(f"/v1/models/{name}").status_code for client in trio.clients]
        assert answers == [404] * 3
        assert call(trio.clients[0], "PUT", f"/v1/models/{name}", json=PAPERS).status_code == 201
        assert learn(trio.clients[1], name)["sequence"] == 40


class TestFollowedViews:
    def test_predict_what_the_leader_does(self, trio: Trio, name: str):
        learn(trio.clients[0], name)
        trio.following(name, 40)
        learn(trio.clients[0], name)
        answers = [predict(client, name, min_sequence="80") for client in trio.clients]
        assert answers[0] == answers[1] == answers[2]
        data = [value for row in X for value in row]
        tensor = {"name": "x", "datatype": "FP64", "shape": [40, 2], "data": data}
        inferred = [
            call(client, "POST", f"/v2/models/{name}/infer", json={"inputs": [tensor]}).json()
            for client in trio.clients
        ]
        assert inferred[0]["outputs"] == inferred[1]["outputs"] == inferred[2]["outputs"]

    def test_let_the_leader_remember_rows(self, trio: Trio, name: str):
        learn(trio.clients[0], name)
        for number in trio.following(name, 40):
            client, path, ids = trio.clients[number], f"/v1/models/{name}", [f"row-{number}"]
            call(client, "POST", f"{path}/predict", json={"x": [X[number]], "ids": ids})
            labelled = call(client, "POST", f"{path}/labels", json={"ids": ids, "y": [1]}).json()
            assert labelled["learned"] == 1, labelled


class TestTakeover:
    def test_of_a_leader_that_was_killed(self, trio: Trio, name: str):
        first = learn(trio.clients[0], name, key="first")
        before = predict(trio.clients[0], name)
        leader, standby = trio.leader(name), trio.standby(name, 40)
        trio.replicas[leader].kill()
        try:
            other = trio.clients[standby]
            again = learn(other, name, key="first")
            assert again == first
            after = predict(other, name, min_sequence=f"{before['epoch']}:40")
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
