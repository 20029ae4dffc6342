"""A model with several learners: samples are divided among logs, and what is learned is merged."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.service.fleet.conftest import LoneReplica, Replica
from tests.service.fleet.trio import Trio, X, Y, call, learn, predict, wait_for
from tests.service.nats import NatsServers
from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from wolfstream.service.cli.main import main

SEVERAL: dict[str, Any] = {"learners": 2, **PAPERS}


@pytest.fixture
def name(trio: Trio) -> str:
    """Create a model with two learners through a replica, and return its name."""
    new_name = f"hot..{uuid.uuid4().hex[:8]}"
    call(trio.clients[1], "PUT", f"/v1/models/{new_name}", json=SEVERAL)
    return new_name


def final_response(client: httpx.Client, method: str, path: str, **request: Any) -> httpx.Response:
    """Make a call again while its status is 503, and return its response, refused or not."""

    def attempt() -> httpx.Response | None:
        response = client.request(method, path, **request)
        return None if response.status_code == 503 else response

    return wait_for(attempt)


def merged(trio: Trio, name: str, samples: int) -> dict[str, Any]:
    """Return a model's description once so many samples are in it."""
    return merged_of(trio.clients[0], name, samples)


def merged_of(client: httpx.Client, name: str, samples: int) -> dict[str, Any]:
    """Return a model's description, of one replica, once so many samples are in it."""

    def found() -> dict[str, Any] | None:
        answer = client.get(f"/v1/models/{name}")
        told: dict[str, Any] = answer.json()
        return told if answer.is_success and told["sequence"] == samples else None

    return wait_for(found)


class TestLearning:
    def test_divides_samples_and_merges_what_was_learned(self, trio: Trio, name: str):
        answers = [learn(trio.clients[0], name, key=f"key-{number}") for number in range(6)]
        reached = {answer["model"]: answer["sequence"] for answer in answers}
        assert sorted(reached) == [f"{name}:0", f"{name}:1"]
        assert sum(reached.values()) == 240
        told = merged(trio, name, 240)
        parts = {one["partition"]: one["sequence"] for one in told["merged"]["partitions"]}
        assert parts == reached
        scores = told["heads"]["working_set"]["prequential"]
        assert 200 < scores["samples"] <= 240

    def test_has_two_leaders(self, trio: Trio, name: str):
        for number in range(4):
            learn(trio.clients[number % 3], name, key=f"key-{number}")
        # A replica that was asked first may lead a part until another replica follows it.
        wait_for(lambda: trio.leader(f"{name}:0") != trio.leader(f"{name}:1"))

    def test_meets_a_repeated_request_wherever_it_is_sent(self, trio: Trio, name: str):
        for number in range(6):
            answers = [learn(client, name, 10, key=f"key-{number}") for client in trio.clients]
            assert len({(one["model"], one["sequence"]) for one in answers}) == 1
        merged(trio, name, 60)

    def test_takes_a_key_in_either_notation_for_the_same(self, trio: Trio, name: str):
        first = learn(trio.clients[0], name, key="a-b")
        again = learn(trio.clients[0], name, key='"a-b"')
        assert (again["model"], again["sequence"]) == (first["model"], first["sequence"])

    def test_predicts_the_same_at_every_replica(self, trio: Trio, name: str):
        for number in range(4):
            learn(trio.clients[0], name, key=f"key-{number}")
        epoch = merged(trio, name, 160)["epoch"]
        answers = [predict(client, name, min_sequence=f"{epoch}:160") for client in trio.clients]
        assert answers[0] == answers[1] == answers[2]
        assert (answers[0]["model"], answers[0]["sequence"]) == (name, 160)

    def test_says_why_it_cannot_merge(self, trio: Trio, name: str):
        def taught(width: int, number: int) -> httpx.Response:
            body, key = {"x": [[1.0] * width] * 2, "y": [0, 1]}, {"Idempotency-Key": f"{number}"}
            path = f"/v1/models/{name}/samples"
            return final_response(trio.clients[0], "POST", path, json=body, headers=key)

        assert taught(2, 0).is_success
        # The partition that has rows of two numbers refuses others.
        assert any(taught(3, number).is_success for number in range(1, 9))
        wait_for(
            lambda: (
                "arrays of 2 and 3 numbers"
                in (
                    final_response(trio.clients[0], "GET", f"/v1/models/{name}").json()["notice"]
                    or ""
                )
            )
        )


class TestTakeover:
    def test_of_the_leader_that_merges_has_the_same_bits(self, trio: Trio, name: str):
        for number in range(4):
            learn(trio.clients[0], name, key=f"key-{number}")
        epoch, path = merged(trio, name, 160)["epoch"], f"/v1/models/{name}"
        leader = trio.leader(name)
        other = trio.clients[(leader + 1) % 3]
        before = predict(other, name, min_sequence=f"{epoch}:160")
        trio.replicas[leader].kill()
        try:
            after = call(other, "GET", path, params={"min_sequence": f"{epoch}:160"}).json()
            assert after["epoch"] != epoch
            assert predict(other, name)["decision"] == before["decision"]
            learn(other, name, key="one-more")
            assert merged_of(other, name, 200)["epoch"] == after["epoch"]
        finally:
            trio.replicas[leader].start()

    def test_of_a_partition_loses_nothing(self, trio: Trio, name: str):
        keys = [f"key-{number}" for number in range(8)]
        first = [learn(trio.clients[0], name, 10, key) for key in keys[:4]]
        leader = trio.leader(first[-1]["model"])
        trio.replicas[leader].kill()
        try:
            other = trio.clients[(leader + 1) % 3]
            for key in keys:
                learn(other, name, 10, key)
        finally:
            trio.replicas[leader].start()
        merged(trio, name, 80)


class TestHousekeeping:
    def test_hides_the_partitions(self, trio: Trio, name: str):
        learn(trio.clients[0], name)
        for client in trio.clients:
            listed = [one["model"] for one in call(client, "GET", "/v1/models").json()["models"]]
            assert name in listed
            assert not [one for one in listed if ":" in one]

    def test_deletes_the_partitions_first(self, trio: Trio, name: str):
        for number in range(3):
            learn(trio.clients[0], name, key=f"key-{number}")
        path = f"/v1/models/{name}"
        assert call(trio.clients[2], "DELETE", path).status_code == 204
        paths = [path, f"{path}:0", f"{path}:1"]
        assert [final_response(trio.clients[0], "GET", one).status_code for one in paths] == [
            404
        ] * 3
        assert call(trio.clients[0], "PUT", path, json=SEVERAL).status_code == 201
        assert learn(trio.clients[1], name, key="key-0")["sequence"] == 40

    def test_keeps_its_partitions_where_it_is_not_deleted(self, trio: Trio, name: str):
        learn(trio.clients[0], name)
        for path in (f"/v1/models/{name}?force=true", f"/v2/models/{name}"):
            assert final_response(trio.clients[0], "DELETE", path).status_code in (405, 422)
        paths = [f"/v1/models/{name}{part}" for part in ("", ":0", ":1")]
        assert [final_response(trio.clients[0], "GET", one).status_code for one in paths] == [
            200
        ] * 3

    def test_is_the_same_where_it_is_created_again(self, trio: Trio, name: str):
        learn(trio.clients[0], name)
        path = f"/v1/models/{name}"
        assert call(trio.clients[0], "PUT", path, json=SEVERAL).status_code == 200
        other = final_response(trio.clients[0], "PUT", path, json=SEVERAL | {"learners": 3})
        assert (other.status_code, other.json()["type"]) == (409, "urn:wolfstream:model-exists")

    def test_gives_its_state_to_a_model_with_one_learner(self, trio: Trio, name: str):
        learn(trio.clients[0], name)
        merged(trio, name, 40)
        state = call(trio.clients[1], "GET", f"/v1/models/{name}/state").content
        copy = f"copy-{uuid.uuid4().hex[:8]}"
        call(trio.clients[2], "PUT", f"/v1/models/{copy}/state", content=state)
        assert learn(trio.clients[0], copy)["sequence"] == 80


class TestRefusals:
    @pytest.mark.parametrize(
        ("method", "suffix", "request_parts"),
        [
            ("POST", "/labels", {"json": {"ids": ["a"], "y": [0]}}),
            ("POST", "/snapshot", {}),
            ("POST", "/rollback", {"json": {"sequence": 0}}),
            ("POST", "/predict?min_sequence=1", {"json": {"x": X}}),
            ("GET", "?min_sequence=1", {}),
            ("POST", "/samples", {"headers": {"If-Match": '"a:1"'}, "json": {"x": X, "y": Y}}),
            ("DELETE", "", {"headers": {"If-Match": '"a:1"'}}),
            ("POST", ":0/samples", {"json": {"x": X, "y": Y}}),
            ("DELETE", ":0", {}),
        ],
    )
    def test_of_what_its_learners_cannot_do_together(
        self, trio: Trio, name: str, method: str, suffix: str, request_parts: dict[str, Any]
    ):
        for client in trio.clients:
            refusal = final_response(client, method, f"/v1/models/{name}{suffix}", **request_parts)
            assert (refusal.status_code, refusal.json()["type"]) == (409, "urn:wolfstream:divided")

    def test_of_streams(self, trio: Trio, name: str):
        for one in trio.replicas:
            url = f"ws{one.url.removeprefix('http')}/v1/models/{name}/stream"
            with pytest.raises(InvalidStatus) as refused:
                connect(url, subprotocols=["wolfstream.v1.json"], proxy=None)  # type: ignore[list-item]
            problem = json.loads(refused.value.response.body)
            assert problem["type"] == "urn:wolfstream:divided"

    def test_of_challengers(self, trio: Trio, name: str):
        body = PAPERS | {"follows": name}
        found = final_response(trio.clients[0], "PUT", f"/v1/models/{name}-challenger", json=body)
        assert (found.status_code, found.json()["type"]) == (409, "urn:wolfstream:divided")

    def test_of_rows_with_names(self, trio: Trio, name: str):
        body = {"x": [{"a": 1.0}, {"a": 2.0}], "y": [0, 1]}
        found = final_response(trio.clients[0], "POST", f"/v1/models/{name}/samples", json=body)
        assert found.status_code == 422
        assert "arrays of numbers" in found.json()["detail"]


class TestRestart:
    """Of a fleet of one replica."""

    def test_wakes_partitions_that_nobody_asks_for(self, replica: Callable[..., Replica]):
        one = replica(LoneReplica, merge_seconds=3600)
        one.wait()
        with httpx.Client(base_url=one.url, timeout=30) as client:
            call(client, "PUT", "/v1/models/asleep", json=SEVERAL)
            for number in range(4):
                learn(client, "asleep", key=f"key-{number}")
        one.kill()
        one.settings["merge_seconds"] = 0.2
        one.start()
        with httpx.Client(base_url=one.url, timeout=30) as client:
            merged_of(client, "asleep", 160)

    def test_finds_all_partitions_where_they_were_exported_to(
        self, replica: Callable[..., Replica], tmp_path: Path
    ):
        one = replica(LoneReplica, merge_seconds=0.05)
        one.wait()
        with httpx.Client(base_url=one.url, timeout=30) as client:
            call(client, "PUT", "/v1/models/moved", json=SEVERAL)
            for number in range(8):  # more merges than are kept
                learn(client, "moved", key=f"key-{number}")
                merged_of(client, "moved", 40 * (number + 1))
            before = predict(client, "moved")
        one.close()
        exported = tmp_path / "exported"
        run("fleet", "export", exported, "--fleet", one.settings["fleet"])
        alone = ServerProcess(exported)
        alone.start()
        with httpx.Client(base_url=alone.url, timeout=30) as client:
            assert predict(client, "moved")["decision"] == before["decision"]
            refused = client.post("/v1/models/moved/samples", json={"x": X, "y": Y})
            assert refused.json()["type"] == "urn:wolfstream:divided"
        alone.close()
        other = NatsServers(tmp_path / "nats").start()
        run("fleet", "import", exported, "--fleet", ",".join(other.addresses))
        moved = LoneReplica(tmp_path / "other", other, merge_seconds=0.2)
        moved.start()
        with httpx.Client(base_url=moved.url, timeout=30) as client:
            again = [learn(client, "moved", key=f"key-{number}") for number in range(9)]
            assert sorted(one["sequence"] for one in again)[0] == 40
            merged_of(client, "moved", 360)
        moved.close()
        other.close()


def run(*arguments: object) -> None:
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
