"""What a health check says of a server that answers predictions and cannot write its journal."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.service.process import ServerProcess

SAMPLES = {"x": [[0.0, 1.0], [1.0, 0.0]] * 4, "y": ["a", "b"] * 4}


@pytest.fixture(params=["0", "2"], ids=["one process", "workers"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerProcess]:
    with closing(ServerProcess(tmp_path / "data", workers=request.param)) as running:
        running.start()
        yield running


def succeeded(response: httpx.Response) -> httpx.Response:
    assert response.status_code == 200, response.text
    return response


def test_journal_that_is_gone_refuses_samples_alone(server: ServerProcess) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        # The worker that has this connection may still be loading its code.
        while client.get("/readyz").status_code == 503:
            time.sleep(0.1)
        assert client.put("/v1/models/m").status_code == 201
        assert client.post("/v1/models/m/samples", json=SAMPLES).status_code == 200
        assert "learning" not in succeeded(client.get("/readyz?learning=true")).json()
        journal = server.data / "log.sqlite"
        journal.rename(server.data / "moved")
        said = client.get("/readyz")
        assert said.status_code == 200
        assert "deleted, moved or replaced" in said.json()["learning"]
        assert str(server.data) not in said.text  # this call needs no key
        assert client.get("/readyz?learning=false").status_code == 200
        refused = client.get("/readyz?learning=true")
        assert refused.status_code == 503
        assert "samples are refused, predictions answered" in refused.json()["detail"]
        assert client.post("/v1/models/m/samples", json=SAMPLES).status_code == 503
        assert client.post("/v1/models/m/predict", json={"x": [[0.0, 1.0]]}).status_code == 200
        assert "wolfstream_journal_obstacle 1.0" in client.get("/metrics").text
        (server.data / "moved").rename(journal)
        assert client.post("/v1/models/m/samples", json=SAMPLES).status_code == 200
        assert "learning" not in succeeded(client.get("/readyz?learning=true")).json()
        assert "wolfstream_journal_obstacle 0.0" in client.get("/metrics").text
