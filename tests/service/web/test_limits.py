"""What a server bounds: each limit with its status, before work is done for what exceeds it."""

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import httpx
import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.sync.client import connect

from tests.service.access.test_keys import bearer, problem
from tests.service.process import ServerProcess
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.key_ring import Quota
from wolfstream.service.access.keys import add_key
from wolfstream.service.errors import (
    InvalidSamples,
    QuotaExceeded,
    TooLarge,
    Unreadable,
    UnsupportedFormat,
)
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.bounds import check_size
from wolfstream.service.web.formats.content_encoding import (
    decompress_zstd,
    decompressor_of,
    inflate,
)

SOON = 10.0
ROWS, NUMBERS, MODELS, BODY = 50, 20, 3, 1 << 16


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with tight limits and three models, of which m is the one to use."""
    data = tmp_path_factory.mktemp("limits") / "data"
    limits = {"request_rows": ROWS, "row_numbers": NUMBERS, "models": MODELS, "body_bytes": BODY}
    with closing(ServerProcess(data, queue_bytes=1, **limits)) as running:
        running.start()
        with httpx.Client(base_url=running.url, timeout=30) as client:
            for name in ("m", "n", "o"):
                client.put(f"/v1/models/{name}").raise_for_status()
            samples = {"x": [[0], [1]], "y": [0, 1]}
            client.post("/v1/models/m/samples", json=samples).raise_for_status()
        yield running


def sequence(client: httpx.Client) -> int:
    number: int = client.get("/v1/models/m").json()["sequence"]
    return number


# -- models -----------------------------------------------------------------------------


def test_one_model_too_many_is_409_and_deleting_makes_room(client: httpx.Client) -> None:
    assert problem(client.put("/v1/models/p")) == (409, "too-many-models")
    assert client.put("/v1/models/o").status_code == 200
    client.delete("/v1/models/o")
    assert client.put("/v1/models/o").status_code == 201


# -- rows and numbers -------------------------------------------------------------------


def dense(n: int, d: int) -> list[list[float]]:
    return np.arange(n * d, dtype=float).reshape(n, d).tolist()


def named(n: int, d: int) -> list[dict[str, float]]:
    return [{f"x{k}": 1.0 for k in range(d)} for _ in range(n)]


def raw(n: int, d: int) -> dict[str, Any]:
    return {"dtype": "<f4", "shape": [n, d], "data": np.zeros((n, d), "<f4").tobytes()}


MAKERS = pytest.mark.parametrize("make", [dense, named, raw])
SETTINGS = Settings(request_rows=ROWS, row_numbers=NUMBERS)


class TestSize:
    @MAKERS
    def test_the_bounds_themselves_are_allowed(self, make: Any):
        check_size({"x": make(ROWS, NUMBERS)}, SETTINGS)

    @MAKERS
    def test_a_row_too_many(self, make: Any):
        with pytest.raises(TooLarge, match=f"{ROWS} rows, this one has {ROWS + 1}"):
            check_size({"x": make(ROWS + 1, 1)}, SETTINGS)

    @MAKERS
    def test_a_number_too_many(self, make: Any):
        with pytest.raises(InvalidSamples) as refused:
            check_size({"x": make(3, NUMBERS + 1)}, SETTINGS)
        assert refused.value.errors[0]["row"] == 0

    @pytest.mark.parametrize("make", [dense, named])
    def test_it_is_said_which_row(self, make: Any):
        with pytest.raises(InvalidSamples) as refused:
            check_size({"x": make(2, 1) + make(1, NUMBERS + 1)}, SETTINGS)
        assert refused.value.errors[0]["row"] == 2

    def test_one_row_alone(self):
        for x in (dense(1, NUMBERS + 1)[0], named(1, NUMBERS + 1)[0]):
            with pytest.raises(InvalidSamples):
                check_size({"x": x}, SETTINGS)

    @given(
        st.recursive(
            st.none() | st.integers() | st.text(),
            lambda s: st.lists(s) | st.dictionaries(st.text(), s),
        )
    )
    def test_anything_else_is_left_to_those_who_read_it(self, body: Any):
        for x in (body, {"x": body}, {"x": {"shape": body}}, {"x": [body]}):
            with suppress(TooLarge, InvalidSamples):
                check_size(x, SETTINGS)

    @pytest.mark.parametrize("path", ["samples", "asset", "predict"])
    def test_over_http(self, client: httpx.Client, path: str):
        y = {} if path == "predict" else {"y": [0] * (ROWS + 1)}
        before = sequence(client)
        rows = client.post(f"/v1/models/m/{path}", json={"x": dense(ROWS + 1, 1), **y})
        assert problem(rows) == (413, "too-large")
        wide = client.post(f"/v1/models/m/{path}", json={"x": dense(1, NUMBERS + 1), **y})
        assert problem(wide) == (422, "invalid-samples")
        assert sequence(client) == before

    @pytest.mark.parametrize(
        ("media_type", "row"), [("text/csv?label=2", "1,a\n"), ("text/x-libsvm?", "a 1:1\n")]
    )
    def test_in_lines(self, client: httpx.Client, media_type: str, row: str):
        media_type, _, query = media_type.partition("?")
        head = {"Content-Type": media_type}
        url = f"/v1/models/m/samples?{query}"
        answer = client.post(url, content=row * (ROWS + 1), headers=head)
        assert problem(answer) == (413, "too-large")

    def test_as_tensors(self, client: httpx.Client):
        for (n, d), status in (((ROWS + 1, 1), 413), ((1, NUMBERS + 1), 422)):
            tensor = {"name": "x", "shape": [n, d], "datatype": "FP64", "data": [0.0] * n * d}
            answer = client.post("/v2/models/m/infer", json={"inputs": [tensor]})
            assert answer.status_code == status
            assert str(max(n, d)) in answer.json()["error"]

    def test_over_a_stream(self, server: ServerProcess):
        with connect(server.url.replace("http", "ws", 1) + "/v1/models/m/stream") as stream:
            stream.recv(SOON)
            for op, more in (("learn", {"y": [0]}), ("predict", {})):
                frame = {"id": 1, "op": op, "x": dense(ROWS + 1, 1), **more}
                stream.send(json.dumps(frame))
                assert json.loads(stream.recv(SOON))["error"]["status"] == 413


# -- the queue --------------------------------------------------------------------------


def test_samples_that_wait_are_bounded_in_bytes(
    server: ServerProcess, client: httpx.Client
) -> None:
    """With room for one request at a time; what is refused is not learned."""
    before = sequence(client)
    with connect(server.url.replace("http", "ws", 1) + "/v1/models/m/stream") as stream:
        stream.recv(SOON)
        for i in range(200):
            stream.send(json.dumps({"id": i, "op": "learn", "x": [i], "y": i % 2}))
        answers = [json.loads(stream.recv(SOON)) for _ in range(200)]
    refused = [a["error"] for a in answers if "error" in a]
    assert {error["type"] for error in refused} == {"urn:wolfstream:queue-full"}
    assert all("bytes" in e["detail"] and e["retry_after_seconds"] for e in refused)
    assert sequence(client) == before + 200 - len(refused)


# -- compressed bodies ------------------------------------------------------------------


class TestGzip:
    @given(st.binary(max_size=200))
    def test_what_was_packed_comes_out(self, content: bytes):
        assert inflate(gzip.compress(content), 200) == content

    def test_the_cap_is_exact(self):
        packed = gzip.compress(bytes(1000))
        assert inflate(packed, 1000) == bytes(1000)
        with pytest.raises(TooLarge, match="999 bytes unpacked"):
            inflate(packed, 999)

    def test_a_bomb_stops_at_the_cap(self):
        bomb = zlib.compress(bytes(200_000_000), 9, 31)
        tracemalloc.start()
        with pytest.raises(TooLarge):
            inflate(bomb, 1_000_000)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4_000_000

    @pytest.mark.parametrize(
        "packed",
        [
            b"",
            b"{}",
            gzip.compress(b"{}")[:-1],
            gzip.compress(b"{}")[:-8] + bytes(8),
            gzip.compress(b"{}") + b"x",
            gzip.compress(b"{}") * 2,
            zlib.compress(b"{}"),
        ],
        ids=["empty", "plain", "cut", "checksum", "more", "two members", "zlib"],
    )
    def test_damage_is_unreadable(self, packed: bytes):
        with pytest.raises(Unreadable):
            inflate(packed, 100)

    def test_names(self):
        assert [decompressor_of(name) for name in (None, "", "identity")] == [None] * 3
        assert [decompressor_of(name) for name in ("gzip", " GZIP", "x-gzip")] == [inflate] * 3
        assert decompressor_of("Zstd") == decompress_zstd
        for name in ("br", "deflate", "gzip, gzip", "zstd, gzip"):
            with pytest.raises(UnsupportedFormat, match="gzip, zstd"):
                decompressor_of(name)

    @pytest.mark.parametrize("form", ["json", "msgpack"])
    def test_over_http(self, client: httpx.Client, form: str):
        samples = {"x": dense(20, 1), "y": [0, 1] * 10}
        body = json.dumps(samples).encode() if form == "json" else msgpack.packb(samples)
        media_type = "application/json" if form == "json" else "application/vnd.msgpack"
        head = {
            "Content-Encoding": "gzip",
            "Content-Type": media_type,
            "Accept": "application/json",
        }
        content = gzip.compress(body)
        answer = client.post("/v1/models/m/samples", content=content, headers=head)
        assert answer.json()["learned"] == 20

    def test_a_spec_may_be_packed_too(self, client: httpx.Client):
        head = {"Content-Encoding": "gzip"}
        answer = client.put("/v1/models/n", content=gzip.compress(b"{}"), headers=head)
        assert answer.status_code == 200

    def test_refusals_over_http(self, client: httpx.Client):
        url, head = "/v1/models/m/samples", {"Content-Encoding": "gzip"}
        bomb = gzip.compress(bytes(BODY + 1))
        assert problem(client.post(url, content=bomb, headers=head)) == (413, "too-large")
        assert problem(client.post(url, content=b"{}", headers=head)) == (400, "unreadable")
        other = client.post(url, content=b"{}", headers={"Content-Encoding": "br"})
        assert problem(other) == (415, "unsupported-format")
        assert other.headers["accept-encoding"] == "gzip, zstd"


# -- quotas -----------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def waits(quota: Quota) -> int:
    """Seconds until the next request is let in; 0 if now."""
    try:
        quota.check()
    except QuotaExceeded as refused:
        return refused.retry_after_seconds
    return 0


class TestQuota:
    def test_a_seconds_worth_at_once_then_what_comes_in(self):
        clock = Clock()
        quota = Quota(10.0, clock)
        for _ in range(10):
            assert waits(quota) == 0
            quota.spend(1)
        assert waits(quota) == 1
        clock.now += 0.09
        assert waits(quota) == 0
        quota.spend(1)
        assert waits(quota) == 1

    def test_a_large_batch_is_paid_back(self):
        clock = Clock()
        quota = Quota(10.0, clock)
        assert waits(quota) == 0
        quota.spend(100)
        assert waits(quota) == 9
        clock.now += 8.9
        assert waits(quota) == 1
        clock.now += 0.2
        assert waits(quota) == 0

    def test_less_than_one_a_second(self):
        clock = Clock()
        quota = Quota(0.1, clock)
        assert waits(quota) == 0
        quota.spend(2)
        assert waits(quota) == 10
        clock.now += 10.1
        assert waits(quota) == 0

    @given(
        st.floats(0.1, 1e4),
        st.lists(st.tuples(st.floats(0, 5), st.integers(1, 1000)), max_size=60),
    )
    def test_the_average_holds_and_the_time_told_is_enough(
        self, per_second: float, requests: list[tuple[float, int]]
    ):
        clock = Clock()
        quota = Quota(per_second, clock)
        spent = [0]
        for pause, samples in requests:
            clock.now += pause
            seconds = waits(quota)
            if seconds:
                clock.now += seconds * (1 + 1e-9) + 1e-9
                assert waits(quota) == 0
            quota.spend(samples)
            spent.append(samples)
            # All but the last request, which may go into debt, fit into what came in.
            assert sum(spent[:-1]) <= max(per_second, 1) + per_second * clock.now * (1 + 1e-9)

    def test_over_http_and_a_stream_refused_samples_are_not_learned(self, server: ServerProcess):
        data = server.data.parent / "quota"
        slow = add_key(KeyFile(data), "slow", ("learn",), samples_per_second=0.5)
        fast = add_key(KeyFile(data), "fast", ("admin",))
        guarded = ServerProcess(data).start()
        try:
            url = f"{guarded.url}/v1/models/m"
            httpx.put(url, headers=bearer(fast)).raise_for_status()
            samples = {"x": [[0], [1]], "y": [0, 1]}
            learned = httpx.post(f"{url}/samples", json=samples, headers=bearer(slow))
            assert learned.json()["sequence"] == 2
            for path in ("samples", "asset", "predict"):
                answer = httpx.post(f"{url}/{path}", json=samples, headers=bearer(slow))
                assert problem(answer) == (429, "quota-exceeded")
                assert 1 <= int(answer.headers["retry-after"]) <= 2
            infer = httpx.post(f"{guarded.url}/v2/models/m/infer", json={}, headers=bearer(slow))
            assert infer.status_code == 429
            assert list(infer.json()) == ["error"]
            assert 1 <= int(infer.headers["retry-after"]) <= 2
            refit = httpx.post(f"{url}/refit", headers=bearer(slow))
            assert problem(refit) == (409, "no-such-head")
            with connect(
                f"{url.replace('http', 'ws', 1)}/stream", additional_headers=bearer(slow)
            ) as stream:
                stream.recv(SOON)
                stream.send(json.dumps({"id": 1, "op": "learn", **samples}))
                error = json.loads(stream.recv(SOON))["error"]
                assert (error["status"], error["retry_after_seconds"]) in [(429, 1), (429, 2)]
            assert httpx.get(url, headers=bearer(slow)).json()["sequence"] == 2
            answer = httpx.post(f"{url}/samples", json=samples, headers=bearer(fast))
            assert answer.json()["sequence"] == 4
        finally:
            guarded.close()


# -- the memory of a model --------------------------------------------------------------


@pytest.mark.parametrize("make", [dense, named])
def test_too_large_request_refused_unwritten(server: ServerProcess, make: Any) -> None:
    data = server.data.parent / f"bytes-{make.__name__}"
    with closing(ServerProcess(data, model_bytes=1 << 20)) as small:
        small.start()
        url = f"{small.url}/v1/models/m"
        httpx.put(url, json={"asset": {"dimension": 16_384}}).raise_for_status()
        wide = {"x": make(2, 30), "y": [0, 1]}
        for path in ("samples", "asset"):
            refused = httpx.post(f"{url}/{path}", json=wide)
            assert problem(refused) == (422, "invalid-samples")
        assert httpx.get(url).json()["sequence"] == 0
        narrow = {"x": make(2, 2), "y": [0, 1]}
        assert httpx.post(f"{url}/samples", json=narrow).json()["sequence"] == 2
