"""Which call a method and a path are for."""

import pytest

from wolfstream.service.calls.lookup import LONGEST_CACHED, target
from wolfstream.service.calls.table import CALLS, WEBSOCKET


@pytest.mark.parametrize("call", CALLS, ids=[call.name for call in CALLS])
def test_each_call_by_its_path(call):
    asked = target(call.path.format(name="m", job="j", version="1"), call.method)
    assert asked.call == call
    assert asked.model == ("m" if "{name}" in call.path else None)


def test_rows_are_unique():
    assert len({call.name for call in CALLS}) == len(CALLS)
    assert len({(call.method, call.path) for call in CALLS}) == len(CALLS)
    frames = [call.frame for call in CALLS if call.frame]
    assert len(set(frames)) == len(frames)


@pytest.mark.parametrize(
    ("path", "method", "model", "at_path"),
    [
        ("/v1/models/m/samples", "GET", "m", {"POST"}),
        ("/v1/models/m", "HEAD", "m", {"GET", "PUT", "DELETE"}),
        ("/v1/models/m/samples", WEBSOCKET, "m", {"POST"}),
        ("/v1/models/m/samples/", "POST", "m", set()),
        ("/v1/models/m/nonsense", "POST", "m", set()),
        ("/v1/models//samples", "POST", "", set()),
        ("/v1/models/", "GET", "", set()),
        ("/v1/models/any", "POST", "any", {"GET", "PUT", "DELETE"}),
        ("/v3/models/m/predict", "POST", None, set()),
        ("", "GET", None, set()),
    ],
)
def test_no_call(path: str, method: str, model: str | None, at_path: set[str]):
    asked = target(path, method)
    assert (asked.call, asked.model, set(asked.at_path)) == (None, model, at_path)


@pytest.mark.parametrize("name", ["predict", "state", "samples", "stream"])
def test_a_model_may_be_named_like_a_call(name: str):
    call = target(f"/v1/models/{name}", "DELETE").call
    assert call is not None
    assert call.name == "delete_model"


def test_a_long_path():
    name = "m" * LONGEST_CACHED
    call = target(f"/v1/models/{name}/predict", "POST").call
    assert call is not None
    assert call.name == "predict"
