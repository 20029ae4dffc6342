"""Requests that once took seconds for each kilobyte: others are answered meanwhile."""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.process import ServerProcess

# Each of these requests took 7 to 35 s of processor time, during which nothing else was answered.
SOON = 3.0
LIGHT = {"working_set": None, "adaptive": None, "asset": {"dimension": 16}, "serve": "asset"}
COLUMNS = [f"column_{k}" for k in range(25_000)]


def processor_seconds(server: ServerProcess) -> float:
    """The processor time that a server has used; a busy machine makes its calls no longer by it."""
    assert server.process is not None
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def pulse(server: ServerProcess) -> Iterator[list[float]]:
    """The processor seconds of the server in each of many calls of `/livez` within the block."""
    seconds, ended = list[float](), threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            while not ended.is_set():
                began = processor_seconds(server)
                assert client.get("/livez").is_success
                seconds.append(processor_seconds(server) - began)
                time.sleep(0.01)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield seconds
    finally:
        ended.set()
        asking.join()


def wide_model(client: httpx.Client, name: str, **prepare: Any) -> str:
    """A model that has met 25,000 columns; its path."""
    path = f"/v1/models/{name}"
    client.put(path, json={**LIGHT, "prepare": prepare}).raise_for_status()
    rows = [[float(k % (2 + row)) for k in range(len(COLUMNS))] for row in range(2)]
    body = {"x": rows, "names": COLUMNS, "y": ["a", "b"]}
    client.post(f"{path}/asset", json=body).raise_for_status()
    return path


def test_repeated_names_are_refused_at_once_and_the_server_stops(server: ServerProcess):
    names = [f"n{k}" for k in range(60_000)]
    names[-1] = names[-2]
    body = json.dumps({"x": [[0.0] * len(names)], "names": names})
    narrow = json.dumps({"x": [[0.0]], "names": names})
    with closing(ServerProcess(server.data.with_name("repeated"))) as own:
        own.start()
        with httpx.Client(base_url=own.url, timeout=60) as client:
            client.put("/v1/models/m", json=LIGHT).raise_for_status()
            samples = {"x": [[0.0], [1.0]], "y": [0, 1]}
            client.post("/v1/models/m/asset", json=samples).raise_for_status()
            for detail, content in (("twice", body), ("60000 names", narrow)):
                began = time.monotonic()
                refused = client.post("/v1/models/m/predict", content=content)
                assert (refused.status_code, detail in refused.text) == (422, True)
                assert time.monotonic() - began < SOON
            for _ in range(7):  # whose clients do not wait
                with pytest.raises(httpx.TimeoutException):
                    client.post("/v1/models/m/predict", content=body, timeout=1e-3)
            rows = {"x": [[0.5]] * 20_000}
            assert client.post("/v1/models/m/predict", json=rows).is_success
        began = time.monotonic()
        assert own.terminate() == 0
        assert time.monotonic() - began < 10 * SOON


def test_large_requests_of_one_model_leave_room_to_others(tmp_path: Path):
    rows = [[float(i % 7), float(i % 5)] for i in range(3000)]
    body = json.dumps({"x": rows, "y": [0, 1] * 1500})

    def learn(url: str) -> None:
        with httpx.Client(base_url=url, timeout=60) as own, suppress(httpx.TransportError):
            while own.post("/v1/models/m/samples", content=body).status_code == 503:
                pass  # the other request has not been begun

    with closing(ServerProcess(tmp_path / "data", queue_samples=64).start()) as own:
        attack = [threading.Thread(target=learn, args=(own.url,)) for _ in range(2)]
        with httpx.Client(base_url=own.url, timeout=60) as client:
            for name, spec in (("m", {}), ("other", LIGHT)):
                client.put(f"/v1/models/{name}", json=spec).raise_for_status()
            for thread in attack:
                thread.start()
            while "wolfstream_queue_samples 3000.0" not in client.get("/metrics").text:
                assert all(thread.is_alive() for thread in attack)
            answer = client.post("/v1/models/other/asset", json={"x": [1.0], "y": 1})
            assert answer.status_code == 200, answer.text
            assert client.get("/v1/models/m").json()["sequence"] < 6000
        own.kill()
        for thread in attack:
            thread.join()


def test_unknown_columns_of_a_prediction_hold_nothing_up(
    server: ServerProcess, client: httpx.Client, name: str
):
    path = wide_model(client, name)
    row = dict.fromkeys([*COLUMNS[:10], *(f"colum_{k}" for k in range(16))], 1.0)
    with pulse(server) as seconds:
        for _ in range(5):
            answer = client.post(f"{path}/predict", json={"x": row})
    assert "did you mean" in answer.json()["warnings"][0]["message"]
    assert max(seconds) < SOON


def test_unknown_columns_of_samples_hold_no_other_model_up(
    server: ServerProcess, client: httpx.Client, name: str
):
    path, other = wide_model(client, name, names="strict"), f"/v1/models/other-{name}"
    client.put(other, json=LIGHT).raise_for_status()
    row, waits = {**dict.fromkeys(COLUMNS[:3], 1.0), "colum_7": 1.0}, list[float]()

    def refuse() -> None:
        with httpx.Client(base_url=server.url, timeout=60) as own:
            for _ in range(10):
                assert own.post(f"{path}/asset", json={"x": row, "y": "a"}).status_code == 422

    attack = [threading.Thread(target=refuse) for _ in range(16)]
    for thread in attack:
        thread.start()
    with pulse(server) as seconds:
        while any(thread.is_alive() for thread in attack):
            began = processor_seconds(server)
            client.post(f"{other}/asset", json={"x": [1.0], "y": 1}).raise_for_status()
            waits.append(processor_seconds(server) - began)
    assert max(waits) < SOON
    assert max(seconds) < SOON


def test_first_rows_beside_many_names_are_read_at_once(client: httpx.Client, name: str):
    path = f"/v1/models/{name}"
    client.put(path, json=LIGHT).raise_for_status()
    rows = [{"city": "Rome"}] * 120 + [{f"n{i}_{k}": 1 for k in range(20_000)} for i in range(20)]
    began = time.monotonic()
    answer = client.post(f"{path}/asset", json={"x": rows, "y": [0] * len(rows)}, timeout=60)
    assert answer.status_code == 422
    assert time.monotonic() - began < 2 * SOON
