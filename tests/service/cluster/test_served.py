"""A server with workers: whichever process answers, it is one server."""

import concurrent.futures
import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.sync.client import connect

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.keys import add_key, revoke_key
from wolfstream.service.cluster import processes

# Of so many new connections each worker gets some, but for one run in two thousand.
ENOUGH = 12


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with two workers."""
    data = tmp_path_factory.mktemp("workers") / "data"
    running = ServerProcess(data, workers=2).start()
    yield running
    running.close()


def everywhere(server: ServerProcess, method: str, path: str, **given: Any) -> list[httpx.Response]:
    """The responses to a request that is sent over connections to all workers."""
    return [
        httpx.request(method, f"{server.url}{path}", timeout=30, **given) for _ in range(ENOUGH)
    ]


def rows(n: int, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    return {"x": X.tolist(), "y": ["p" if row[0] * row[1] > 0 else "n" for row in X]}


def learned(server: ServerProcess, name: str, n: int = 60, **spec: Any) -> int:
    """The sequence of a new model that has learned samples, each request over a new connection."""
    path = f"/v1/models/{name}"
    assert httpx.put(server.url + path, json=spec, timeout=30).status_code == 201
    samples = rows(n)
    sequence = 0
    for start in range(0, n, 20):
        part = {key: values[start : start + 20] for key, values in samples.items()}
        response = httpx.post(f"{server.url}{path}/samples", json=part, timeout=60)
        assert response.status_code == 200, response.text
        assert response.json()["sequence"] == sequence + 20
        sequence += 20
    return sequence


def test_two_workers_answer(server: ServerProcess):
    metrics = httpx.get(f"{server.url}/metrics").text
    assert "wolfstream_workers 2.0" in metrics


@pytest.mark.parametrize("spec", [PAPERS, {}], ids=["papers", "default"])
def test_all_workers_predict_the_bits_of_the_leader(
    server: ServerProcess, name: str, spec: dict[str, Any]
):
    sequence = learned(server, name, **spec)
    asked = {"x": rows(5, seed=1)["x"]}
    path = f"/v1/models/{name}/predict?min_sequence={sequence}"
    answers = everywhere(server, "POST", path, json=asked)
    assert {answer.status_code for answer in answers} == {200}
    # A version of the Open Inference Protocol is asked of the leader.
    tensor = {"name": "x", "datatype": "FP64", "shape": [5, 4], "data": asked["x"]}
    of_leader = httpx.post(
        f"{server.url}/v2/models/{name}/versions/1/infer", json={"inputs": [tensor]}, timeout=60
    ).json()
    decision = next(one["data"] for one in of_leader["outputs"] if one["name"] == "decision")
    assert [answer.json()["decision"] for answer in answers] == [decision] * ENOUGH
    assert {answer.json()["sequence"] for answer in answers} == {sequence}


def test_what_was_acknowledged_is_read_over_any_connection(server: ServerProcess, name: str):
    learned(server, name, 20, **PAPERS)
    url = f"{server.url}/v1/models/{name}"
    for k in range(8):
        part = rows(1, seed=10 + k)
        sequence = httpx.post(f"{url}/samples", json=part).json()["sequence"]
        asked = {"x": part["x"]}
        answer = httpx.post(f"{url}/predict?min_sequence={sequence}", json=asked, timeout=30)
        assert answer.json()["sequence"] >= sequence


def test_a_model_can_predict_as_soon_as_its_samples_are_acknowledged(
    server: ServerProcess, name: str
):
    httpx.put(f"{server.url}/v1/models/{name}", json=PAPERS)
    asked = {"x": [[0.0, 0.0, 0.0, 0.0]]}
    untrained = everywhere(server, "POST", f"/v1/models/{name}/predict", json=asked)
    assert {answer.status_code for answer in untrained} == {409}
    httpx.post(f"{server.url}/v1/models/{name}/samples", json=rows(20))
    answers = everywhere(server, "POST", f"/v1/models/{name}/predict", json=asked)
    assert {answer.status_code for answer in answers} == {200}


def test_a_model_that_was_made_or_deleted_is_so_everywhere(server: ServerProcess, name: str):
    for spec in (PAPERS, {**PAPERS, "working_set": {"C": 3.0}}):
        learned(server, name, 20, **spec)
        part = everywhere(server, "POST", f"/v1/models/{name}/samples", json=rows(1))
        assert {answer.status_code for answer in part} == {200}
        assert httpx.delete(f"{server.url}/v1/models/{name}").status_code == 204
        gone = everywhere(server, "POST", f"/v1/models/{name}/predict", json={"x": [[0.0] * 4]})
        assert {answer.json()["type"] for answer in gone} == {"urn:wolfstream:unknown-model"}


def test_a_request_under_a_key_is_learned_once_whoever_takes_it(server: ServerProcess, name: str):
    sequence = learned(server, name, 20, **PAPERS)
    headers = {"Idempotency-Key": '"once"'}
    path = f"/v1/models/{name}/samples"
    answers = everywhere(server, "POST", path, json=rows(3), headers=headers)
    assert {answer.json()["sequence"] for answer in answers} == {sequence + 3}
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == ENOUGH - 1
    other = httpx.post(f"{server.url}{path}", json=rows(4), headers=headers)
    assert other.status_code == 422


def test_samples_are_acknowledged_before_they_are_learned(server: ServerProcess, name: str):
    learned(server, name, 20, **PAPERS)
    url = f"{server.url}/v1/models/{name}/samples"
    answer = httpx.post(url, json=rows(2), headers={"Prefer": "respond-async"})
    assert answer.status_code == 202
    assert answer.json()["sequence"] == 22


def test_what_a_model_refuses_is_refused_in_the_leaders_words(server: ServerProcess, name: str):
    learned(server, name, 20, **PAPERS)
    wrong = {"x": [[1.0, 2.0]], "y": ["p"]}
    answer = httpx.post(f"{server.url}/v1/models/{name}/samples", json=wrong)
    assert answer.status_code == 422
    assert answer.json()["errors"] == [
        {"row": 0, "pointer": "/x/0", "detail": "has 2 numbers, the model's rows have 4"}
    ]


def test_an_epoch_of_before_is_another_state(server: ServerProcess, name: str):
    sequence = learned(server, name, 20, **PAPERS)
    url = f"{server.url}/v1/models/{name}"
    assert httpx.post(f"{url}/snapshot", timeout=30).status_code == 201
    before = httpx.get(url).json()["epoch"]
    httpx.post(f"{url}/samples", json=rows(5))
    back = httpx.post(f"{url}/rollback", json={"sequence": sequence}, timeout=30)
    assert back.status_code == 200, back.text
    epoch = back.json()["epoch"]
    asked = {"x": [[0.0] * 4]}
    now = everywhere(
        server, "POST", f"/v1/models/{name}/predict?min_sequence={epoch}:1", json=asked
    )
    assert {(answer.status_code, answer.json()["epoch"]) for answer in now} == {(200, epoch)}
    ago = everywhere(
        server, "POST", f"/v1/models/{name}/predict?min_sequence={before}:1", json=asked
    )
    assert {answer.json()["type"] for answer in ago} == {"urn:wolfstream:another-state"}


def test_a_promoted_challenger_serves_everywhere(server: ServerProcess, name: str):
    learned(server, name, 20, **PAPERS)
    url = f"{server.url}/v1/models/{name}"
    body = {"follows": name, **PAPERS, "working_set": None, "serve": "asset"}
    made = httpx.put(f"{url}-b", json=body, timeout=60)
    assert made.status_code == 201, made.text
    httpx.post(f"{url}/samples", json=rows(20, seed=2), timeout=60)
    asked = {"x": [[0.0] * 4]}
    path = f"/v1/models/{name}/predict"
    assert {a.json()["head"] for a in everywhere(server, "POST", path, json=asked)} == {
        "working_set"
    }
    done = httpx.post(f"{url}/promote", json={"model": f"{name}-b"}, timeout=60)
    assert done.status_code == 200, done.text
    path += f"?min_sequence={done.json()['epoch']}:1"
    now = everywhere(server, "POST", path, json=asked)
    assert {answer.json().get("head") for answer in now} == {"asset"}, now[0].text


def test_labels_come_for_rows_that_another_worker_predicted(server: ServerProcess, name: str):
    learned(server, name, 20, pending={}, **PAPERS)
    url = f"{server.url}/v1/models/{name}"
    for k in range(ENOUGH):
        asked = {"x": rows(1, seed=k)["x"], "ids": [f"row {k}"]}
        assert httpx.post(f"{url}/predict", json=asked, timeout=30).status_code == 200
        answer = httpx.post(f"{url}/labels", json={"ids": [f"row {k}"], "y": ["p"]})
        assert answer.json()["results"]["status"] == ["learned"]


def test_metrics_are_those_of_all_workers(server: ServerProcess, name: str):
    learned(server, name, 20, **PAPERS)
    everywhere(server, "POST", f"/v1/models/{name}/predict", json={"x": rows(2)["x"]})
    metrics = httpx.get(f"{server.url}/metrics").text
    predicted = f'wolfstream_rows_predicted_total{{head="working_set",model="{name}"}} '
    assert f"{predicted}{2.0 * ENOUGH}" in metrics
    learned_here = f'wolfstream_samples_learned_total{{head="working_set",model="{name}"}} 20.0'
    assert learned_here in metrics


def test_streams_end_and_are_counted_at_any_worker(server: ServerProcess, name: str):
    learned(server, name, 20, **PAPERS)
    url = f"{server.url.replace('http', 'ws')}/v1/models/{name}/stream"
    with connect(url) as stream:
        assert json.loads(stream.recv())["hello"]["sequence"] == 20
        samples = rows(5, seed=3)
        for k in range(5):
            frame = {"id": k, "op": "learn", "x": samples["x"][k], "y": samples["y"][k]}
            stream.send(json.dumps(frame))
        answers = [json.loads(stream.recv()) for _ in range(5)]
        assert [answer["sequence"] for answer in answers] == [21, 22, 23, 24, 25]
        asked = {"id": 9, "op": "predict", "x": samples["x"], "min_sequence": 25}
        stream.send(json.dumps(asked))
        assert json.loads(stream.recv())["sequence"] == 25
        until(lambda: "wolfstream_streams 1.0" in httpx.get(f"{server.url}/metrics").text)


def workers_of(server: ServerProcess) -> list[int]:
    """The process ids of a server's workers."""
    assert server.process is not None
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text()
    return [
        int(child)
        for child in children.split()
        if b"wolfstream.service.server.worker" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


class Load:
    """Clients that post single samples over connections of their own, and begin new ones."""

    def __init__(self, server: ServerProcess, name: str, clients: int = 4) -> None:
        self.acknowledged: set[int] = set()
        self.failures: list[str] = []
        self._url = f"{server.url}/v1/models/{name}/samples"
        self._stopping = False
        self._pool = concurrent.futures.ThreadPoolExecutor(clients)
        self._running = [self._pool.submit(self._run, k) for k in range(clients)]

    def stop(self) -> None:
        self._stopping = True
        for one in self._running:
            one.result()
        self._pool.shutdown()

    def _run(self, seed: int) -> None:
        sample = rows(1, seed)
        while not self._stopping:
            try:
                with httpx.Client(timeout=30) as client:
                    while not self._stopping:
                        answer = client.post(self._url, json=sample)
                        if answer.status_code == 200:
                            self.acknowledged.add(answer.json()["sequence"])
                        else:
                            self.failures.append(answer.text)
                            time.sleep(0.05)
            except httpx.TransportError as error:
                self.failures.append(repr(error))
                time.sleep(0.05)


def until(condition: Any, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_killed_worker_is_replaced_and_loses_nothing(server: ServerProcess, name: str):
    sequence = learned(server, name, 20, **PAPERS)
    load = Load(server, name)
    until(lambda: len(load.acknowledged) > 50)
    before = workers_of(server)
    os.kill(before[0], signal.SIGKILL)
    until(lambda: len(workers_of(server)) == 2 and before[0] not in workers_of(server))
    load.stop()
    # The new worker may have to load all that it runs first.
    now = httpx.get(f"{server.url}/v1/models/{name}", timeout=120).json()["sequence"]
    assert load.acknowledged <= set(range(sequence + 1, now + 1))
    # Each client had one request under way, at most.
    assert now - sequence - len(load.acknowledged) <= 4
    answers = everywhere(server, "POST", f"/v1/models/{name}/samples", json=rows(1))
    assert {answer.status_code for answer in answers} == {200}


def _ends_silent_workers_soon() -> None:
    processes._SILENT_SECONDS = 3.0


def test_worker_that_is_stopped_is_replaced(tmp_path: Path, name: str):
    """The system gives it connections until it ends, and nobody would answer them."""
    server = ServerProcess(tmp_path / "data", workers=2)
    server.prelude = _ends_silent_workers_soon
    with closing(server):
        server.start()
        learned(server, name, 20, **PAPERS)
        stopped = workers_of(server)[0]
        os.kill(stopped, signal.SIGSTOP)
        until(lambda: len(workers_of(server)) == 2 and stopped not in workers_of(server))
        assert f"worker does not answer, ending it: pid={stopped}" in server.log()
        answers = everywhere(server, "POST", f"/v1/models/{name}/samples", json=rows(1))
        assert {answer.status_code for answer in answers} == {200}


def test_workers_outlive_a_pause_of_all_processes(tmp_path: Path, name: str):
    server = ServerProcess(tmp_path / "data", workers=2)
    server.prelude = _ends_silent_workers_soon
    with closing(server):
        server.start()
        learned(server, name, 20, **PAPERS)
        workers = workers_of(server)
        everyone = [server.process.pid, *workers]
        for pid in everyone:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(4.0)
        for pid in everyone:
            os.kill(pid, signal.SIGCONT)
        time.sleep(2.0)
        assert sorted(workers_of(server)) == sorted(workers)


def test_a_killed_leader_takes_its_workers_along_and_loses_nothing(tmp_path: Path, name: str):
    server = ServerProcess(tmp_path / "data", workers=2).start()
    try:
        learned(server, name, 20, **PAPERS)
        load = Load(server, name)
        until(lambda: len(load.acknowledged) > 50)
        workers = workers_of(server)
        server.kill()
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
        load.stop()
        server.settings["workers"] = 1  # which is none beside the one that learns
        server.start()
        now = httpx.get(f"{server.url}/v1/models/{name}").json()["sequence"]
        assert load.acknowledged <= set(range(now + 1))
        assert now - 20 - len(load.acknowledged) <= 4
    finally:
        server.close()


def test_sigterm_answers_what_was_accepted_and_leaves_no_process(tmp_path: Path, name: str):
    server = ServerProcess(tmp_path / "data", workers=2).start()
    try:
        learned(server, name, 20, **PAPERS)
        load = Load(server, name)
        until(lambda: len(load.acknowledged) > 50)
        workers = workers_of(server)
        assert server.terminate() == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
        load.stop()
        server.settings["workers"] = 1  # which is none beside the one that learns
        server.start()
        now = httpx.get(f"{server.url}/v1/models/{name}").json()["sequence"]
        # What was under way was answered: with the sequence, or with a reason.
        assert load.acknowledged == set(range(21, now + 1))
    finally:
        server.close()


def test_keys_and_limits_are_those_of_the_whole_server(tmp_path: Path, name: str):
    server = ServerProcess(tmp_path / "data", workers=2, connections=6)
    keys = KeyFile(server.data)
    server.data.mkdir()
    key = add_key(keys, "ops", ("admin",))
    limited = add_key(keys, "sensors", ("learn",), samples_per_second=20)
    server.start()
    try:
        headers = {"Authorization": f"Bearer {key}"}
        url = f"{server.url}/v1/models/{name}"
        assert httpx.put(url, json=PAPERS, headers=headers).status_code == 201
        own = {"Authorization": f"Bearer {limited}"}

        def statuses(headers: dict[str, str]) -> set[int]:
            path = f"/v1/models/{name}/predict"
            asked = {"x": rows(1)["x"]}
            answers = everywhere(server, "POST", path, json=asked, headers=headers)
            return {answer.status_code for answer in answers}

        assert statuses({}) == {401}
        # A request may take more than there is, which is paid back: for all workers alike.
        taken = httpx.post(f"{url}/samples", json=rows(2000), headers=own, timeout=60)
        assert taken.status_code == 200
        until(lambda: statuses(own) == {429}, 5.0)
        revoke_key(keys, "sensors")
        until(lambda: statuses(own) == {401}, 3.0)
        with contextlib.ExitStack() as stack:
            for _ in range(6):
                held = stack.enter_context(httpx.Client(timeout=30))
                assert held.get(url, headers=headers).status_code == 200
            # Connections that nobody uses give way, in whichever process they are.
            until(lambda: statuses(headers) == {200}, 5.0)
    finally:
        server.close()
