"""Which calls to another replica may be sent twice, where the first answer was lost."""

from typing import Any

import pytest

from wolfstream.service.web.transport.http_forwarder import is_read_only, may_be_sent_twice

MODEL = "/v1/models/m"


def scope(call: str, *headers: bytes) -> dict[str, Any]:
    method, path = call.split()
    named = [(name, b"value") for name in headers]
    return {"type": "http", "method": method, "path": path, "headers": named}


@pytest.mark.parametrize(
    ("call", "reads", "twice"),
    [
        (f"GET {MODEL}", True, True),
        (f"HEAD {MODEL}", True, True),
        (f"POST {MODEL}/predict", True, True),
        ("POST /v2/models/m/infer", True, True),
        ("POST /v2/models/m/versions/1/infer", True, True),
        (f"PUT {MODEL}", False, True),
        (f"PUT {MODEL}/state", False, True),
        (f"POST {MODEL}/samples", False, False),
        (f"POST {MODEL}/labels", False, False),
        (f"POST {MODEL}/rollback", False, False),
        (f"DELETE {MODEL}", False, False),
        (f"POST {MODEL}/of-a-newer-version", False, False),
    ],
)
def test_calls(call: str, reads: bool, twice: bool):
    assert (is_read_only(scope(call)), may_be_sent_twice(scope(call))) == (reads, twice)


@pytest.mark.parametrize("name", ["predict", "infer"])
def test_a_model_named_like_a_call_is_deleted_once(name: str):
    deletes = scope(f"DELETE /v1/models/{name}")
    assert not is_read_only(deletes)
    assert not may_be_sent_twice(deletes)


@pytest.mark.parametrize(("call", "twice"), [("samples", True), ("rollback", False)])
def test_only_calls_that_take_a_key_are_known_by_it(call: str, twice: bool):
    assert may_be_sent_twice(scope(f"POST {MODEL}/{call}", b"idempotency-key")) == twice


def test_a_stream_reads():
    assert is_read_only({"type": "websocket", "path": f"{MODEL}/stream", "headers": []})
