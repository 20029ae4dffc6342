"""What a server writes to standard error, and the ids by which a request is found there."""

import asyncio
import json
import logging
import re
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from websockets.sync.client import connect

from tests.service.access.test_keys import soon
from tests.service.process import ServerProcess
from wolfstream.service.diagnostics import tracing
from wolfstream.service.diagnostics.logging_setup import (
    JsonFormatter,
    LineLimit,
    TextFormatter,
    set_up_logging,
)
from wolfstream.service.diagnostics.metrics import RequestDurations
from wolfstream.service.diagnostics.tracing import Trace
from wolfstream.service.errors import Invalid
from wolfstream.service.web.formats.problems import add_problems
from wolfstream.service.web.transport import observer
from wolfstream.service.web.transport.observer import Observer

TRACE_ID, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT}-01"


def record(message: str, *args: object, **more: Any) -> logging.LogRecord:
    made = logging.LogRecord(
        "wolfstream.service.x", logging.WARNING, "x.py", 1, message, args, None
    )
    made.__dict__.update(more)
    return made


# -- lines ------------------------------------------------------------------------------


class TestJson:
    def test_a_record_is_one_line_with_its_fields(self):
        made = record("%d\nlines äöü\x1b[31m", 2, fields={"status": 200, "route": "/v1"})
        line = JsonFormatter().format(made)
        assert line.isascii()
        assert line.isprintable()
        told = json.loads(line)
        assert told.pop("time").endswith("Z")
        assert told == {
            "level": "WARNING",
            "logger": "wolfstream.service.x",
            "message": "2\nlines äöü\x1b[31m",
            "status": 200,
            "route": "/v1",
        }

    @given(st.floats(0, 4e9))
    def test_the_time_is_rfc_3339_in_utc(self, created: float):
        told = json.loads(JsonFormatter().format(record("x", created=created)))["time"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told)
        assert abs(datetime.fromisoformat(told).timestamp() - created) <= 0.0011

    def test_an_exception_is_in_the_line(self):
        try:
            raise ValueError("wrong")
        except ValueError:
            line = JsonFormatter().format(record("failed", exc_info=sys.exc_info()))
        assert "\n" not in line
        assert json.loads(line)["exception"].endswith("ValueError: wrong")

    def test_the_request_is_named(self):
        async def within() -> dict[str, Any]:
            tracing.begin({b"x-request-id": b"abc", b"traceparent": TRACEPARENT.encode()})
            # Threads that a request has work done by belong to it.
            line = await asyncio.to_thread(JsonFormatter().format, record("x"))
            told: dict[str, Any] = json.loads(line)
            return told

        told = asyncio.run(within())
        assert (told["request_id"], told["trace_id"]) == ("abc", TRACE_ID)
        assert re.fullmatch("[0-9a-f]{16}", told["span_id"])
        assert told["span_id"] != PARENT
        assert "request_id" not in json.loads(JsonFormatter().format(record("x")))


def test_text_has_the_fields_behind_the_message() -> None:
    line = TextFormatter().format(record("GET %s", "/x", fields={"status": 404}))
    assert re.fullmatch(r"[\d-]{10} [\d:]{8} WARNING GET /x status=404", line)


class TestTextOfClients:
    """No text makes a line of its own in the log, or reaches the terminal as a command."""

    HOSTILE = "x\n2026-01-01 00:00:00 INFO ready\x1b]0;owned\x07\x9b2J\u202e\r"

    def test_in_a_message_and_in_fields(self):
        made = record("of %s", self.HOSTILE, fields={"model": self.HOSTILE})
        line = TextFormatter().format(made)
        assert line.isprintable()
        assert line.count(r"\n2026") == 2
        assert r"\x1b]0;owned\x07\x9b2J\u202e\r" in line

    def test_in_an_exception(self):
        try:
            raise ValueError(self.HOSTILE)
        except ValueError:
            text = TextFormatter().format(record("failed", exc_info=sys.exc_info()))
        first, *others = text.split("\n")
        assert first.endswith(" failed")
        assert all(line.startswith("  ") and line.isprintable() for line in others)
        assert others[-2].endswith("ValueError: x")

    def test_the_end_of_a_line_is_none_in_it(self):
        line = TextFormatter().format(record("failed\n", fields={"status": 500}))
        assert line.endswith("failed status=500")

    def test_names_and_words_stay_readable(self):
        assert TextFormatter().format(record("größe 温度 naïve")).endswith("größe 温度 naïve")


@pytest.mark.parametrize(
    ("log_format", "terminal", "formatter"),
    [
        ("auto", True, TextFormatter),
        ("auto", False, JsonFormatter),
        ("text", False, TextFormatter),
        ("json", True, JsonFormatter),
    ],
)
def test_the_format_follows_the_setting_then_the_terminal(
    monkeypatch: pytest.MonkeyPatch, log_format: Any, terminal: bool, formatter: type
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(logging, "basicConfig", lambda **how: given.extend(how["handlers"]))
    monkeypatch.setattr(logging, "captureWarnings", given.append)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    set_up_logging(log_format)
    handler, warnings_too = given
    assert type(handler.formatter) is formatter
    assert warnings_too


# -- ids --------------------------------------------------------------------------------


class TestTrace:
    @pytest.mark.parametrize("given", [b"a", b"!" * 128, b"01-\x7e"])
    def test_a_request_id_is_taken_over(self, given: bytes):
        trace = Trace({b"x-request-id": given})
        assert trace.request_id == given.decode()
        assert trace.headers() == [(b"x-request-id", given)]

    @pytest.mark.parametrize("given", [b"", b"a" * 129, b"a b", b"\xff", b"a\x00", b"\x1b[31m"])
    def test_another_is_replaced_and_answered(self, given: bytes):
        trace = Trace({b"x-request-id": given})
        assert re.fullmatch("[0-9a-f]{32}", trace.request_id)
        assert trace.headers() == [(b"x-request-id", trace.request_id.encode())]

    def test_without_one_it_is_made_when_it_is_needed(self):
        trace = Trace({})
        assert trace.headers() == []
        assert trace.request_id == trace.request_id != Trace({}).request_id
        assert trace.headers() == [(b"x-request-id", trace.request_id.encode())]

    @pytest.mark.parametrize("flags", ["00", "01"])
    def test_a_trace_is_followed_with_a_span_of_ours(self, flags: str):
        traces = [Trace({b"traceparent": f"{TRACEPARENT[:-2]}{flags}".encode()}) for _ in "ab"]
        assert [trace.trace_id for trace in traces] == [TRACE_ID] * 2
        assert len({PARENT, *(trace.span_id for trace in traces)}) == 3
        told = f"00-{TRACE_ID}-{traces[0].span_id}-{flags}"
        assert traces[0].headers() == [(b"traceparent", told.encode())]

    def test_later_versions_may_say_more(self):
        trace = Trace({b"traceparent": f"cc{TRACEPARENT[2:]}-what-the-future-brings".encode()})
        assert trace.trace_id == TRACE_ID
        assert trace.headers()[0][1].startswith(b"00-")

    @pytest.mark.parametrize(
        "given",
        [
            "",
            TRACEPARENT.upper(),
            f"{TRACEPARENT}-more",
            f"{TRACEPARENT} ",
            f"ff{TRACEPARENT[2:]}",
            TRACEPARENT.replace(TRACE_ID, "0" * 32),
            TRACEPARENT.replace(PARENT, "0" * 16),
            TRACEPARENT[:-1],
            TRACEPARENT.replace("-", "_"),
            f"cc{TRACEPARENT[2:]}.more",
        ],
    )
    def test_what_is_not_valid_is_passed_over(self, given: str):
        trace = Trace({b"traceparent": given.encode()})
        assert (trace.trace_id, trace.headers()) == ("", [])

    @given(st.binary(max_size=200))
    def test_no_header_does_harm(self, given: bytes):
        trace = Trace({b"traceparent": given, b"x-request-id": given})
        for _, value in trace.headers():
            assert re.fullmatch(rb"[\x21-\x7e]{1,128}", value)


# -- requests, without a server ---------------------------------------------------------


class InProcess:
    """Routes that answer, refuse and fail, behind the middleware."""

    def __init__(self, which: Any) -> None:
        self.counts: RequestDurations = {}
        self.app = FastAPI()
        add_problems(self.app)
        self.app.add_middleware(
            Observer,
            requests=self.counts,
            logged=which,
            is_model=lambda name: name == "m",
            failed=self.app.exception_handlers[Exception],  # type: ignore[arg-type]
        )

        @self.app.get("/{name}/{how}")
        async def answer(name: str, how: str) -> str:
            if how == "refused":
                raise Invalid("no")
            if how == "failed":
                raise RuntimeError(name)
            return how

    def get(self, *paths: str, **headers: str) -> list[httpx.Response]:
        async def answers() -> list[httpx.Response]:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return [await client.get(path, headers=headers) for path in paths]

        return asyncio.run(answers())


def fields(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(r)["fields"] for r in caplog.records if r.name == observer.__name__]


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


@pytest.mark.parametrize(
    ("which", "logged"), [("none", []), ("errors", [422, 500]), ("all", [200, 422, 500])]
)
def test_which_requests_get_a_line(
    caplog: pytest.LogCaptureFixture, which: str, logged: list[int]
) -> None:
    server = InProcess(which)
    answers = server.get("/m/ok", "/m/refused", "/m/failed")
    assert [answer.status_code for answer in answers] == [200, 422, 500]
    assert [line["status"] for line in fields(caplog)] == logged
    levels = [r.levelno for r in caplog.records if r.name == observer.__name__]
    assert levels == [logging.WARNING if status >= 500 else logging.INFO for status in logged]
    counted = {key: sum(histogram.counts) for key, histogram in server.counts.items()}
    assert counted == {("/{name}/{how}", "GET", f"{n}xx"): 1 for n in (2, 4, 5)}


def test_a_model_is_named_and_nothing_else_of_a_path(caplog: pytest.LogCaptureFixture) -> None:
    InProcess("all").get("/m/ok", "/m/refused", "/other/refused", "/a/b/c")
    assert [line.get("model") for line in fields(caplog)] == ["m", "m", None, None]
    assert [line["route"] for line in fields(caplog)] == ["/{name}/{how}"] * 3 + ["other"]


def test_what_goes_wrong_has_an_id_in_answer_and_problem() -> None:
    for headers in ({}, {"X-Request-ID": "mine"}):
        ok, refused, failed = InProcess("none").get("/m/ok", "/m/refused", "/m/failed", **headers)
        assert ok.headers.get("x-request-id") == headers.get("X-Request-ID")
        for answer in (refused, failed):
            assert answer.headers.get_list("x-request-id") == [answer.json()["request_id"]]
            assert answer.json()["request_id"] == headers.get("X-Request-ID", ANY)


def test_a_slow_request_is_told_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = InProcess("errors")
    monkeypatch.setattr(observer, "_SLOW_SECONDS", 0.0)
    server.get("/m/ok")
    (line,) = fields(caplog)
    assert line["status"] == 200


@pytest.mark.parametrize(("which", "unlimited"), [("errors", False), ("all", True)])
def test_refusals_are_limited_unless_all_requests_are_asked_for(
    caplog: pytest.LogCaptureFixture, which: str, unlimited: bool
) -> None:
    InProcess(which).get("/m/refused")
    of_observer = [one for one in caplog.records if one.name == observer.__name__]
    assert [one.__dict__["unlimited"] for one in of_observer] == [unlimited]


# -- over a server ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that logs every request."""
    data = tmp_path_factory.mktemp("logs") / "data"
    with closing(ServerProcess(data, log_requests="all")) as running:
        yield running.start()


def log(server: ServerProcess) -> list[dict[str, Any]]:
    return [json.loads(line) for line in server.log().splitlines()]


def find(server: ServerProcess, **wanted: object) -> dict[str, Any]:
    """The one line that has all of this."""
    found: list[dict[str, Any]] = []

    def there() -> bool:
        found[:] = [line for line in log(server) if wanted.items() <= line.items()]
        return bool(found)

    assert soon(there)
    (line,) = found
    return line


def test_a_request_is_told_with_what_it_brought(
    server: ServerProcess, client: httpx.Client, name: str
) -> None:
    client.put(f"/v1/models/{name}")
    ids = {"X-Request-ID": f"learn-{name}", "traceparent": TRACEPARENT}
    samples = {"x": [[0], [1], [2]], "y": [0, 1, 0]}
    began = time.time()
    answer = client.post(f"/v1/models/{name}/samples", json=samples, headers=ids)
    ended = time.time()
    line = find(server, request_id=f"learn-{name}")
    assert answer.headers["x-request-id"] == f"learn-{name}"
    assert answer.headers["traceparent"] == f"00-{TRACE_ID}-{line['span_id']}-01"
    told = datetime.fromisoformat(line.pop("time")).timestamp()
    assert began - 0.01 <= told <= ended + 1.0
    # Its end comes after the response, which the client may have before.
    assert 0 < line.pop("duration_seconds") <= told - began + 0.01
    assert line == {
        "level": "INFO",
        "logger": "wolfstream.service.web.transport.observer",
        "message": "POST /v1/models/{name}/samples 200",
        "request_id": f"learn-{name}",
        "trace_id": TRACE_ID,
        "span_id": line["span_id"],
        "method": "POST",
        "route": "/v1/models/{name}/samples",
        "status": 200,
        "samples": 3,
        "model": name,
    }
    tensor = {"name": "x", "shape": [2, 1], "datatype": "FP64", "data": [0.0, 1.0]}
    for path, body in (
        (f"/v1/models/{name}/predict", {"x": [[0], [1]]}),
        (f"/v2/models/{name}/infer", {"inputs": [tensor]}),
    ):
        ids = {"X-Request-ID": f"{path[:3]}-{name}"}
        assert client.post(path, json=body, headers=ids).status_code == 200
        assert find(server, request_id=f"{path[:3]}-{name}")["samples"] == 2


def test_a_problem_is_found_by_its_id(
    server: ServerProcess, client: httpx.Client, name: str
) -> None:
    refused = client.get(f"/v1/models/{name}")
    request_id = refused.json()["request_id"]
    assert refused.headers["x-request-id"] == request_id
    line = find(server, request_id=request_id)
    assert (line["status"], line["route"]) == (404, "/v1/models/{name}")
    assert "model" not in line
    of_protocol = client.get(f"/v2/models/{name}")
    assert list(of_protocol.json()) == ["error"]
    assert find(server, request_id=of_protocol.headers["x-request-id"])["status"] == 404


def test_a_stream_is_one_line_at_its_end(
    server: ServerProcess, client: httpx.Client, name: str
) -> None:
    client.put(f"/v1/models/{name}")
    url = f"{server.url.replace('http', 'ws', 1)}/v1/models/{name}/stream"
    with connect(url, additional_headers={"X-Request-ID": f"ws-{name}"}) as stream:
        assert stream.response is not None
        assert stream.response.headers["x-request-id"] == f"ws-{name}"
        stream.recv(10)
        for i in range(5):
            stream.send(json.dumps({"id": i, "op": "learn", "x": [[i], [i + 1]], "y": [0, 1]}))
            stream.recv(10)
        assert f"ws-{name}" not in server.log()
    line = find(server, request_id=f"ws-{name}")
    assert (line["status"], line["samples"], line["model"]) == (101, 10, name)


def test_the_log_of_uvicorn_looks_like_ours(server: ServerProcess) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"this is no http\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    line = find(server, logger="uvicorn.error", level="WARNING")
    assert "request_id" not in line
    assert {line["logger"] for line in log(server)} >= {
        "wolfstream.service.server.main_process",
        "uvicorn.error",
    }


def test_by_default_only_what_goes_wrong_is_told(tmp_path: Path) -> None:
    with closing(ServerProcess(tmp_path / "data").start("--log-format", "text")) as quiet:
        with httpx.Client(base_url=quiet.url, timeout=30) as client:
            ok = client.get("/v1/models")
            assert "x-request-id" not in ok.headers
            refused = client.get("/v1/models/none")
            client.get("/metrics")
        assert quiet.terminate() == 0
        told = [line for line in quiet.log().splitlines() if " GET " in line]
        assert len(told) == 1
        assert f"request_id={refused.json()['request_id']} " in told[0]
        begin = r"[\d-]{10} [\d:]{8} INFO GET /v1/models/\{name\} 404 "
        assert re.match(begin, told[0])


class TestLineLimit:
    @staticmethod
    def record(line: int, created: float, name: str = "a", **more: Any) -> logging.LogRecord:
        record = logging.LogRecord(name, logging.INFO, "a.py", line, "text", (), None)
        record.created = created
        record.__dict__ |= more
        return record

    def test_each_kind_has_lines_of_its_own(self):
        limit = LineLimit(2, connection_lines=1)
        passed = [limit.filter(self.record(line, 0.5)) for line in (1, 1, 1, 2, 2, 2)]
        assert passed == [True, True, False] * 2

    def test_what_was_left_out_is_counted_in_the_next_line(self):
        limit = LineLimit(1, connection_lines=1)
        for _ in range(4):
            limit.filter(self.record(1, 0.5))
        later = self.record(1, 2.0, fields={"model": "m"})
        assert limit.filter(later)
        assert later.__dict__["fields"] == {"model": "m", "left_out": 3}

    def test_all_of_connections_is_one_kind(self):
        limit = LineLimit(9, connection_lines=1)
        passed = [limit.filter(self.record(line, 0.5, "uvicorn.error")) for line in (1, 2)]
        assert passed == [True, False]

    def test_clock_put_back_begins_a_new_second(self):
        limit = LineLimit(1, connection_lines=1)
        passed = [limit.filter(self.record(1, created)) for created in (9000.0, 10.0, 10.5, 11.5)]
        assert passed == [True, True, False, True]

    def test_lines_without_a_limit_all_pass(self):
        limit = LineLimit(1, connection_lines=1)
        assert all(limit.filter(self.record(1, 0.5, unlimited=True)) for _ in range(9))
