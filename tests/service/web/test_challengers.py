"""Challengers over HTTP, against a real server."""

import asyncio
from typing import Any

import httpx
import numpy as np
import pytest

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import body, part, plain_rows, three_classes
from wolfstream import Client
from wolfstream.service.access.key_ring import Grant
from wolfstream.service.client.errors import Refused
from wolfstream.service.errors import Forbidden
from wolfstream.service.web.routes.creation import create

SPEC = PAPERS | {"working_set": {"max_size": 60}, "asset": None}
OTHER = PAPERS | {"working_set": {"max_size": 20, "C": 3.0}, "asset": None}
SAMPLES = three_classes(400)
ROWS = plain_rows(three_classes(20, 9))


@pytest.fixture
def pair(client: httpx.Client, name: str) -> tuple[str, str]:
    """A model and its challenger, which have learned nothing."""
    champion, challenger = name, f"{name}-b"
    client.put(f"/v1/models/{champion}", json=SPEC).raise_for_status()
    follow(client, challenger, champion)
    return champion, challenger


def follow(client: httpx.Client, name: str, champion: str, **more: Any) -> Any:
    sent = OTHER | {"follows": champion} | more
    return client.put(f"/v1/models/{name}", json=sent).raise_for_status().json()


def learn(client: httpx.Client, name: str, start: int, stop: int, step: int = 23) -> int:
    """Post a part of the stream in pieces, one after another; the last sequence."""
    sequence = 0
    for begin in range(start, stop, step):
        piece = body(part(SAMPLES, begin, min(begin + step, stop)))
        answer = client.post(f"/v1/models/{name}/samples", json=piece)
        sequence = answer.raise_for_status().json()["sequence"]
    return sequence


def predicted(client: httpx.Client, name: str, sequence: int = 0) -> Any:
    """What a model says of rows once it has learned so much."""
    answer = client.post(f"/v1/models/{name}/predict?min_sequence={sequence}", json={"x": ROWS})
    told = answer.raise_for_status().json()
    return told["prediction"], told["decision"]


def standing(client: httpx.Client, champion: str) -> Any:
    """The first row of the scoreboard."""
    return (
        client.get(f"/v1/models/{champion}/challengers").raise_for_status().json()["challengers"][0]
    )


def refusal(answer: httpx.Response) -> tuple[int, str, str]:
    told = answer.json()
    pointers = "".join(error["pointer"] for error in told.get("errors", []))
    return answer.status_code, told["type"].removeprefix("urn:wolfstream:"), pointers


def test_it_learns_what_its_champion_is_sent(client: httpx.Client, pair: tuple[str, str]) -> None:
    """Bit for bit as a model that is sent the same itself."""
    champion, challenger = pair
    client.put(f"/v1/models/{champion}-c", json=OTHER).raise_for_status()
    sequence = learn(client, champion, 0, 300)
    learn(client, f"{champion}-c", 0, 300)
    assert predicted(client, challenger, sequence) == predicted(client, f"{champion}-c")
    follows = client.get(f"/v1/models/{challenger}").json()["follows"]
    assert follows == {"model": champion, "lag": 0, "passed_over": 0, "reason": None}


def test_the_scoreboard_compares_them_on_the_same_samples(
    client: httpx.Client, pair: tuple[str, str]
) -> None:
    champion, challenger = pair
    sequence = learn(client, champion, 0, 200)
    predicted(client, challenger, sequence)
    told = client.get(f"/v1/models/{champion}/challengers").json()
    (row,) = told["challengers"]
    assert (told["model"], told["sequence"], told["level"]) == (champion, sequence, 0.95)
    assert told["cost_microseconds"] > 0
    assert row["cost_microseconds"] > 0
    assert (row["model"], row["lag"]) == (challenger, 0)
    heads = client.get(f"/v1/models/{champion}").json()["heads"]
    judged = heads["working_set"]["prequential"]
    assert row["samples"] <= judged["samples"]
    assert row["champion_loss"] == pytest.approx(1 - judged["accuracy"], abs=0.02)
    assert row["difference"] == pytest.approx(row["champion_loss"] - row["loss"])
    low, high = row["interval"]
    assert low <= row["difference"] <= high
    assert row["better"] is None


class TestPromotion:
    def test_exchanges_them_and_a_rollback_undoes_it(
        self, client: httpx.Client, pair: tuple[str, str]
    ) -> None:
        champion, challenger = pair
        sequence = learn(client, champion, 0, 200)
        before = [predicted(client, name, sequence) for name in pair]
        answer = client.post(f"/v1/models/{champion}/promote", json={"model": challenger})
        told = answer.raise_for_status().json()
        assert told["rolled_back"]["of"] == challenger
        assert told["spec"]["working_set"]["max_size"] == 20
        assert [predicted(client, name) for name in pair] == before[::-1]
        assert standing(client, champion)["samples"] == 0
        again = learn(client, champion, 200, 250)
        assert again == 250
        predicted(client, challenger, again)
        back = client.post(f"/v1/models/{champion}/rollback", json={"sequence": sequence})
        assert back.raise_for_status().json()["spec"]["working_set"]["max_size"] == 60
        assert predicted(client, champion) == before[0]

    def test_is_for_the_state_that_the_request_names(
        self, client: httpx.Client, pair: tuple[str, str]
    ) -> None:
        answer = client.post(
            f"/v1/models/{pair[0]}/promote",
            json={"model": pair[1]},
            headers={"If-Match": '"another"'},
        )
        assert answer.status_code == 412

    @pytest.mark.parametrize(
        ("sent", "wanted"),
        [
            ({"model": "nobody-here"}, (404, "unknown-model", "")),
            ({"model": 3}, (422, "invalid", "/model")),
            ({"model": "x", "at": 3}, (422, "invalid", "/at")),
            ([], (422, "invalid", "")),
        ],
    )
    def test_of_what_is_no_challenger_is_refused(
        self, client: httpx.Client, pair: tuple[str, str], sent: Any, wanted: Any
    ) -> None:
        assert refusal(client.post(f"/v1/models/{pair[0]}/promote", json=sent)) == wanted

    def test_of_itself_or_of_its_champion_is_refused(
        self, client: httpx.Client, pair: tuple[str, str]
    ) -> None:
        for name, model in ((pair[0], pair[0]), (pair[1], pair[0])):
            answer = client.post(f"/v1/models/{name}/promote", json={"model": model})
            assert refusal(answer) == (409, "not-following", "")

    def test_refusals_say_what_to_do(self, client: httpx.Client, pair: tuple[str, str]) -> None:
        champion, challenger = pair
        upside_down, absent, empty = (
            client.post(f"/v1/models/{name}/promote", content=sent).json()["detail"]
            for name, sent in (
                (challenger, f'{{"model": "{champion}"}}'),
                (champion, '{"model": "nobody-here"}'),
                (champion, ""),
            )
        )
        assert f"POST /v1/models/{champion}/promote with {challenger!r}" in upside_down
        assert f"GET /v1/models/{champion}/challengers lists" in absent
        assert "it is empty" in empty


class TestRefusals:
    def test_a_challenger_is_sent_nothing(
        self, client: httpx.Client, pair: tuple[str, str]
    ) -> None:
        piece = body(part(SAMPLES, 0, 5))
        learn(client, pair[0], 0, 100)
        predicted(client, pair[1], 100)
        for call, sent in (
            ("samples", piece),
            ("labels", {"ids": [1], "y": ["a"]}),
            ("predict", {"x": ROWS, "ids": "auto"}),
        ):
            answer = client.post(f"/v1/models/{pair[1]}/{call}", json=sent)
            assert refusal(answer) == (409, "follows", "")
            assert f"send samples and labels to {pair[0]!r}" in answer.json()["detail"]

    def test_one_that_has_learned_nothing_says_who_is_to_be_taught(
        self, client: httpx.Client, pair: tuple[str, str]
    ) -> None:
        answer = client.post(f"/v1/models/{pair[1]}/predict", json={"x": ROWS})
        assert refusal(answer) == (409, "untrained", "")
        detail = answer.json()["detail"]
        assert f"it learns what is sent to {pair[0]!r}" in detail
        assert "POST" not in detail

    @pytest.mark.parametrize("name", ["follow", "Follows"])
    def test_a_misspelt_field_gets_the_right_name(
        self, client: httpx.Client, pair: tuple[str, str], name: str
    ) -> None:
        answer = client.put(f"/v1/models/{pair[0]}-new", json={name: pair[0]})
        assert refusal(answer) == (422, "invalid", f"/{name}")
        assert 'did you mean "follows"?' in answer.json()["errors"][0]["detail"]

    @pytest.mark.parametrize(
        ("sent", "pointer"),
        [
            ({"follows": "nobody-here"}, "/follows"),
            ({"follows": 3}, "/follows"),
            ({"start": "empty"}, "/follows"),
            ({"follows": "CHAMPION", "start": "all"}, "/start"),
            ({"follows": "CHAMPION", "task": "regression"}, "/task"),
            ({"follows": "CHALLENGER"}, "/follows"),
            ({"follows": "ITSELF"}, "/follows"),
        ],
    )
    def test_of_whom_it_follows(
        self, client: httpx.Client, pair: tuple[str, str], sent: Any, pointer: str
    ) -> None:
        new = f"{pair[0]}-new"
        names = {"CHAMPION": pair[0], "CHALLENGER": pair[1], "ITSELF": new}
        sent = {key: names.get(value, value) for key, value in sent.items()}
        answer = client.put(f"/v1/models/{new}", json=sent)
        assert refusal(answer) == (422, "invalid", pointer)
        assert client.get(f"/v1/models/{new}").status_code == 404

    def test_the_same_again_is_found_and_another_one_is_not(
        self, client: httpx.Client, pair: tuple[str, str]
    ) -> None:
        champion, challenger = pair
        again = client.put(f"/v1/models/{challenger}", json=OTHER | {"follows": champion})
        assert again.status_code == 200
        for sent in (SPEC | {"follows": champion},):
            answer = client.put(f"/v1/models/{challenger}", json=sent)
            assert refusal(answer) == (409, "model-exists", "")
        circle = client.put(f"/v1/models/{champion}", json=SPEC | {"follows": challenger})
        assert refusal(circle) == (422, "invalid", "/follows")


def test_a_key_follows_only_models_that_it_is_for() -> None:
    """What a challenger learns is its champion's."""
    engine: Any = None
    grant = Grant("k", "client", frozenset({"admin"}), "mine-", None)
    with pytest.raises(Forbidden):
        asyncio.run(create(engine, grant, "mine-b", {"follows": "theirs"}))


def test_a_deletion_frees_it(client: httpx.Client, pair: tuple[str, str]) -> None:
    champion, challenger = pair
    sequence = learn(client, champion, 0, 100)
    before = predicted(client, challenger, sequence)
    client.delete(f"/v1/models/{champion}").raise_for_status()
    assert client.get(f"/v1/models/{challenger}").json()["follows"] is None
    assert predicted(client, challenger) == before
    assert learn(client, challenger, 100, 110) == 110


def test_metrics_say_how_it_does(client: httpx.Client, pair: tuple[str, str]) -> None:
    champion, challenger = pair
    predicted(client, challenger, learn(client, champion, 0, 100))
    text = client.get("/metrics").text
    assert f'wolfstream_challenger_lag_samples{{model="{challenger}"}} 0.0' in text
    assert f'wolfstream_challenger_difference{{bound="mean",model="{challenger}"}}' in text


def test_the_client_promotes(server: ServerProcess, pair: tuple[str, str]) -> None:
    champion, challenger = pair
    with Client(server.url) as client:
        client.learn(champion, np.asarray(SAMPLES.X)[:100], SAMPLES.y[:100])
        client.predict(challenger, ROWS, min_sequence=100)
        (row,) = client.challengers(champion)["challengers"]
        assert row["model"] == challenger
        assert client.promote(champion, challenger)["rolled_back"]["of"] == challenger
        with pytest.raises(Refused):
            client.promote(champion, "nobody-here")
