"""Objects with the same name twice: refused in every format, and nothing else is."""

import json
from typing import Any

import httpx
import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.decoding import BOUNDS
from tests.service.specs import PAPERS
from wolfstream.service.errors import Unreadable
from wolfstream.service.web.formats import bounds
from wolfstream.service.web.formats.bounds import Bounds, check_json_names
from wolfstream.service.web.formats.wire import JSON, MSGPACK, Format, format_of_body

NDJSON = format_of_body("application/x-ndjson", True)
TEXT = st.text(st.sampled_from('ab":\\{}[], é'), max_size=6)
PLAIN = st.recursive(
    st.none() | st.integers(0, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)


@pytest.mark.parametrize(
    ("spoken", "body"),
    [
        (JSON, b'{"x": [1], "y": "a", "y": "b"}'),
        (JSON, b'{"x": [1], "\\u0078": [2], "y": "a"}'),
        (JSON, b'{"x": {"a": 1, "a": 2}, "y": "12:30"}'),
        (JSON, b'{"x": [[1], {"a": {"b": 1, "b": 1}}]}'),
        (JSON, b'{"x": "' + b":" * 200_000 + b'", "x": 1}'),
        (NDJSON, b'{"x": [1], "y": "a"}\n{"x": [1], "y": "a", "y": "b"}\n'),
        (MSGPACK, b"\x83\xa1x\x91\x01\xa1y\xa1a\xa1y\xa1b"),
        (MSGPACK, b"\x83\xc4\x01x\x01\xa1y\x01\xc4\x01x\x02"),
        (MSGPACK, b"\x82\xa1x\x82\xa1a\x01\xa1a\x02\xa1y\xa1a"),
    ],
)
def test_a_name_that_comes_twice_is_refused(spoken: Format, body: bytes) -> None:
    for limits in (BOUNDS, Bounds(BOUNDS.values, 1_000)):
        with pytest.raises(Unreadable, match="twice"):
            spoken.decode(body, limits)


def test_the_line_and_the_name_are_told() -> None:
    with pytest.raises(Unreadable, match=r"line 2 .* 'y' twice") as caught:
        NDJSON.decode(b'{"x": [1], "y": "a"}\n{"x": [1], "y": "a", "y": "b"}\n', BOUNDS)
    assert caught.value.errors[0]["line"] == 2


def test_over_http_nothing_is_learned(client: httpx.Client, name: str) -> None:
    client.put(f"/v1/models/{name}", json=PAPERS).raise_for_status()
    answer = client.post(f"/v1/models/{name}/samples", content='{"x": [1], "y": "a", "y": "b"}')
    assert answer.status_code == 400
    assert "'y' twice" in answer.json()["detail"]
    answer = client.put(f"/v1/models/{name}-2", content='{"seed": 1, "seed": 2}')
    assert answer.status_code == 400
    assert client.get(f"/v1/models/{name}").json()["sequence"] == 0


@given(PLAIN, st.integers(1, 9), st.booleans())
def test_whatever_has_different_names_passes(data: Any, chunk: int, ascii_only: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "_CHUNK_BYTES", chunk)
        body = json.dumps(data, ensure_ascii=ascii_only).encode()
        check_json_names(body, data)
        assert JSON.decode(body, BOUNDS) == data
        assert MSGPACK.decode(msgpack.packb(data), BOUNDS) == data


@given(PLAIN, st.dictionaries(TEXT, PLAIN, min_size=1, max_size=3), st.integers(1, 9))
def test_whatever_has_not_is_found(data: Any, repeated: dict[str, Any], chunk: int) -> None:
    inner = json.dumps(repeated)[:-1] + ", " + json.dumps(repeated)[1:]
    body = f"[{json.dumps(data)}, {inner}, {json.dumps(data)}]".encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "_CHUNK_BYTES", chunk)
        with pytest.raises(Unreadable, match="twice"):
            JSON.decode(body, BOUNDS)
