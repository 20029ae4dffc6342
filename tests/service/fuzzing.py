"""Requests and frames that somebody got wrong, sent to a server that must take them in its stride.

Every case is made of a campaign's seed and its number, so one that fails can be made again:
`make_case(seed, number)`.
"""

import http.client
import json
import struct
from collections import Counter
from contextlib import ExitStack
from random import Random
from typing import Any, NamedTuple

import httpx
import msgpack
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.service.mutations import (
    ENCODERS,
    NUMBERS,
    Body,
    any_value,
    as_json,
    as_msgpack,
    changed,
    damaged,
    encoded,
    swollen,
)
from tests.service.process import ServerProcess

SECONDS = 20
SMALL = {"working_set": {"max_size": 60}, "asset": {"dimension": 16}}
REGRESSION = {
    "task": "regression",
    "working_set": None,
    "asset": {"dimension": 16},
    "semiparametric": {"window": 200},
}
MODELS = {"arrays": SMALL, "named": SMALL, "regression": REGRESSION}
PLAIN = ["application/json", "application/vnd.msgpack", "application/x-msgpack"]
CLOSE_CODES = {1001, 1002, 1003, 1007, 1008, 1009, 1013}
"""The interface's, and those with which RFC 6455 answers what breaks it."""


class Case(NamedTuple):
    """A request; template: its path as OpenAPI has it, empty where there is none."""

    method: str
    path: str
    template: str
    headers: dict[str, str]
    content: bytes


def valid_samples(model: str, random: Random) -> dict[str, Any]:
    """Samples that the model takes."""
    n = random.choice([1, 1, 2, 5, 20])
    rows: list[Any] = [[random.gauss(0, 1), random.gauss(0, 2)] for _ in range(n)]
    y: list[Any] = [int(row[0] > row[1]) for row in rows]
    if model == "named":
        rows = [{f"w{random.randrange(9)}": value for value in row} for row in rows]
    if model == "regression":
        y = [row[0] - row[1] for row in rows]
    if n == 1 and random.random() < 0.3:
        return {"x": rows[0], "y": y[0]}
    return {"x": rows, "y": y}


def make_case(seed: object, number: int) -> Case:
    """One request, by the campaign's seed and its number."""
    random = Random(f"{seed}:{number}")
    model = random.choice(list(MODELS))
    kinds = [_learning] * 5 + [_predicting] * 3 + [_inference] * 3 + [_spec] * 2 + [_bodiless]
    case = random.choice(kinds)(model, random)
    if random.random() < 0.03:
        case.headers["Accept"] = random.choice(["application/vnd.msgpack", "text/html", "*/*;q=é"])
    if random.random() < 0.02:
        bearer = ["", "Bearer", "Bearer é", "Basic eDp5", "Bearer wfs_00000000_" + "0" * 40]
        case.headers["Authorization"] = random.choice(bearer)
    return case


def _content_types(model: str, random: Random) -> list[str]:
    """Those in which the model's rows can be said, mostly."""
    if random.random() < 0.1:
        return list(ENCODERS)
    return [*PLAIN, "application/x-ndjson"] + (["text/csv"] if model != "named" else [])


def _body(data: Any, content_types: list[str], random: Random) -> Body:
    if random.random() < 0.02:
        return swollen(content_types, random)
    return encoded(data, content_types, random)


def _learning(model: str, random: Random) -> Case:
    call = random.choice(["samples", "asset"])
    body = _body(valid_samples(model, random), _content_types(model, random), random)
    headers = {"Content-Type": body.content_type, **body.headers}
    template = f"/v1/models/{{name}}/{call}"
    return Case("POST", template.format(name=model), template, headers, body.content)


def _predicting(model: str, random: Random) -> Case:
    rows = {"x": valid_samples(model, random)["x"]}
    body = _body(rows, _content_types(model, random), random)
    query = ""
    if random.random() < 0.2:
        name = random.choice(["head", "min_sequence", "x", "%00"])
        value = random.choice(["asset", "working_set", "", "1", "-1", "9" * 30, "%ff", "%F0%9D"])
        query = f"?{name}={value}"
    headers = {"Content-Type": body.content_type, **body.headers}
    template = "/v1/models/{name}/predict"
    return Case("POST", template.format(name=model) + query, template, headers, body.content)


def _inference(model: str, random: Random) -> Case:
    """The Open Inference Protocol: JSON tensors, or JSON and binary data behind it."""
    n = random.choice([1, 2, 5])
    values = [random.gauss(0, 1) for _ in range(2 * n)]
    tensor: dict[str, Any] = {"name": "x", "shape": [n, 2], "datatype": "FP64", "data": values}
    if model == "named":
        tensor |= {"name": "w1", "shape": [2 * n]}
    headers, binary = {"Content-Type": "application/json"}, b""
    if random.random() < 0.5:
        del tensor["data"]
        binary = struct.pack(f"<{2 * n}d", *values)
        tensor["parameters"] = {"binary_data_size": len(binary)}
        if random.random() < 0.3:
            binary = damaged(binary, binary, random)
    told = as_json(changed({"inputs": [tensor], "outputs": [{"name": "decision"}]}, random))
    if binary:
        lie = random.choice([0, 0, 0, 1, -1, 10**6])
        headers["Inference-Header-Content-Length"] = random.choice(
            [str(len(told) + lie)] * 9 + ["-1", "x", "9" * 30]
        )
    content = told + binary
    if random.random() < 0.3:
        content = damaged(content, content, random)
    template = "/v2/models/{name}/infer"
    return Case("POST", template.format(name=model), template, headers, content)


def _spec(_: str, random: Random) -> Case:
    """A model to be created, of a name that is deleted again now and then."""
    template, name = "/v1/models/{name}", f"s{random.randrange(8)}"
    if random.random() < 0.2:
        return Case("DELETE", f"/v1/models/{name}", template, {}, b"")
    spec = {
        "task": random.choice(["classification", "regression"]),
        "kernel": {"type": random.choice(["rbf", "linear", "polynomial"]), "gamma": 0.5},
        "working_set": random.choice([None, {"algorithm": "msfw", "C": 1.0, "max_size": 50}]),
        "asset": {"algorithm": "asset*", "features": "fourier", "dimension": 8, "lambda": 1e-4},
        "serve": random.choice(["asset", "working_set"]),
        "seed": random.choice(NUMBERS),
    }
    body = encoded(spec, PLAIN, random)
    headers = {"Content-Type": body.content_type, **body.headers}
    return Case("PUT", f"/v1/models/{name}", template, headers, body.content)


def _bodiless(model: str, random: Random) -> Case:
    """Paths and names of all kinds; refits, and questions after them."""
    name = random.choice([model, model, "%2e%2e", "%00", "a%2fb", "%f0%9d%94%98", "x" * 300, "s1"])
    template = random.choice(
        [
            "/v1/models/{name}",
            "/v1/models/{name}/jobs",
            "/v2/models/{name}",
            "/v2/models/{name}/ready",
        ]
    )
    if random.random() < 0.2:
        template = "/v1/models/{name}/refit"
        content = random.choice([b"", b"{}", b"{", random.randbytes(9)])
        return Case("POST", template.format(name=name), template, {}, content)
    return Case("GET", template.format(name=name), template, {}, b"")


class Fuzzer:
    """One client with a connection that it keeps.

    key: for a server that has keys. answers: how many had which status.
    """

    def __init__(self, server: ServerProcess, key: str | None = None) -> None:
        self._server = server
        self._auth = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS)
        told = httpx.get(f"{server.url}/openapi.json", timeout=SECONDS).json()
        self._documented = {
            (method.upper(), path): {int(status) for status in operation["responses"]}
            for path, item in told["paths"].items()
            for method, operation in item.items()
            if method in ("get", "put", "post", "delete")
        }
        self.answers: Counter[str] = Counter()

    def create_models(self) -> None:
        """The models that cases are for, with some samples each."""
        with httpx.Client(base_url=self._server.url, headers=self._auth, timeout=60) as client:
            for model, spec in MODELS.items():
                client.put(f"/v1/models/{model}", json=spec).raise_for_status()
                samples = valid_samples(model, Random(1))
                client.post(f"/v1/models/{model}/samples", json=samples).raise_for_status()

    def send(self, case: Case) -> None:
        """Raises AssertionError for an answer that is not documented, or none."""
        target = case.path.encode("ascii", "replace").decode()
        headers = self._auth | {k: v for k, v in case.headers.items() if _fits_a_header(v)}
        try:
            self._http.request(case.method, target, case.content, headers)
            answer = self._http.getresponse()
            content = answer.read()
        except TimeoutError:
            raise AssertionError(f"no answer within {SECONDS} s: {case!r:.2000}") from None
        except OSError as error:
            raise AssertionError(f"{error!r} instead of an answer: {case!r:.2000}") from None
        documented = self._documented[case.method, case.template] | {401}
        assert answer.status in documented, f"{answer.status} {content[:500]!r}: {case!r:.2000}"
        if answer.status >= 400:
            told = json.loads(content)
            assert ("error" in told) != ("type" in told), f"{told}: {case!r:.2000}"
        self.answers[f"HTTP {answer.status}"] += 1

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()


def _fits_a_header(value: str) -> bool:
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return "\r" not in value


class FrameFuzzer:
    """One client with a stream, opened again where a frame has ended it."""

    def __init__(self, server: ServerProcess, packed: bool, key: str | None = None) -> None:
        self._url = server.url.replace("http", "ws", 1)
        self._packed = packed
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._stream: ClientConnection | None = None
        self._opened = ExitStack()
        self.answers: Counter[str] = Counter()

    def send(self, seed: object, number: int) -> None:
        """One frame; it has an answer, or ends the stream with a code that is known."""
        random = Random(f"{seed}:frame:{number}")
        text, content = self._frame(random)
        stream = self._stream or self._open(random.choice(list(MODELS)))
        self._stream = stream
        try:
            stream.send(content, text=text)
            told = stream.recv(timeout=SECONDS)
        except TimeoutError:
            raise AssertionError(
                f"no answer to frame {number} of {seed}: {content[:500]!r}"
            ) from None
        except ConnectionClosed as closed:
            code = closed.rcvd.code if closed.rcvd else None
            assert code in CLOSE_CODES, f"{code} for frame {number} of {seed}: {content[:500]!r}"
            self.answers[f"stream closed {code}"] += 1
            self.close()
            return
        answer = msgpack.unpackb(told) if self._packed else json.loads(told)
        if "error" in answer:
            assert answer["error"]["status"] in (400, 403, 409, 413, 422, 503), answer
            self.answers[f"stream {answer['error']['status']}"] += 1
        else:
            self.answers["stream answered"] += 1

    def close(self) -> None:
        """Leave."""
        self._stream = None
        self._opened.close()

    def _frame(self, random: Random) -> tuple[bool, bytes]:
        model = random.choice(list(MODELS))
        frame = {"id": random.choice([7, "seven"]), "op": random.choice(["learn", "asset"])}
        frame |= valid_samples(model, random)
        if random.random() < 0.4:
            frame["op"] = "predict"
            del frame["y"]
            if random.random() < 0.2:
                frame[random.choice(["head", "min_sequence", "y"])] = any_value(random)
        encode = as_msgpack if self._packed else as_json
        content = encode(changed(frame, random))
        if random.random() < 0.4:
            content = damaged(content, encode(frame), random)
        return (not self._packed) ^ (random.random() < 0.02), content

    def _open(self, model: str) -> ClientConnection:
        protocol = Subprotocol(f"wolfstream.v1.{'msgpack' if self._packed else 'json'}")
        stream = self._opened.enter_context(
            connect(
                f"{self._url}/v1/models/{model}/stream",
                subprotocols=[protocol],
                additional_headers=self._headers,
                max_size=None,
            )
        )
        stream.recv(timeout=SECONDS)
        return stream
