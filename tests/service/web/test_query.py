"""Query parameters that a route does not know."""

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.service.access.test_keys import problem
from tests.service.process import ServerProcess


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/models"),
        ("GET", "/v1/models/m"),
        ("PUT", "/v1/models/m"),
        ("DELETE", "/v1/models/m"),
        ("POST", "/v1/models/m/samples"),
        ("POST", "/v1/models/m/asset"),
        ("POST", "/v1/models/m/predict"),
        ("POST", "/v1/models/m/rollback"),
        ("GET", "/v1/models/m/history"),
        ("GET", "/metrics"),
    ],
)
def test_unknown_ones_are_refused(client: httpx.Client, method: str, path: str):
    answer = client.request(method, f"{path}?min_sequenze=3", json={})
    assert problem(answer) == (422, "invalid")
    assert "min_sequenze" in answer.json()["detail"]


def test_those_that_are_known_are_listed(client: httpx.Client):
    detail = client.post("/v1/models/m/predict?heads=asset", json={}).json()["detail"]
    assert detail.endswith(
        "takes confidence, costs, explain, head, id, label, max_lag, min_sequence, probability "
        "and weight"
    )


def test_of_the_inference_protocol(client: httpx.Client):
    answer = client.post("/v2/models/m/infer?wait=3", json={})
    assert answer.status_code in (404, 422)
    assert client.get("/v2?wait=3").status_code == 422


def test_known_ones_are_given_once(client: httpx.Client, name: str):
    client.put(f"/v1/models/{name}").raise_for_status()
    assert client.get(f"/v1/models/{name}?min_sequence=0").status_code == 200
    twice = client.get(f"/v1/models/{name}?min_sequence=0&min_sequence=1")
    assert problem(twice) == (422, "invalid")


def test_of_a_stream(server: ServerProcess, client: httpx.Client, name: str):
    client.put(f"/v1/models/{name}").raise_for_status()
    url = f"{server.url.replace('http', 'ws', 1)}/v1/models/{name}/stream"
    with connect(f"{url}?producer=p"):
        pass
    with pytest.raises(InvalidStatus) as refused, connect(f"{url}?product=p"):
        pass
    assert refused.value.response.status_code == 422


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/"])
def test_health_takes_any(client: httpx.Client, path: str):
    assert client.get(f"{path}?t=1").status_code == 200
