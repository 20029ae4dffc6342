"""Forged model files over HTTP: each is refused, or is a model that answers and learns on."""

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import msgpack
import numpy as np
import pytest

from tests.service.forging import Forgery, each_forgery, forged, state_of, streams
from tests.service.process import ServerProcess
from wolfstream.service.samples.record import from_prediction_record, to_prediction_record
from wolfstream.service.storage.snapshot_format import encode_state

SEED = int(os.environ.get("HARD_SEED", "20261126"))
ROOM = {"state_bytes": 64 << 20, "features": 20_000, "classes": 20}
# Models of forged files that are kept until the server starts again.
_KEPT = 20
OCTETS = {"content-type": "application/octet-stream"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("forged") / "data", **ROOM).start()
    yield running
    running.close()


def test_a_forged_file_is_refused_or_a_model(server: ServerProcess) -> None:
    told = campaign(server, 150, SEED)
    assert told["refused"] > told["accepted"] > 0


NAMES, NAN = ["degrees", "side"], math.nan


def _named(names: Any, place: list[int], value: list[float], texts: Any, text: list[int]) -> Any:
    """A row by name as a record has it."""
    parts = np.array([2], "<u4"), np.array(place, "<u4"), np.array(value, "<f8")
    return [names, *(part.tobytes() for part in parts), texts, np.array(text, "<i4").tobytes(), b""]


def _cells(names: Any, texts: Any, text: list[int]) -> Any:
    """A row of a table as a record has it."""
    numbers = np.array([1.0, NAN], "<f8").tobytes()
    return [names, [1, 2], numbers, texts, np.array(text, "<i4").tobytes(), b""]


ROWS: dict[str, Any] = {
    "a place before the first text": _named(NAMES, [0, 1], [1.0, NAN], ["north"], [-1, -9]),
    "a name twice in a row": _named(NAMES, [0, 0], [1.0, NAN], ["north"], [-1, 0]),
    "equal names": _named(["side", "side"], [0, 1], [1.0, NAN], ["north"], [-1, 0]),
    "names that are none": _named([None, [1]], [0, 1], [1.0, NAN], ["north"], [-1, 0]),
    "a long name": _named(["side", "x" * 9999], [0, 1], [1.0, NAN], ["north"], [-1, 0]),
    "a text that is none": _named(NAMES, [0, 1], [1.0, NAN], [5], [-1, 0]),
    "a text and a number": _named(NAMES, [0, 1], [1.0, 2.0], ["north"], [-1, 0]),
    "cells before the first text": _cells(NAMES, ["north"], [-1, -9]),
    "columns of one name": _cells(["side", "side"], ["north"], [-1, 0]),
    "columns without names": _cells([1, 2], ["north"], [-1, 0]),
    "texts of cells that are none": _cells(NAMES, [7], [-1, 0]),
    "no columns": [[1, 0], b"", b""],
}
ANSWERS = {"a table": (None, [1], math.inf, {"a": 1}), "numbers": ([1], "warm", NAN, math.inf)}


def _waiting(name: str, row: Any = None, **changed: Any) -> bytes:
    """A model's file with one row that waits, or none: its rows, or parts of it, are changed."""
    state = state_of(name)
    numbers, ((record, _),), settled = msgpack.unpackb(state.arrays["pending"].tobytes())
    predicted = from_prediction_record(record)
    rows = predicted.rows if row is None else msgpack.packb(row)
    n = len(predicted.ids) if row is None else 1
    predicted = predicted._replace(
        ids=predicted.ids[:n], rows=rows, prediction=predicted.prediction[:n]
    )._replace(**changed)
    packed = msgpack.packb([numbers, [[to_prediction_record(predicted), bytes(n)]], settled])
    arrays = {**state.arrays, "pending": np.frombuffer(packed, np.uint8)}
    return b"".join(encode_state(state._replace(arrays=arrays)))


def _upload(client: httpx.Client, content: bytes) -> httpx.Response:
    return client.put("/v1/models/w/state", content=content, headers=OCTETS)


@pytest.mark.parametrize("what", ROWS)
def test_rows_that_no_request_brings_do_not_wait(server: ServerProcess, what: str) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for name in ("a table", "default"):
            answer = _upload(client, _waiting(name, ROWS[what]))
            assert (answer.status_code, plain(answer)["type"]) == (
                422,
                "urn:wolfstream:unusable-state",
            )


@pytest.mark.parametrize("name", ANSWERS)
def test_rows_that_wait_have_predictions_that_models_make(server: ServerProcess, name: str) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for answer in ANSWERS[name]:
            first = from_prediction_record(
                msgpack.unpackb(state_of(name).arrays["pending"].tobytes())[1][0][0]
            ).prediction
            refused = _upload(client, _waiting(name, prediction=[answer, *first[1:]]))
            assert (refused.status_code, plain(refused)["type"]) == (
                422,
                "urn:wolfstream:unusable-state",
            )
        _upload(client, _waiting(name)).raise_for_status()
        y = streams()[name].body(0, 1)["y"]
        labels = client.post("/v1/models/w/labels", json={"ids": ["a"], "y": y})
        assert plain(labels)["results"]["status"] == ["learned"]
        client.delete("/v1/models/w").raise_for_status()


def campaign(server: ServerProcess, files: int, seed: int) -> Counter[str]:
    """Post so many forged files, and use what becomes of them; how many were what."""
    told, names = Counter[str](), list(streams())
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for i in range(files):
            name = names[i % len(names)]
            forgery = forged(state_of(name), np.random.default_rng([seed, i]))
            try:
                told[_one_file(client, name, forgery)] += 1
            except (AssertionError, httpx.TransportError) as error:
                raise AssertionError(f"file {i} of seed {seed}: {name}: {forgery.what}") from error
    return told


def each_file(server: ServerProcess, name: str, chosen: Callable[[int], bool]) -> Counter[str]:
    """Post each forgery of an array whose number is chosen; how many were what.

    Some of the models that become of them are kept, restart with the server, and are used again.
    """
    told, kept = Counter[str](), list[str]()
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for i, forgery in enumerate(each_forgery(state_of(name))):
            if not chosen(i):
                continue
            try:
                told[_one_file(client, name, forgery)] += 1
                if len(kept) < _KEPT and _is_kept(client, f"kept-{len(kept)}", forgery):
                    kept.append(forgery.what)
            except (AssertionError, httpx.HTTPError) as error:
                raise AssertionError(f"{name}: {forgery.what}") from error
    server.kill()
    server.start()
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for i, what in enumerate(kept):
            try:
                _use(client, name, f"kept-{i}")
            except AssertionError as error:
                raise AssertionError(f"{name}, after a restart: {what}") from error
            client.delete(f"/v1/models/kept-{i}").raise_for_status()
    return told


def _is_kept(client: httpx.Client, model: str, forgery: Forgery) -> bool:
    """Upload a file again, learn a sample, and upload what the model is then."""
    content = b"".join(encode_state(forgery.state))
    if client.put(f"/v1/models/{model}/state", content=content, headers=OCTETS).is_error:
        return False
    saved = client.get(f"/v1/models/{model}/state").raise_for_status().content
    client.put("/v1/models/m/state", content=saved, headers=OCTETS).raise_for_status()
    client.delete("/v1/models/m").raise_for_status()
    return True


def _one_file(client: httpx.Client, name: str, forgery: Forgery) -> str:
    content = b"".join(encode_state(forgery.state))
    answer = client.put("/v1/models/m/state", content=content, headers=OCTETS)
    told = plain(answer)
    if answer.status_code != 201:
        assert (answer.status_code, told["type"]) == (422, "urn:wolfstream:unusable-state")
        return "refused"
    _use(client, name)
    metrics = client.get("/metrics")
    assert metrics.status_code == 200
    assert "wolfstream_models_without_metrics 0.0" in metrics.text
    client.delete("/v1/models/m").raise_for_status()
    return "accepted"


def _use(client: httpx.Client, name: str, model: str = "m") -> None:
    """Predict, learn one sample and some more, and look, as the model's users do."""
    heads = _described(client, model)["heads"]
    calls = ["samples", "asset"] if "asset" in heads else ["samples"]
    for start, stop in ((0, 1), (1, 2), (2, 50)):
        body = streams()[name].body(start, stop)
        for call in calls:
            _answered(client.post(f"/v1/models/{model}/{call}", json=body))
        for head in heads:
            asked = {"x": body["x"], "probability": True}
            path = f"/v1/models/{model}/predict"
            _answered(client.post(path, params={"head": head}, json=asked))
    y = streams()[name].body(0, 3)["y"]
    for ids in (["a"], ["b", 3]):
        _answered(client.post(f"/v1/models/{model}/labels", json={"ids": ids, "y": y[: len(ids)]}))
    described = _described(client, model)
    assert described["status"] == "ok", described["notice"]
    _answered(client.get(f"/v1/models/{model}/learners"))
    _answered(client.get(f"/v1/models/{model}/history"))


def _described(client: httpx.Client, model: str) -> Any:
    answer = client.get(f"/v1/models/{model}")
    assert answer.status_code == 200, answer.text[:500]
    return plain(answer)


def _answered(answer: httpx.Response) -> None:
    plain(answer)
    assert answer.status_code < 500, answer.text[:500]


def plain(answer: httpx.Response) -> Any:
    """What a response says, in which each number is one."""

    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} in {answer.text[:300]}")

    return json.loads(answer.text, parse_constant=refuse)
