"""Challengers in a fleet: they are led where their champion is, and follow it there."""

import signal
from typing import Any

import httpx
import pytest

from tests.service.fleet.trio import Trio, X, Y, call, learn, predict, wait_for
from tests.service.specs import PAPERS

OTHER = PAPERS | {"working_set": {"max_size": 7, "C": 3.0}, "asset": None}


@pytest.fixture
def pair(trio: Trio, name: str) -> tuple[str, str]:
    """A champion with samples, and its challenger, which another replica was asked to make."""
    learn(trio.clients[0], name)
    challenger = f"{name}-b"
    other = (trio.leader(name) + 1) % 3
    call(trio.clients[other], "PUT", f"/v1/models/{challenger}", json=follows(name))
    return name, challenger


def follows(champion: str, **more: Any) -> dict[str, Any]:
    return OTHER | {"follows": champion} | more


def standing(client: httpx.Client, champion: str) -> Any:
    """The first row of the scoreboard."""
    return call(client, "GET", f"/v1/models/{champion}/challengers").json()["challengers"][0]


def decisions(trio: Trio, name: str, sequence: int) -> list[Any]:
    """What each replica says once it knows a sequence, in the epoch that the leader has now."""
    epoch = call(trio.clients[0], "GET", f"/v1/models/{name}").json()["epoch"]
    answers = [predict(one, name, min_sequence=f"{epoch}:{sequence}") for one in trio.clients]
    assert [answer["sequence"] for answer in answers] == [sequence] * 3
    return [answer["decision"] for answer in answers]


def wait_until_moved(trio: Trio, pair: tuple[str, str], old: int) -> int:
    """The number of the replica that leads both by now, which is another one than before."""

    def moved() -> list[int]:
        leaders = [trio.leader(name) for name in pair]
        return [] if old in leaders or leaders[0] != leaders[1] else [leaders[0] + 1]

    return int(wait_for(moved)[0]) - 1


def refused(client: httpx.Client, method: str, path: str, body: Any) -> httpx.Response:
    """The refusal of a call, which is made again where it is one for now."""

    def answer() -> httpx.Response | None:
        found = client.request(method, f"/v1/models/{path}", json=body)
        return None if found.status_code == 503 else found

    found: httpx.Response = wait_for(answer)
    return found


class TestEveryReplica:
    def test_makes_them_where_their_champion_is_led(self, trio: Trio, pair: tuple[str, str]):
        champion, challenger = pair
        assert trio.leader(challenger) == trio.leader(champion)
        again = [
            call(client, "PUT", f"/v1/models/{challenger}", json=follows(champion)).status_code
            for client in trio.clients
        ]
        assert again == [200] * 3

    def test_predicts_with_what_they_learned(self, trio: Trio, pair: tuple[str, str]):
        champion, challenger = pair
        twin = f"{champion}-c"
        call(trio.clients[0], "PUT", f"/v1/models/{twin}", json=OTHER)
        for client in trio.clients:
            learn(client, champion)
            learn(client, twin)
        expected = decisions(trio, twin, 120)[0]
        assert decisions(trio, challenger, 160) == [expected] * 3

    def test_shows_the_scoreboard_and_promotes(self, trio: Trio, pair: tuple[str, str]):
        champion, challenger = pair
        learn(trio.clients[0], champion)
        decided = decisions(trio, challenger, 80)[0]
        for client in trio.clients:  # all that it learned but the first two: it knew one class
            assert standing(client, champion)["samples"] == 38
        other = trio.clients[(trio.leader(champion) + 1) % 3]
        told = call(other, "POST", f"/v1/models/{champion}/promote", json={"model": challenger})
        assert told.json()["spec"]["working_set"]["max_size"] == 7
        assert decisions(trio, champion, 80) == [decided] * 3

    def test_refuses_samples_for_them(self, trio: Trio, pair: tuple[str, str]):
        for client in trio.clients:
            answer = refused(client, "POST", f"{pair[1]}/samples", {"x": X, "y": Y})
            assert answer.json()["type"] == "urn:wolfstream:follows"

    def test_deletes_them(self, trio: Trio, pair: tuple[str, str]):
        champion, challenger = pair
        other = trio.clients[(trio.leader(champion) + 1) % 3]
        assert call(other, "DELETE", f"/v1/models/{challenger}").status_code == 204
        assert call(other, "GET", f"/v1/models/{champion}/challengers").json()["challengers"] == []

    def test_frees_them_with_their_champion(self, trio: Trio, pair: tuple[str, str]):
        champion, challenger = pair
        learn(trio.clients[0], champion)
        decided = decisions(trio, challenger, 80)[0]
        other = trio.clients[(trio.leader(champion) + 1) % 3]
        assert call(other, "DELETE", f"/v1/models/{champion}").status_code == 204
        assert decisions(trio, challenger, 80) == [decided] * 3
        assert learn(other, challenger)["sequence"] == 120


class TestRefusal:
    @pytest.mark.parametrize("taken", ["another", "champion"])
    def test_of_a_name_that_is_taken(self, trio: Trio, name: str, taken: str):
        names = {"another": f"{name}-taken", "champion": f"{name}-other"}
        for one in names.values():
            call(trio.clients[0], "PUT", f"/v1/models/{one}", json=PAPERS)
            learn(trio.clients[0], one)
        if taken == "champion":  # of whom it is already
            call(trio.clients[0], "PUT", f"/v1/models/{name}-b", json=follows(names["champion"]))
        of = f"{name}-b" if taken == "champion" else names["another"]
        for client in trio.clients:
            answer = refused(client, "PUT", of, follows(name))
            assert answer.json()["type"] == "urn:wolfstream:model-exists"

    def test_of_a_champion_that_does_not_exist(self, trio: Trio, name: str):
        for client in trio.clients:
            answer = refused(client, "PUT", f"{name}-b", follows("nobody"))
            assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/follows")

    def test_of_a_promotion_of_who_does_not_follow(self, trio: Trio, name: str):
        call(trio.clients[0], "PUT", f"/v1/models/{name}-alone", json=PAPERS)
        for client in trio.clients:
            answer = refused(client, "POST", f"{name}/promote", {"model": f"{name}-alone"})
            assert answer.json()["type"] == "urn:wolfstream:not-following"

    def test_of_a_promotion_of_a_model_that_does_not_exist(self, trio: Trio, name: str):
        for client in trio.clients:
            answer = refused(client, "POST", f"{name}/promote", {"model": f"{name}-nobody"})
            assert (answer.status_code, answer.json()["type"]) == (
                404,
                "urn:wolfstream:unknown-model",
            )


class TestTakeover:
    def test_of_a_champion_brings_its_challenger(self, trio: Trio, pair: tuple[str, str]):
        champion, challenger = pair
        learn(trio.clients[0], champion)
        decided, leader = decisions(trio, challenger, 80)[0], trio.leader(champion)
        trio.replicas[leader].kill()
        try:
            new = wait_until_moved(trio, pair, leader)
            assert learn(trio.clients[new], champion)["sequence"] == 120
            assert learn(trio.clients[new], champion)["sequence"] == 160
            answer = predict(trio.clients[new], challenger, min_sequence="160")
            assert answer["sequence"] == 160
            assert answer["decision"] != decided
            assert standing(trio.clients[new], champion)["samples"] >= 80
        finally:
            trio.replicas[leader].start()
        wait_for(lambda: trio.leader(champion) == trio.leader(challenger) == leader)
        assert decisions(trio, challenger, 160) == [answer["decision"]] * 3

    def test_after_a_promotion_keeps_it(self, trio: Trio, pair: tuple[str, str]):
        champion, challenger = pair
        learn(trio.clients[0], champion)
        promotion = {"model": challenger}
        call(trio.clients[0], "POST", f"/v1/models/{champion}/promote", json=promotion)
        decided = [decisions(trio, name, 80)[0] for name in pair]
        leader = trio.leader(champion)
        process = trio.replicas[leader].process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        try:
            other = trio.clients[(leader + 1) % 3]
            history = call(other, "GET", f"/v1/models/{challenger}/history")
            assert history.json()["snapshots"]
            answers = [predict(other, name)["decision"] for name in pair]
        finally:
            process.send_signal(signal.SIGCONT)
        assert answers == decided
        call(other, "POST", f"/v1/models/{champion}/rollback", json={"sequence": 80})
        assert [decisions(trio, name, 80)[0] for name in pair] == [decided[1]] * 2
