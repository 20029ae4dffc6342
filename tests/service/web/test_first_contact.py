"""What somebody meets who only has the address and curl: a way to the documentation, short answers,
and a terminal whose prompt begins a line."""

import json

import httpx
import msgpack
import pytest

from tests.service.process import ServerProcess
from tests.service.streams import body, two_classes
from tests.service.web.test_stream import open_stream
from wolfstream.service.web.formats.inference import JSON_LENGTH_HEADER

PACKED = {"Accept": "application/vnd.msgpack"}


# -- where the documentation is ---------------------------------------------------------


def test_the_root_says_where_to_go(client: httpx.Client):
    answer = client.get("/")
    assert answer.status_code == 200
    told = answer.json()
    assert told.keys() == {"name", "version", "documentation", "openapi", "health", "models"}
    for place in ("documentation", "openapi", "health", "models"):
        assert client.get(told[place]).status_code == 200


def test_the_root_is_a_page_for_a_browser(client: httpx.Client):
    accept = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    answer = client.get("/", headers=accept, follow_redirects=False)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert 'href="docs"' in answer.text


@pytest.mark.parametrize("path", ["/health", "/v1", "/v1/model", "/v1/models/m/fit", "/v3"])
def test_a_wrong_path_says_where_the_documentation_is(client: httpx.Client, path: str):
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:wolfstream:no-such-path"
    assert "/docs" in answer.json()["detail"]


@pytest.mark.parametrize("name", ["hall/attic", "hall%2Fattic"])
def test_a_model_with_a_slash_in_its_name_is_told_so(client: httpx.Client, name: str):
    answer = client.put(f"/v1/models/{name}", json={})
    assert answer.status_code == 404
    assert "a model's name has no slash" in answer.json()["detail"]


def test_a_wrong_path_of_the_inference_protocol_does_too(client: httpx.Client):
    answer = client.get("/v2/model")
    assert answer.status_code == 404
    assert "/docs" in answer.json()["error"]


def test_a_wrong_method_says_which_are_right(client: httpx.Client):
    answer = client.patch("/v1/models/m")
    assert answer.status_code == 405
    assert answer.json()["type"] == "urn:wolfstream:method-not-allowed"
    assert "DELETE, GET, PUT" in answer.json()["detail"]
    assert "/docs" in answer.json()["detail"]


# -- a terminal -------------------------------------------------------------------------


def test_each_json_answer_is_one_line(client: httpx.Client, name: str):
    model = f"/v1/models/{name}"
    learned = [
        client.put(model),
        client.post(f"{model}/samples", json=body(two_classes(20))),
    ]
    answers = [
        *learned,
        *map(client.get, ("/", "/livez", "/readyz", "/openapi.json", "/v1/models", model)),
        client.get(f"{model}/history"),
        client.get(f"{model}/jobs"),
        client.post(f"{model}/predict", json={"x": [[1, 2, 3, 4]]}),
        client.post(f"{model}/predict", content="1,2,3,4", headers={"Content-Type": "text/csv"}),
        client.post(f"{model}/predict", json={}),
        client.get("/v1/models/nobody"),
        client.get("/nothing"),
        client.patch(model),
        client.get("/v2"),
        client.get("/v2/nothing"),
        client.get(f"/v2/models/{name}"),
        client.post(f"/v2/models/{name}/infer", json={}),
    ]
    for answer in answers:
        assert "json" in answer.headers["content-type"]
        assert answer.content.count(b"\n") == 1
        assert answer.content.endswith(b"\n")
        assert int(answer.headers["content-length"]) == len(answer.content)


def test_messagepack_is_not_followed_by_anything(client: httpx.Client, name: str):
    answer = client.put(f"/v1/models/{name}", headers=PACKED)
    assert msgpack.unpackb(answer.content)["model"] == name


@pytest.mark.parametrize("binary", [False, True])
def test_binary_tensors_follow_the_json_at_once(client: httpx.Client, name: str, binary: bool):
    client.put(f"/v1/models/{name}")
    client.post(f"/v1/models/{name}/samples", json=body(two_classes(20)))
    rows = {"name": "x", "shape": [1, 4], "datatype": "FP64", "data": [1, 2, 3, 4]}
    request = {"inputs": [rows], "parameters": {"binary_data_output": binary}}
    answer = client.post(f"/v2/models/{name}/infer", json=request)
    assert answer.status_code == 200
    if not binary:
        assert answer.content.endswith(b"}\n")
        assert JSON_LENGTH_HEADER not in answer.headers
        return
    length = int(answer.headers[JSON_LENGTH_HEADER])
    told = json.loads(answer.content[:length])
    sizes = [output["parameters"]["binary_data_size"] for output in told["outputs"]]
    assert answer.content[length - 1 : length] == b"}"
    assert len(answer.content) == length + sum(sizes)


def test_a_frame_of_a_stream_ends_with_its_json(
    client: httpx.Client, server: ServerProcess, name: str
):
    client.put(f"/v1/models/{name}")
    with open_stream(server, name) as stream:
        stream.send({"id": 1, "op": "learn", "x": [[1.0]], "y": ["a"]})
        for _ in range(2):  # the greeting, and the answer
            message = stream.connection.recv(timeout=20)
            assert isinstance(message, str)
            assert message.endswith("}")


# -- the answer to PUT ------------------------------------------------------------------


def test_creating_a_model_is_answered_in_a_line(client: httpx.Client, name: str):
    answer = client.put(f"/v1/models/{name}")
    assert answer.status_code == 201
    told = answer.json()
    assert told.pop("epoch")
    assert told == {
        "model": name,
        "sequence": 0,
        "status": "ok",
        "spec": {"task": "classification", "serve": "adaptive"},
    }


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"seed": 3}, {"seed": 3}),
        ({"asset": None}, {"asset": None}),
        ({"asset": {"lambda": 1e-5, "dimension": 512}}, {"asset": {"lambda": 1e-5}}),
        (
            {"kernel": {"type": "linear"}},
            {
                "kernel": {"type": "linear"},
                "asset": {"features": "identity", "dimension": None},
                "working_set": {"horizon": None},
            },
        ),
        ({"working_set": {"max_size": 5000}}, {}),
    ],
)
def test_it_shows_what_is_not_the_default(client: httpx.Client, name: str, given, changed):
    told = client.put(f"/v1/models/{name}", json=given).json()
    assert told["spec"] == {"task": "classification", "serve": "adaptive"} | changed


@pytest.mark.parametrize(
    "given",
    [
        {"task": "regression", "semiparametric": {"window": 100}},
        {"task": "regression", "asset": None, "semiparametric": {}},
        {"kernel": {"type": "polynomial", "degree": 2}, "working_set": None},
        {"kernel": {"type": "linear"}, "serve": "asset"},
    ],
)
def test_what_it_shows_is_the_same_spec(client: httpx.Client, name: str, given):
    shown = client.put(f"/v1/models/{name}", json=given).json()
    again = client.put(f"/v1/models/{name}", json=shown["spec"])
    assert again.status_code == 200
    assert again.json() == shown
    whole = client.get(f"/v1/models/{name}").json()["spec"]
    assert client.put(f"/v1/models/{name}", json=whole).status_code == 200
