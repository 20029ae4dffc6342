"""The interface itself: paths, methods, parameters and statuses change on purpose only."""

import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute

from wolfstream.service.calls.table import CALLS
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.routes.app import create_app
from wolfstream.service.web.routes.stream import Streams

PUBLIC = "431"
KEY = "401 403 431 503"
BODY = f"400 408 409 413 415 422 {KEY}"
ASKED = "head min_sequence max_lag probability confidence explain costs label id weight"
LEARNED = "Idempotency-Key Prefer If-Match label id weight"
LENGTH = "Inference-Header-Content-Length"
# Method and path, parameters that are not in the path, statuses.
INTERFACE = [
    ("GET /livez", "", f"200 503 {PUBLIC}"),
    ("GET /readyz", "learning", f"200 503 {PUBLIC}"),
    ("GET /metrics", "", f"200 {KEY}"),
    ("GET /v1/models", "", f"200 {KEY}"),
    ("PUT /v1/models/{name}", "", f"200 201 507 {BODY}"),
    ("GET /v1/models/{name}", "min_sequence", f"200 404 412 422 {KEY}"),
    ("DELETE /v1/models/{name}", "If-Match", f"204 404 412 422 {KEY}"),
    ("POST /v1/models/{name}/samples", LEARNED, f"200 202 404 412 429 507 {BODY}"),
    ("POST /v1/models/{name}/asset", LEARNED, f"200 202 404 412 429 507 {BODY}"),
    ("POST /v1/models/{name}/predict", ASKED, f"200 404 412 429 {BODY}"),
    ("POST /v1/models/{name}/labels", "label id If-Match", f"200 404 412 429 507 {BODY}"),
    ("POST /v1/models/{name}/refit", "", f"202 404 {BODY}"),
    ("GET /v1/models/{name}/jobs", "", f"200 404 {KEY}"),
    ("GET /v1/models/{name}/jobs/{job}", "", f"200 404 {KEY}"),
    ("GET /v1/models/{name}/history", "", f"200 404 {KEY}"),
    ("GET /v1/models/{name}/learners", "", f"200 404 {KEY}"),
    ("GET /v1/models/{name}/events", "Last-Event-ID", f"200 404 {KEY}"),
    ("GET /v1/models/{name}/metrics/history", "", f"200 404 {KEY}"),
    ("GET /v1/models/{name}/state", "", f"200 404 {KEY}"),
    ("PUT /v1/models/{name}/state", "", f"200 201 507 {BODY}".replace("400 ", "")),
    ("POST /v1/models/{name}/snapshot", "", f"201 404 {BODY}"),
    ("POST /v1/models/{name}/rollback", "If-Match", f"200 404 412 {BODY}"),
    ("GET /v1/models/{name}/challengers", "", f"200 404 {KEY}"),
    ("POST /v1/models/{name}/promote", "If-Match", f"200 404 409 412 {BODY}"),
    ("GET /v2", "", f"200 {KEY}"),
    ("GET /v2/health/live", "", f"200 503 {PUBLIC}"),
    ("GET /v2/health/ready", "", f"200 503 {PUBLIC}"),
    ("GET /v2/models/{name}", "", f"200 404 {KEY}"),
    ("GET /v2/models/{name}/ready", "", f"200 404 409 {KEY}"),
    ("POST /v2/models/{name}/infer", LENGTH, f"200 404 412 429 {BODY}"),
    ("GET /v2/models/{name}/versions/{version}", "", f"200 404 {KEY}"),
    ("GET /v2/models/{name}/versions/{version}/ready", "", f"200 404 409 {KEY}"),
    ("POST /v2/models/{name}/versions/{version}/infer", LENGTH, f"200 404 412 429 {BODY}"),
]


@pytest.fixture(scope="module")
def described() -> dict[str, tuple[set[str], set[str]]]:
    """Parameters and statuses by operation, as the OpenAPI document has them."""
    app = create_app(None, None, Settings(_env_file=None), Streams(), None, MemoryBudget(1))  # type: ignore[arg-type, call-arg]
    return {
        f"{method.upper()} {path}": (
            {p["name"] for p in operation.get("parameters", []) if p["in"] != "path"},
            set(operation["responses"]),
        )
        for path, operations in app.openapi()["paths"].items()
        for method, operation in operations.items()
    }


def test_the_operations(described):
    assert set(described) == {operation for operation, _, _ in INTERFACE}


@pytest.mark.parametrize(("operation", "parameters", "statuses"), INTERFACE)
def test_an_operation(described, operation: str, parameters: str, statuses: str):
    assert described[operation] == (set(parameters.split()), set(statuses.split()))


def test_each_call_has_an_endpoint():
    app = create_app(None, None, Settings(_env_file=None), Streams(), None, MemoryBudget(1))  # type: ignore[arg-type, call-arg]
    of_a_fleet = {"describe_fleet", "give_views"}
    names = {route.name for route in app.routes if isinstance(route, APIRoute | APIWebSocketRoute)}
    assert names == {call.name for call in CALLS} - of_a_fleet
