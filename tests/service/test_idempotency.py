"""Exactly once over HTTP: a request that comes again under its key is answered, not learned."""

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgpack
import pytest

from service.keys import add_key
from tests.service.process import ServerProcess
from tests.service.streams import body, few_words, part, two_classes

SAMPLES = body(two_classes(20))
OTHERS = body(two_classes(20, seed=1))


def post(
    client: httpx.Client, name: str, key: str, samples: Any = SAMPLES, call: str = "samples"
) -> httpx.Response:
    return client.post(f"/v1/models/{name}/{call}", json=samples, headers={"Idempotency-Key": key})


def sequence(client: httpx.Client, name: str) -> int:
    return int(client.get(f"/v1/models/{name}").json()["sequence"])


@pytest.fixture
def model(client: httpx.Client, name: str) -> str:
    client.put(f"/v1/models/{name}", json={}).raise_for_status()
    return name


@pytest.mark.parametrize("call", ["samples", "asset"])
def test_the_same_key_and_body_again_give_the_first_answer_and_learn_nothing(
    client: httpx.Client, model: str, call: str
) -> None:
    first = post(client, model, "k", call=call)
    assert first.status_code == 200
    assert "idempotency-replayed" not in first.headers
    post(client, model, "between", OTHERS)
    again = post(client, model, "k", call=call)
    assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true")
    assert again.content == first.content
    assert sequence(client, model) == 40


def test_without_a_key_the_same_samples_are_learned_again(client: httpx.Client, model: str) -> None:
    for _ in range(2):
        answer = client.post(f"/v1/models/{model}/samples", json=SAMPLES)
        assert "idempotency-replayed" not in answer.headers
    assert sequence(client, model) == 40


def test_other_keys_are_other_requests(client: httpx.Client, model: str) -> None:
    for key in ("k", "K", "k2", "!~", "x" * 255):
        assert "idempotency-replayed" not in post(client, model, key).headers
    assert sequence(client, model) == 100


def test_keys_are_a_models_own(client: httpx.Client, name: str) -> None:
    for model in (name, f"{name}.2"):
        client.put(f"/v1/models/{model}", json={})
        assert post(client, model, "k").json()["sequence"] == 20


@pytest.mark.parametrize(
    ("samples", "call"), [(OTHERS, "samples"), (SAMPLES, "asset")], ids=["samples", "call"]
)
def test_another_request_under_the_key_is_refused(
    client: httpx.Client, model: str, samples: Any, call: str
) -> None:
    first = post(client, model, "k")
    refused = post(client, model, "k", samples, call)
    assert refused.status_code == 422
    assert refused.json()["type"] == "urn:wolfstream:idempotency-key-reused"
    assert post(client, model, "k").content == first.content
    assert sequence(client, model) == 20
