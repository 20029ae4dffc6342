"""Every call, asked in every wrong way, gives the answers on record.

`python -m tests.service.web.test_recorded_answers` records them again after an intended change of
the interface; the commit then shows what has changed.
"""

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from websockets.sync.client import connect

from tests.service.process import ServerProcess
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.keys import add_key

RECORD = Path(__file__).with_name("recorded_answers.json")
MODEL = "/v1/models/{name}"
OF_VERSION = "/v2/models/{name}/versions/{version}"
# Method and path of each call; the body with which it succeeds, if it takes one.
CALLS: dict[str, Any] = {
    "GET /livez": None,
    "GET /readyz": None,
    "GET /metrics": None,
    "GET /": None,
    "GET /docs": None,
    "GET /openapi.json": None,
    "GET /console/app.js": None,
    "GET /v1/fleet": None,
    "GET /v1/models": None,
    f"PUT {MODEL}": {},
    f"GET {MODEL}": None,
    f"POST {MODEL}/samples": {"x": [[0.0], [1.0], [0.1], [1.1]], "y": ["a", "b", "a", "b"]},
    f"POST {MODEL}/asset": {"x": [[0.0], [1.0]], "y": ["a", "b"]},
    f"POST {MODEL}/predict": {"x": [[0.0]], "ids": ["r1"]},
    f"POST {MODEL}/labels": {"ids": ["r1", "r2"], "y": ["a", "b"]},
    f"POST {MODEL}/refit": None,
    f"GET {MODEL}/jobs": None,
    f"GET {MODEL}/jobs/{{job}}": None,
    f"GET {MODEL}/learners": None,
    f"GET {MODEL}/events": None,
    f"GET {MODEL}/metrics/history": None,
    f"GET {MODEL}/state": None,
    f"PUT {MODEL}/state": None,
    f"POST {MODEL}/snapshot": None,
    f"GET {MODEL}/history": None,
    f"POST {MODEL}/rollback": {"sequence": 6},
    f"GET {MODEL}/challengers": None,
    f"POST {MODEL}/promote": {"model": "m-b"},
    f"GET {MODEL}/stream": None,
    "GET /v2": None,
    "GET /v2/health/live": None,
    "GET /v2/health/ready": None,
    "GET /v2/models/{name}": None,
    "GET /v2/models/{name}/ready": None,
    "POST /v2/models/{name}/infer": {
        "inputs": [{"name": "x", "datatype": "FP64", "shape": [1, 1], "data": [0.5]}]
    },
    f"GET {OF_VERSION}": None,
    f"GET {OF_VERSION}/ready": None,
    f"POST {OF_VERSION}/infer": {
        "inputs": [{"name": "x", "datatype": "FP64", "shape": [1, 1], "data": [0.5]}]
    },
    f"DELETE {MODEL}": None,
}
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
BAD_BODIES: dict[str, tuple[dict[str, str], bytes]] = {
    "empty": ({}, b""),
    "no JSON": ({}, b"{"),
    "a list": ({}, b"[1]"),
    "unknown field": ({}, b'{"nonsense": 1}'),
    "no MessagePack": ({"Content-Type": "application/vnd.msgpack"}, b"\xc1"),
    "unknown type": ({"Content-Type": "text/html"}, b"{}"),
    "unknown coding": ({"Content-Encoding": "br"}, b"{}"),
    "too large": ({}, b" " * 200_001),
}
QUERIES = {
    "unknown": "nonsense=1",
    "twice": "min_sequence=1&min_sequence=2",
    "bad min_sequence": "min_sequence=x",
    "other epoch": "min_sequence=other:1",
    "not reached": "min_sequence=99",
    "bad head": "head=nonsense",
    "null head": "head=semiparametric",
    "bad flag": "probability=1",
    "bad confidence": "confidence=2",
    "bad reasons": "explain=0",
    "bad costs": "costs=1",
    "bad lag": "max_lag=x",
    "no column": "label=",
    "no UTF-8": "%ff=1",
}
HEADERS = {
    "bad tag": {"If-Match": "x"},
    "another state": {"If-Match": '"other:1"'},
    "bad key": {"Idempotency-Key": "two words"},
    "long key": {"Idempotency-Key": "k" * 300},
    "a stranger's page": {"Origin": "http://elsewhere.example"},
    "MessagePack": {"Accept": "application/vnd.msgpack"},
}
FRAMES: list[Any] = [
    {"id": 1, "op": "predict", "x": [[0.5]], "head": "asset", "min_sequence": 1},
    {"id": 2, "op": "learn", "x": [[0.5]], "y": ["a"]},
    {"id": 3, "op": "asset", "x": [[0.5]], "y": ["a"], "weight": 2},
    {"id": 4, "op": "label", "ids": ["r1"], "y": ["a"]},
    {"id": 5, "op": "predict", "x": [[0.5]], "probability": True, "explain": 1},
    *({"id": 6, "op": op} for op in ("learn", "asset", "predict", "label", "nonsense", 1, None)),
    *(
        {"id": 7, "op": op, "nonsense": 1, "min_sequence": 1}
        for op in ("learn", "asset", "predict", "label")
    ),
    {"id": 8, "op": "learn", "x": [[0.5]], "y": ["a"], "if_match": "x"},
    {"id": 9, "op": "label", "ids": ["r1"], "y": ["a"], "if_match": "other:1"},
    {"id": 10, "op": "predict", "x": [[0.5]], "min_sequence": "x"},
    {"id": 11, "op": "predict", "x": [[0.5]], "head": "nonsense"},
    {"id": 12, "op": "learn", "x": [[0.5, 1.0]], "y": ["a"]},
    {"op": "learn"},
    [],
]
# What differs from run to run.
_VARIABLE = {
    *("epoch", "request_id", "time", "written", "seconds", "job", "href", "bytes", "since"),
    *("cost_microseconds", "version", "work_per_sample", "search_work_per_sample", "numbers"),
}
_KEPT_HEADERS = (
    *("content-type", "allow", "location", "www-authenticate", "accept-encoding", "vary"),
    *("idempotency-replayed", "preference-applied", "retry-after", "connection", "etag"),
    *("content-disposition", "cache-control", "inference-header-content-length"),
)


class Asked(NamedTuple):
    """A request, and what it is called in the record."""

    title: str
    method: str
    path: str
    headers: dict[str, str]
    content: bytes


def masked(value: Any) -> Any:
    """A body without what differs from run to run, or with the last bits of numbers."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k != "compiling"}  # which is done at some time
        return {k: "..." if k in _VARIABLE and v else masked(v) for k, v in kept.items()}
    if isinstance(value, list):
        return [masked(v) for v in value]
    return "number" if isinstance(value, float) else _without_ids(value)


def _without_ids(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    value = re.sub(r"\b[0-9a-f]{12,}\b", "ID", value)
    return re.sub(r"(?<=127\.0\.0\.1:)\d+|(?<=try again in )\d+", "N", value)


def summary(answer: httpx.Response) -> list[Any]:
    """Return what is recorded of an answer: status, headers, body."""
    headers = {k: _without_ids(answer.headers[k]) for k in _KEPT_HEADERS if k in answer.headers}
    if "retry-after" in headers:
        headers["retry-after"] = "N"
    kind = headers.pop("content-type", "")
    if not answer.content or not kind.endswith("json"):
        body: Any = f"{kind}: {'some' if answer.content else 'no'} bytes"
    else:
        body = _shortened(masked(answer.json()))
    return [answer.status_code, headers, body]


def _shortened(body: Any) -> Any:
    """Return a problem without what its type decides, and not all of a long document."""
    if not isinstance(body, dict):
        return body
    if "openapi" in body:
        return "the document"
    if "type" in body and "detail" in body:
        slug = body["type"].removeprefix("urn:wolfstream:")
        return [slug, body["detail"], *body.get("errors", [])]
    return body


def requests(keys: dict[str, str]) -> Iterator[Asked]:
    """All requests, in the order in which they are sent."""
    admin = {"Authorization": f"Bearer {keys['admin']}"}
    for name, spec in (("m", {}), ("m-b", {"follows": "m"}), ("gone", {})):
        yield Asked(f"create {name}", "PUT", f"/v1/models/{name}", admin, json.dumps(spec).encode())
    untrained = b'{"x": [[0.5]]}'
    yield Asked("untrained", "POST", "/v1/models/m/predict", admin, untrained)
    for call, body in CALLS.items():
        method, template = call.split()
        path = _filled(template, "gone" if method == "DELETE" else "m")
        content = b"" if body is None else json.dumps(body).encode()
        if not template.endswith("/events"):
            yield Asked(f"{call}", method, path, admin, content)
        if method == "POST":
            yield Asked(f"{call}, again", method, path, admin, content)
        absent = _filled(template, "absent")
        yield Asked(f"{call}, no key", method, absent, {}, content)
        for key in ("predict", "learn", "other", "spent"):
            given = {"Authorization": f"Bearer {keys[key]}"}
            yield Asked(f"{call}, key {key}", method, absent, given, content)
        for other in METHODS:
            if other != method:
                yield Asked(f"{call}, {other}", other, absent, admin, b"")
                given = {"Authorization": f"Bearer {keys['predict']}"}
                yield Asked(f"{call}, {other}, key predict", other, absent, given, b"")
        yield Asked(f"{call}, final slash", method, f"{absent}/", admin, content)
        yield Asked(f"{call}, bad name", method, _filled(template, "a%20b"), admin, content)
        if template.endswith("/events") or method == "DELETE":
            path = absent  # events would be endless
        several = method == "POST" or template == MODEL
        for title, query in QUERIES.items():
            if several or title == "unknown":
                yield Asked(f"{call}, {title}", method, f"{path}?{query}", admin, content)
        for title, headers in HEADERS.items():
            if several:
                yield Asked(f"{call}, {title}", method, path, admin | headers, content)
        if method in ("POST", "PUT"):
            for title, (headers, bad) in BAD_BODIES.items():
                yield Asked(f"{call}, {title}", method, path, admin | headers, bad)
    for title, headers in {
        "under a key": {"Idempotency-Key": "k"},
        "under a key, again": {"Idempotency-Key": "k"},
        "prefers an early answer": {"Prefer": "respond-async"},
    }.items():
        content = json.dumps(CALLS[f"POST {MODEL}/samples"]).encode()
        yield Asked(title, "POST", "/v1/models/m/samples", admin | headers, content)
    key, content = {"Idempotency-Key": "k"}, b'{"x": [[0.5]], "y": ["a"]}'
    yield Asked("a key of another body", "POST", "/v1/models/m/samples", admin | key, content)
    for path in ("/nonsense", "/v1/models/m/nonsense", "/v1", "/v2/models", "/v2/nonsense"):
        for method in METHODS:
            for key in ("admin", "predict", "other"):
                given = {"Authorization": f"Bearer {keys[key]}"}
                yield Asked(f"{method} {path}, key {key}", method, path, given, b"")


def _filled(template: str, name: str) -> str:
    return template.format(name=name, job="j", version="1")


def recorded(folder: Path) -> dict[str, Any]:
    """Ask everything of a server of its own and return the answers by title."""
    data = folder / "data"
    data.mkdir()
    keys = {
        "admin": add_key(KeyFile(data), "admin", ("admin",)),
        "learn": add_key(KeyFile(data), "learn", ("learn",)),
        "predict": add_key(KeyFile(data), "predict", ("predict",)),
        "other": add_key(KeyFile(data), "other", ("admin",), "other-"),
        "spent": add_key(KeyFile(data), "spent", ("admin",), samples_per_second=0.001),
    }
    server = ServerProcess(data, body_bytes=200_000, state_bytes=200_000, wait_seconds=0.1).start()
    answers = dict[str, Any]()
    try:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            spent = {"Authorization": f"Bearer {keys['spent']}"}
            client.put("/v1/models/spent", headers=spent).raise_for_status()
            body = {"x": [[0.0], [1.0]], "y": ["a", "b"]}
            client.post("/v1/models/spent/samples", json=body, headers=spent).raise_for_status()
            for title, method, path, headers, content in requests(keys):
                answer = client.request(method, path, headers=headers, content=content)
                assert title not in answers, title
                answers[title] = summary(answer)
        for key in ("admin", "predict"):
            answers |= {f"{k}, key {key}": v for k, v in _framed(server, keys[key]).items()}
    finally:
        server.terminate()
    return answers


def _framed(server: ServerProcess, key: str) -> dict[str, Any]:
    """The answers to frames, one after another."""
    answers = dict[str, Any]()
    url = server.url.replace("http", "ws", 1)
    head = {"Authorization": f"Bearer {key}"}
    with connect(f"{url}/v1/models/m/stream?producer=p", additional_headers=head) as stream:
        answers["hello"] = masked(json.loads(stream.recv()))
        for frame in FRAMES:
            stream.send(json.dumps(frame))
            answer = masked(json.loads(stream.recv()))
            if "error" in answer:
                answer["error"] = _shortened(answer["error"])
            answers[json.dumps(frame)] = answer
    return answers


def test_recorded_answers(tmp_path: Path) -> None:
    expected = json.loads(RECORD.read_text())
    answers = recorded(tmp_path)
    changed = {
        title: (expected.get(title), answers.get(title))
        for title in [*expected, *(answers.keys() - expected.keys())]
        if expected.get(title) != answers.get(title)
    }
    assert not changed


def _lines(answers: dict[str, Any]) -> str:
    lines = [f"{json.dumps(title)}: {json.dumps(answers[title])}" for title in answers]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        (Path(sys.argv[1]) if sys.argv[1:] else RECORD).write_text(_lines(recorded(Path(folder))))
