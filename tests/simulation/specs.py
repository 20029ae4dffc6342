"""The models of the simulation: small ones, which learn a sample in microseconds."""

from typing import Any

from tests.service.specs import PAPERS

SMALL: dict[str, Any] = {
    "working_set": None,
    "asset": {"features": "fourier", "dimension": 16},
    "serve": "asset",
    "kernel": {"type": "rbf", "gamma": 0.5},
}
LEADER = PAPERS | SMALL
FOLLOWER = PAPERS | SMALL | {"seed": 7}
SPECS = [LEADER, FOLLOWER]
