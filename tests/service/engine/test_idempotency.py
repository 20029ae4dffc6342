"""Exactly once over HTTP: a request that comes again under its key is answered, not learned."""

import threading
from pathlib import Path
from typing import Any

import httpx
import msgpack
import pytest

from tests.service.process import ServerProcess
from tests.service.streams import body, few_words, two_classes
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.keys import add_key

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
def test_repeated_key_gives_first_answer(client: httpx.Client, model: str, call: str) -> None:
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


def test_json_and_messagepack_of_the_same_samples_are_the_same(
    client: httpx.Client, model: str
) -> None:
    first = post(client, model, "k")
    headers = {"Idempotency-Key": "k", "Content-Type": "application/vnd.msgpack"}
    packed = client.post(
        f"/v1/models/{model}/samples", content=msgpack.packb(SAMPLES), headers=headers
    )
    assert packed.headers["idempotency-replayed"] == "true"
    assert msgpack.unpackb(packed.content) == first.json()


def test_so_are_rows_of_named_numbers(client: httpx.Client, model: str) -> None:
    samples = body(few_words(20))
    first = post(client, model, "k", samples)
    assert post(client, model, "k", samples).content == first.content
    assert sequence(client, model) == 20


@pytest.mark.parametrize(
    ("sent", "means"),
    [('"k"', "k"), (r'"a\"b\\c"', r'a"b\c'), ('"' + "x" * 255 + '"', "x" * 255), ('a"b', 'a"b')],
)
def test_a_key_may_be_a_quoted_string(
    client: httpx.Client, model: str, sent: str, means: str
) -> None:
    first = post(client, model, sent)
    assert first.status_code == 200
    again = post(client, model, means)
    assert (again.content, again.headers["idempotency-replayed"]) == (first.content, "true")


@pytest.mark.parametrize(
    "key",
    ["", "x" * 256, "two words", "a\tb", "\xfc", '""', '"', '"a', '"a"b', '"a" ', r'"\a"', '"a b"'],
)
def test_what_is_no_key_is_refused(client: httpx.Client, model: str, key: str) -> None:
    headers = {"Idempotency-Key": key.encode("latin-1")}
    if key == '"a" ':
        headers = {"Idempotency-Key": b'"a";b=1'}
    refused = client.post(f"/v1/models/{model}/samples", json=SAMPLES, headers=headers)
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:wolfstream:invalid")
    assert "Idempotency-Key" in refused.json()["detail"]
    assert sequence(client, model) == 0


def test_two_keys_for_one_request_are_refused(client: httpx.Client, model: str) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    refused = client.post(f"/v1/models/{model}/samples", json=SAMPLES, headers=headers)
    assert refused.status_code == 422


def test_a_request_that_was_refused_leaves_no_key(client: httpx.Client, model: str) -> None:
    post(client, model, "first")
    narrow = {"x": [[1.0]], "y": ["yes"]}
    assert post(client, model, "k", narrow).status_code == 422
    assert post(client, model, "k").json()["sequence"] == 40


def test_a_model_that_is_deleted_takes_its_keys_along(client: httpx.Client, model: str) -> None:
    post(client, model, "k")
    client.delete(f"/v1/models/{model}").raise_for_status()
    client.put(f"/v1/models/{model}", json={})
    assert post(client, model, "k", OTHERS).json()["sequence"] == 20


def test_duplicates_that_come_at_the_same_time_are_learned_once(
    client: httpx.Client, server: ServerProcess, model: str
) -> None:
    post(client, model, "before")
    start = threading.Barrier(8)
    answers: list[httpx.Response] = []

    def send() -> None:
        with httpx.Client(base_url=server.url, timeout=30) as own:
            own.get("/livez")
            for round_ in range(6):
                start.wait(30)
                answers.append(post(own, model, f"round {round_}".replace(" ", "-")))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sequence(client, model) == 20 + 6 * 20
    assert len({answer.content for answer in answers}) == 6
    replayed = [answer for answer in answers if "idempotency-replayed" in answer.headers]
    assert len(replayed) == 6 * 7


def test_clients_with_different_api_keys_do_not_meet(tmp_path: Path) -> None:
    own = [add_key(KeyFile(tmp_path / "data"), name, ("learn", "admin")) for name in ("a", "b")]
    server = ServerProcess(tmp_path / "data").start()
    try:
        first, second = (
            httpx.Client(
                base_url=server.url, headers={"Authorization": f"Bearer {key}"}, timeout=30
            )
            for key in own
        )
        first.put("/v1/models/m", json={})
        assert post(first, "m", "k").json()["sequence"] == 20
        other = post(second, "m", "k", OTHERS)
        assert (other.json()["sequence"], "idempotency-replayed" in other.headers) == (40, False)
        assert post(first, "m", "k").headers["idempotency-replayed"] == "true"
        first.close()
        second.close()
    finally:
        server.close()
