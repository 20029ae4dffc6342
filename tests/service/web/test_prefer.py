"""`Prefer`: an answer before the samples are learned, once they are on disk."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.process import ServerProcess
from tests.service.streams import body, two_classes
from wolfstream.service.errors import ModelBroken
from wolfstream.service.web.formats.prefer import (
    Acknowledgement,
    Preference,
    acknowledge,
    read_preference,
)

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
    told = answer.json()
    assert told.pop("epoch")
    assert told == {"model": model, "sequence": 20, "samples": 20}
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


# -- waiting -----------------------------------------------------------------------------

DURABLE = {"model": "m", "sequence": 1, "samples": 1}


def wait(
    preference: Preference | None, answered: float, durable: float, answer: Any = None
) -> Acknowledgement:
    """Return the acknowledgement if both come after so many seconds; the answer may fail."""

    async def run() -> Acknowledgement:
        loop = asyncio.get_running_loop()
        futures = loop.create_future(), loop.create_future()

        def deliver(future: Any, result: Any) -> None:
            if isinstance(result, Exception):
                future.set_exception(result)
            elif not future.done():
                future.set_result(result)

        loop.call_later(answered, deliver, futures[0], answer or {"learned": 1})
        loop.call_later(durable, deliver, futures[1], DURABLE)
        return await acknowledge(futures[0], futures[1] if preference else None, preference)

    return asyncio.run(run())


@pytest.mark.parametrize("respond_async", [False, True])
def test_durable_in_time_and_not_learned(respond_async: bool) -> None:
    preference = Preference(respond_async, 1)
    told = wait(preference, answered=60, durable=0)
    assert told == (DURABLE, 202, {"Preference-Applied": preference.header_value()})


def test_202_is_never_said_before_it_is_durable() -> None:
    for preference in (Preference(True, None), Preference(False, 0), Preference(True, 0)):
        assert wait(preference, answered=60, durable=0.2).status == 202
    assert wait(Preference(False, 0), answered=0.1, durable=60).answer == {"learned": 1}


def test_respond_async_does_not_wait_for_the_answer() -> None:
    preference = Preference(True, None)
    told = wait(preference, answered=60, durable=0)
    assert (told.status, told.headers) == (202, {"Preference-Applied": "respond-async"})


def test_what_is_not_delivered_as_durable_is_answered() -> None:
    told = wait(Preference(True, None), 0, 60, {"learned": 1, "replayed": True})
    assert told == ({"learned": 1}, 200, {"Idempotency-Replayed": "true"})


def test_only_awaited_errors_are_raised() -> None:
    for preference in (None, Preference(True, None), Preference(False, 1)):
        with pytest.raises(ModelBroken):
            wait(preference, 0, 60, ModelBroken("broken"))
    assert wait(Preference(True, None), 0, 0, ModelBroken("broken")).status == 202


# -- min_sequence ------------------------------------------------------------------------


def test_reading_what_was_accepted_waits_for_it_on_every_call(
    client: httpx.Client, model: str
) -> None:
    post(client, model, "")
    sequence = 20
    row = {"x": [[1.0, 1.0, 1.0, 1.0]]}
    tensor = {"name": "x", "shape": [1, 4], "datatype": "FP64", "data": [1, 1, 1, 1]}

    def learn() -> int:
        accepted = post(client, model, "respond-async")
        assert accepted.status_code == 202
        return int(accepted.json()["sequence"])

    sequence = learn()
    told = client.post(f"/v1/models/{model}/predict?min_sequence={sequence}", json=row)
    assert told.json()["sequence"] == sequence
    sequence = learn()
    infer = {"inputs": [tensor], "parameters": {"min_sequence": sequence}}
    told = client.post(f"/v2/models/{model}/infer", json=infer)
    assert told.json()["parameters"]["sequence"] == sequence
    sequence = learn()
    told = client.get(f"/v1/models/{model}?min_sequence={sequence}")
    assert told.json()["sequence"] == sequence


def test_what_is_not_reached_in_time_is_to_be_tried_again(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", wait_seconds=0.1).start()
    try:
        with httpx.Client(base_url=server.url, timeout=30) as client:
            client.put("/v1/models/m", json={})
            post(client, "m", "")
            row = {"x": [[1.0, 1.0, 1.0, 1.0]]}
            tensor = {"name": "x", "shape": [1, 4], "datatype": "FP64", "data": [1, 1, 1, 1]}
            infer = {"inputs": [tensor], "parameters": {"min_sequence": 21}}
            for answer in (
                client.post("/v1/models/m/predict?min_sequence=21", json=row),
                client.post("/v2/models/m/infer", json=infer),
                client.get("/v1/models/m?min_sequence=21"),
            ):
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
                assert "not yet at 21" in answer.text
            assert client.get("/v1/models/m?min_sequence=-1").status_code == 422
    finally:
        server.close()
