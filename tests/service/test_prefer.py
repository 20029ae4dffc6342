"""`Prefer`: an answer before the samples are learned, once they are on disk."""

from typing import Any

import httpx
import pytest

from service.prefer import Preference, read_preference
from tests.service.streams import body, two_classes

SAMPLES = body(two_classes(20))


@pytest.mark.parametrize(
    ("values", "preference"),
    [
        ([], None),
        ([""], None),
        (["respond-async"], Preference(True, None)),
        (["RESPOND-Async ; foo"], Preference(True, None)),
        (["wait=3"], Preference(False, 3)),
        (['wait = "3"; because="of"'], Preference(False, 3)),
        (["respond-async, wait=0"], Preference(True, 0)),
        (["handling=lenient, wait=2", "respond-async"], Preference(True, 2)),
        (["wait=2, wait=4"], Preference(False, 2)),
        (["wait=60"], Preference(False, 5)),
        (["wait=" + "9" * 5000], Preference(False, 5)),
        (["wait", "wait=-1", "wait=1.5", "wait=x", "wait=²"], None),
        (["return=minimal, ,;,=,respond-asynchronously"], None),
    ],
)
def test_what_a_client_prefers(values: list[str], preference: Preference | None) -> None:
    assert read_preference(values, 5.9) == preference


def test_a_wait_may_be_a_second_at_least() -> None:
    assert read_preference(["wait=7"], 0.1) == Preference(False, 1)


def post(
    client: httpx.Client, name: str, prefer: str, samples: Any = SAMPLES, **headers: str
) -> httpx.Response:
    told = {"Prefer": prefer, **{k.replace("_", "-"): v for k, v in headers.items()}}
    return client.post(f"/v1/models/{name}/samples", json=samples, headers=told)


@pytest.fixture
def model(client: httpx.Client, name: str) -> str:
    client.put(f"/v1/models/{name}", json={}).raise_for_status()
    return name


@pytest.mark.parametrize("call", ["samples", "asset"])
def test_respond_async_is_told_the_sequence(client: httpx.Client, model: str, call: str) -> None:
    headers = {"Prefer": "respond-async"}
    answer = client.post(f"/v1/models/{model}/{call}", json=SAMPLES, headers=headers)
    assert answer.status_code == 202
    assert answer.headers["preference-applied"] == "respond-async"
    assert answer.json() == {"model": model, "sequence": 20, "samples": 20}
    told = client.get(f"/v1/models/{model}?min_sequence=20")
    assert told.json()["sequence"] == 20


def test_within_the_wait_the_answer_is_the_answer(client: httpx.Client, model: str) -> None:
    for prefer in ("wait=5", "respond-async, wait=5"):
        answer = post(client, model, prefer)
        assert (answer.status_code, answer.headers["preference-applied"]) == (200, "wait=5")
        assert answer.json()["learned"] == 20


def test_a_refusal_is_a_refusal(client: httpx.Client, model: str) -> None:
    post(client, model, "respond-async")
    for prefer in ("respond-async", "wait=1"):
        refused = post(client, model, prefer, {"x": [[1.0]], "y": ["yes"]})
        assert refused.status_code == 422
        assert "preference-applied" not in refused.headers


def test_a_poll_under_the_same_key_is_given_the_answer(client: httpx.Client, model: str) -> None:
    accepted = post(client, model, "respond-async", Idempotency_Key="k")
    assert accepted.status_code == 202
    for prefer in ("", "respond-async", "wait=1"):
        answer = post(client, model, prefer, Idempotency_Key="k")
        assert (answer.status_code, answer.json()["learned"]) == (200, 20)
        assert answer.headers["idempotency-replayed"] == "true"
        assert answer.json()["sequence"] == accepted.json()["sequence"]
    assert client.get(f"/v1/models/{model}").json()["sequence"] == 20
