"""Replicas that have lost NATS learn nothing, and each says when it knows too little."""

import itertools
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgpack
import pytest
from websockets.sync.client import ClientConnection, connect

from tests.service.fleet.conftest import Replica, look_for_others_briefly
from tests.service.fleet.test_replicas import wait_for
from tests.service.nats import MISSING, NatsServers
from tests.service.specs import PAPERS
from wolfstream.service.engine import writer

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from wolfstream.service.cluster import members
from wolfstream.service.fleet import jetstream_journal, jetstream_log, jetstream_term

BODY = {"x": [[1, 2], [2, 1]], "y": [0, 1]}


def test_one_is_ready_for_as_long_as_it_may_know_nothing_new(tmp_path: Path):
    servers = NatsServers(tmp_path / "nats").start()
    strict, patient = (
        Replica(tmp_path / f"lag-{lag}", servers, max_lag_seconds=lag) for lag in (0, 3600)
    )
    name = led_by(strict, patient)  # else the other one would answer the stream
    try:
        for one in (strict, patient):
            one.launch()
        for one in (strict, patient):
            one.wait()
            url = f"{one.url}/v1/models/{name}"
            wait_for(lambda at=url: httpx.put(at, json=PAPERS).is_success)  # type: ignore[misc]
        wait_for(lambda: name in leads(strict))
        url = f"{strict.url}/v1/models/{name}/samples"
        wait_for(lambda: httpx.post(url, json=BODY, timeout=60).is_success)
        with stream_of(strict, name) as stream:
            assert "prediction" in predicted(stream)
            servers.kill(0)
            refused = wait_for(lambda: unready(strict))
            assert "most NATS servers have not been heard" in refused
            error = predicted(stream)["error"]
            assert (error["type"], error["status"]) == ("urn:wolfstream:not-ready", 503)
            assert "most NATS servers have not been heard" in error["detail"]
        assert unready(patient) == ""
        url = f"{patient.url}/v1/models/{name}/samples"
        answer = httpx.post(url, json=BODY, timeout=60)
        assert answer.status_code == 503, answer.text
        servers.start_one(0)
        wait_for(lambda: unready(strict) == "")
    finally:
        for one in (strict, patient):
            one.close()
        servers.close()


def test_streams_have_the_bound_of_the_leader_whoever_carries_them(tmp_path: Path):
    servers = NatsServers(tmp_path / "nats").start()
    strict, patient = (
        Replica(tmp_path / f"lag-{lag}", servers, max_lag_seconds=lag) for lag in (0, 3600)
    )
    of_strict, of_patient = led_by(strict, patient), led_by(patient, strict)
    try:
        for one in (strict, patient):
            one.launch()
        for one, name in ((strict, of_strict), (patient, of_patient)):
            one.wait()
            url = f"{one.url}/v1/models/{name}"
            wait_for(lambda at=url: httpx.put(at, json=PAPERS).is_success)  # type: ignore[misc]
        for one, name in ((strict, of_strict), (patient, of_patient)):
            wait_for(lambda of=one, model=name: model in leads(of))  # type: ignore[misc]
            url = f"{one.url}/v1/models/{name}/samples"
            wait_for(lambda at=url: httpx.post(at, json=BODY, timeout=60).is_success)  # type: ignore[misc]
        with stream_of(patient, of_strict) as refused, stream_of(strict, of_patient) as answered:
            assert "prediction" in predicted(refused)
            servers.kill(0)
            wait_for(lambda: unready(strict))
            assert predicted(refused)["error"]["type"] == "urn:wolfstream:not-ready"
            assert "prediction" in predicted(answered)
    finally:
        for one in (strict, patient):
            one.close()
        servers.close()


def led_by(replica: Replica, other: Replica) -> str:
    """Return the name of a model that a replica leads rather than the other one."""
    both = [members.Replica(one.url, True, {}, {}) for one in (replica, other)]
    names = (f"m{number}" for number in itertools.count())
    return next(name for name in names if members.ranked(name, both)[0].url == replica.url)


def leads(replica: Replica) -> list[str]:
    """Return the models that a replica leads."""
    fleet = httpx.get(f"{replica.url}/v1/fleet").json()["replicas"]
    return [name for one in fleet if one["url"] == replica.url for name in one["leads"]]


@contextmanager
def stream_of(replica: Replica, name: str) -> Iterator[ClientConnection]:
    """A websocket, whose frames are packed."""
    url = f"ws{replica.url.removeprefix('http')}/v1/models/{name}/stream"
    with connect(url, subprotocols=["wolfstream.v1.msgpack"], proxy=None) as stream:  # type: ignore[list-item]
        stream.recv()
        yield stream


def predicted(stream: ClientConnection) -> Any:
    """Return the answer to a prediction over a stream."""
    stream.send(msgpack.packb({"id": 1, "op": "predict", "x": BODY["x"]}))
    return msgpack.unpackb(stream.recv(timeout=30))


def hurry_in_the_end() -> None:
    """Let a replica that ends save for a second only, and soon give up what nobody answers."""
    look_for_others_briefly()
    writer._LAST_SECONDS = 1.0
    for module in (jetstream_journal, jetstream_log, jetstream_term):
        module.RETRY_SECONDS = 1.5


def test_one_ends_in_time_though_no_server_answers(tmp_path: Path):
    servers = NatsServers(tmp_path / "nats").start()
    alone = Replica(tmp_path / "alone", servers)
    alone.prelude = hurry_in_the_end
    try:
        alone.start()
        for name in "abc":
            url = f"{alone.url}/v1/models/{name}"
            wait_for(lambda at=url: httpx.put(at, json=PAPERS).is_success)  # type: ignore[misc]
            assert httpx.post(f"{url}/samples", json=BODY, timeout=60).is_success
        servers.kill(0, signal.SIGSTOP)
        assert alone.terminate() == 0
        assert alone.log().count("snapshot given up, journal kept") == 2
    finally:
        alone.close()
        servers.close()


def unready(replica: Replica) -> str:
    """Return why a replica is not ready; nothing where it is."""
    answer = httpx.get(f"{replica.url}/readyz", timeout=30)
    return "" if answer.is_success else str(answer.json()["detail"])
