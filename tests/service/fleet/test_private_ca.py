"""Replicas whose certificates are of a private authority verify each other."""

import ssl
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.service.fleet.conftest import Replica, look_for_leaders_for_long
from tests.service.fleet.trio import wait_for, wait_for_places
from tests.service.nats import NatsServers
from tests.service.server.test_tls import Pair, make_pair
from tests.service.specs import PAPERS

BODY = {"x": [[1, 2], [2, 1]], "y": [0, 1]}


def hear_of_others_for_long() -> None:
    """Let nothing but a neighbour that cannot be reached over HTTP move a model."""
    from wolfstream.service.cluster import members

    look_for_leaders_for_long()
    members._SILENT_SECONDS = 60.0  # a busy machine may keep a replica from announcing itself


class TlsReplica(Replica):
    """A replica that is reached over TLS, and asks over it."""

    def __init__(self, data: Path, servers: NatsServers, pair: Pair) -> None:
        files = {"tls_cert": pair.cert, "tls_key": pair.key, "fleet_ca": pair.cert}
        super().__init__(data, servers, **files)
        self.url = self.url.replace("http", "https", 1)
        self.settings["advertise"] = self.url
        trusted = ssl.create_default_context(cafile=pair.cert)
        self.client = httpx.Client(base_url=self.url, verify=trusted, timeout=30)

    def _ready(self) -> bool:
        try:
            return self.client.get("/readyz").is_success
        except httpx.TransportError:
            return False


@pytest.fixture(scope="module")
def pair(
    servers: NatsServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[TlsReplica]]:
    """Two replicas that have the same certificate."""
    folder = tmp_path_factory.mktemp("tls")
    certificate = make_pair(folder, "fleet")
    replicas = [TlsReplica(folder / str(number), servers, certificate) for number in range(2)]
    for one in replicas:
        one.prelude = hear_of_others_for_long
        one.launch()
    for one in replicas:
        one.wait()
    wait_for_places([one.client for one in replicas])
    yield replicas
    for one in replicas:
        one.client.close()
        one.close()


def test_calls_reach_the_leader_which_stays_the_same(pair: list[TlsReplica]):
    wait_for(lambda: pair[0].client.put("/v1/models/m", json=PAPERS).is_success)
    epochs, sequences = list[str](), list[int]()
    for number in range(12):
        client, headers = pair[number % 2].client, {"Idempotency-Key": uuid.uuid4().hex}
        answer = client.post("/v1/models/m/samples", json=BODY, headers=headers)
        assert answer.is_success, answer.text
        epochs.append(answer.json()["epoch"])
        sequences.append(answer.json()["sequence"])
    assert sequences == list(range(2, 26, 2))
    assert len(set(epochs)) == 1, "\n".join([str(epochs), *(one.log() for one in pair)])
    for one in pair:
        described = one.client.get("/v1/fleet").json()["replicas"]
        others = [replica["http"] for replica in described if replica["url"] != one.url]
        assert [other["answers"] for other in others] == [True]
