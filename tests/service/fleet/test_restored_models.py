"""While a replica takes a model over, whoever allows it gets predictions of its snapshot."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.service.engine.test_readiness import wait_at
from tests.service.fleet.conftest import LoneReplica, Replica, look_for_others_briefly
from tests.service.fleet.trio import X, call, learn, wait_for
from tests.service.specs import PAPERS


def wait_briefly_at(gates: Path) -> None:
    """Let a replica's replays wait, and its calls wait for them no longer than half a second."""
    from wolfstream.service.web.transport import forwarding

    look_for_others_briefly()
    wait_at(gates)
    forwarding._LEADER_TIMEOUT_SECONDS = 0.5


class Gated(LoneReplica):
    """A replica that waits for a file before it replays a block."""

    def __init__(self, data: Path, servers: Any, **settings: object) -> None:
        super().__init__(data, servers, **settings)
        self.gates = data.parent / "gates"
        self.gates.mkdir()
        (self.gates / "compile").touch()
        (self.gates / "learn").touch()
        self.prelude = functools.partial(wait_briefly_at, self.gates)


def test_snapshot_predicts_during_a_takeover(replica: Callable[..., Replica]):
    first = replica(LoneReplica)
    first.wait()
    with httpx.Client(base_url=first.url, timeout=60) as client:
        call(client, "PUT", "/v1/models/restored", json=PAPERS)
        learn(client, "restored")
        call(client, "POST", "/v1/models/restored/snapshot")
        before = call(client, "POST", "/v1/models/restored/predict", json={"x": X}).json()
        learn(client, "restored")
    first.kill()
    second = replica(Gated)
    assert isinstance(second, Gated)
    second.wait()
    with httpx.Client(base_url=second.url, timeout=60) as client:

        def predict(**query: float) -> httpx.Response:
            return client.post("/v1/models/restored/predict", json={"x": X}, params=query)

        def allowed() -> dict[str, Any] | None:
            answer = predict(max_lag=600)
            return answer.json() if answer.status_code == 200 else None

        assert wait_for(allowed) == before
        refused = predict()
        assert refused.status_code == 503
        assert "has learned 40 of 80 samples" in refused.json()["detail"]
        assert predict(max_lag=0.001).status_code == 503
        assert predict(max_lag=600, min_sequence=80).status_code == 503
        (second.gates / "replay restored").touch()
        assert wait_for(lambda: predict().status_code == 200)
        assert predict(max_lag=600).json()["sequence"] == 80
