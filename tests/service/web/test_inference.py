"""The Open Inference Protocol over HTTP, against a real server."""

import contextlib
import json
import struct
from collections.abc import Iterator
from http.client import HTTPConnection
from importlib.metadata import version
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.decoding import BOUNDS
from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import body, few_words, plain_rows, three_classes, two_classes
from wolfstream.service.errors import Refusal
from wolfstream.service.web.formats.inference import read_inference
from wolfstream.solver.prepare.named_rows import NamedRows, n_rows

LENGTH = "Inference-Header-Content-Length"
X = two_classes(5, seed=1).X


def create(client: httpx.Client, name: str, samples: dict[str, Any] | None = None) -> str:
    """A model of these samples; the path of its metadata."""
    assert client.put(f"/v1/models/{name}", json=PAPERS).status_code == 201
    if samples:
        answer = client.post(f"/v1/models/{name}/samples", json=samples)
        assert answer.status_code == 200, answer.text
    return f"/v2/models/{name}"


@pytest.fixture(scope="module")
def model(server: ServerProcess) -> Iterator[str]:
    """The path of one trained model that no test changes."""
    with httpx.Client(base_url=server.url, timeout=30) as client:
        yield create(client, "shared", body(two_classes(200)))


def tensor(data: Any = None, **fields: Any) -> dict[str, Any]:
    """The input x."""
    data = X.tolist() if data is None else data
    return {"name": "x", "shape": [5, 4], "datatype": "FP64", "data": data} | fields


def refused(answer: httpx.Response, status: int = 422) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json()) == ["error"]
    text: str = answer.json()["error"]
    assert text
    return text


def outputs(answer: httpx.Response) -> dict[str, Any]:
    """Each output's values in their shape, read as the binary extension says."""
    assert answer.status_code == 200, answer.text
    length = int(answer.headers.get(LENGTH, len(answer.content)))
    told, rest = json.loads(answer.content[:length]), answer.content[length:]
    assert ("octet-stream" in answer.headers["content-type"]) == (LENGTH in answer.headers)
    found = {}
    for output in told["outputs"]:
        size = output.get("parameters", {}).get("binary_data_size")
        values = output.get("data")
        if size is not None:
            assert "data" not in output
            values, rest = unpacked(output["datatype"], rest[:size]), rest[size:]
        assert len(values) == np.prod(output["shape"])
        found[output["name"]] = np.reshape(np.array(values, object), output["shape"]).tolist()
    assert rest == b""
    return found


def unpacked(datatype: str, data: bytes) -> list[Any]:
    if datatype != "BYTES":
        dtype = {"FP64": "<f8", "INT64": "<i8", "BOOL": "?"}[datatype]
        values: list[Any] = np.frombuffer(data, dtype).tolist()
        return values
    texts = []
    while data:
        (length,) = struct.unpack("<I", data[:4])
        texts.append(data[4 : 4 + length].decode())
        data = data[4 + length :]
    return texts


def post_binary(
    client: httpx.Client, path: str, fields: dict[str, Any], *parts: bytes, length: Any = None
) -> httpx.Response:
    head = json.dumps(fields).encode()
    headers = {LENGTH: str(len(head) if length is None else length)}
    return client.post(f"{path}/infer", content=head + b"".join(parts), headers=headers)


def predicted(client: httpx.Client, model: str, rows: Any) -> dict[str, Any]:
    """What /v1 says."""
    path = model.replace("/v2", "/v1")
    answer: dict[str, Any] = client.post(f"{path}/predict", json={"x": rows}).json()
    return answer


# -- server and models ------------------------------------------------------------------


def test_the_server_describes_itself(client: httpx.Client) -> None:
    told = client.get("/v2").json()
    assert told["name"] == "wolfstream"
    assert told["version"] == version("wolfstream")
    assert "binary_tensor_data" in told["extensions"]


def test_health(client: httpx.Client) -> None:
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}


def test_metadata_of_arrays(client: httpx.Client, model: str) -> None:
    told = client.get(model).json()
    assert told == {
        "name": "shared",
        "versions": ["1"],
        "platform": "wolfstream",
        "inputs": [{"name": "x", "datatype": "FP64", "shape": [-1, 4]}],
        "outputs": [
            {"name": "prediction", "datatype": "BYTES", "shape": [-1]},
            {"name": "decision", "datatype": "FP64", "shape": [-1]},
        ],
    }
    assert client.get(f"{model}/versions/1").json() == told


def test_a_regression(client: httpx.Client, name: str) -> None:
    """Numbers as FP64, twice; no classes, and the refit that answers."""
    spec = {"task": "regression", "asset": None, "semiparametric": {}}
    client.put(f"/v1/models/{name}", json=spec).raise_for_status()
    path = f"/v2/models/{name}"
    wanted = [
        {"name": "prediction", "datatype": "FP64", "shape": [-1]},
        {"name": "decision", "datatype": "FP64", "shape": [-1]},
    ]
    assert client.get(path).json()["outputs"] == wanted
    samples = {"x": X.tolist(), "y": [1.0, 2.5, 3, 4, 5]}
    client.post(f"/v1/models/{name}/samples", json=samples).raise_for_status()
    assert "not been fitted yet" in refused(
        client.post(f"{path}/infer", json={"inputs": [tensor()]}), 409
    )
    refused(client.get(f"{path}/ready"), 409)
    job = client.post(f"/v1/models/{name}/refit").json()
    while client.get(job["href"]).json()["status"] != "done":
        pass
    assert client.get(f"{path}/ready").status_code == 200
    told = client.get(path).json()
    assert (told["inputs"][0]["shape"], told["outputs"]) == ([-1, 4], wanted)
    for binary in (False, True):
        body = {"inputs": [tensor()], "parameters": {"binary_data_output": binary}}
        answer = client.post(f"{path}/infer", json=body)
        expected = predicted(client, path, X.tolist())
        found = outputs(answer)
        assert found["prediction"] == found["decision"] == expected["prediction"]
    parameters = client.post(f"{path}/infer", json={"inputs": [tensor()]}).json()["parameters"]
    assert json.loads(parameters["fit"]) == {"job": job["job"], "sequence": 5}
    assert "classes" not in parameters


def test_metadata_of_three_classes(client: httpx.Client, name: str) -> None:
    path = create(client, name, body(three_classes(200)))
    prediction, decision = client.get(path).json()["outputs"]
    assert prediction["datatype"] == "INT64"
    assert decision["shape"] == [-1, 3]


def test_a_model_is_ready_once_it_can_predict(client: httpx.Client, name: str) -> None:
    path = create(client, name)
    assert client.get(path).json()["inputs"] == [
        {"name": "x", "datatype": "FP64", "shape": [-1, -1]}
    ]
    assert "two classes" in refused(client.get(f"{path}/ready"), 409)
    assert "two classes" in refused(client.post(f"{path}/infer", json={"inputs": [tensor()]}), 409)
    client.post(f"/v1/models/{name}/samples", json=body(two_classes(50)))
    for ready in (f"{path}/ready", f"{path}/versions/1/ready"):
        assert client.get(ready).json() == {"name": name, "ready": True}


def test_a_model_of_named_rows_is_ready(client: httpx.Client, name: str) -> None:
    path = create(client, name, body(few_words(100)))
    assert client.get(f"{path}/ready").json()["ready"] is True


@pytest.mark.parametrize("what", ["", "/ready"])
@pytest.mark.parametrize("path", ["/v2/models/nobody", "/v2/models/shared/versions/2"])
def test_unknown_models_and_versions(
    client: httpx.Client, model: str, path: str, what: str
) -> None:
    assert model in path or "nobody" in path
    refused(client.get(path + what), 404)
    refused(client.post(f"{path}/infer", json={"inputs": [tensor()]}), 404)


def test_paths_and_methods_that_do_not_exist(client: httpx.Client, model: str) -> None:
    refused(client.get("/v2/repository"), 404)
    answer = client.get(f"{model}/infer")
    refused(answer, 405)
    assert answer.headers["allow"] == "POST"


# -- infer ------------------------------------------------------------------------------


def test_infer_says_what_predict_says(client: httpx.Client, model: str) -> None:
    answer = client.post(f"{model}/infer", json={"id": "42", "inputs": [tensor()]})
    told = answer.json()
    expected = predicted(client, model, X.tolist())
    assert (told["id"], told["model_name"], told["model_version"]) == ("42", "shared", "1")
    assert told["parameters"]["sequence"] == 200
    assert told["parameters"]["head"] == "working_set"
    assert json.loads(told["parameters"]["classes"]) == expected["classes"]
    assert [output["name"] for output in told["outputs"]] == ["prediction", "decision"]
    assert outputs(answer) == {k: expected[k] for k in ("prediction", "decision")}
    assert "id" not in client.post(f"{model}/infer", json={"inputs": [tensor()]}).json()


def test_nested_and_flat_data_are_the_same(client: httpx.Client, model: str) -> None:
    said = [
        outputs(client.post(f"{model}/versions/1/infer", json={"inputs": [tensor(data)]}))
        for data in (X.tolist(), X.ravel().tolist())
    ]
    assert said[0] == said[1]


def test_what_the_protocol_does_not_name_is_passed_over(client: httpx.Client, model: str) -> None:
    wanted = {
        "model_name": "shared",
        "parameters": {"priority": 3, "content_type": "np"},
        "inputs": [tensor(parameters={"content_type": "np"})],
    }
    assert client.post(f"{model}/infer", json=wanted).status_code == 200


@pytest.mark.parametrize(
    ("datatype", "dtype"), [("FP64", "<f8"), ("FP32", "<f4"), ("INT64", "<i8"), ("UINT8", "u1")]
)
def test_binary_tensors(client: httpx.Client, model: str, datatype: str, dtype: str) -> None:
    numbers = np.abs(np.round(X * 4)).astype(dtype)
    size = {"binary_data_size": numbers.nbytes}
    sent = {"name": "x", "shape": [5, 4], "datatype": datatype, "parameters": size}
    asked = {"inputs": [sent], "parameters": {"binary_data_output": True}}
    answer = post_binary(client, model, asked, numbers.tobytes())
    plain = tensor(numbers.tolist(), datatype=datatype)
    assert outputs(answer) == outputs(client.post(f"{model}/infer", json={"inputs": [plain]}))
    expected = predicted(client, model, numbers.astype(float).tolist())
    assert outputs(answer)["decision"] == expected["decision"]


def test_binary_data_follow_in_the_order_of_the_outputs(client: httpx.Client, model: str) -> None:
    expected = predicted(client, model, X.tolist())
    for binary in ({"decision": True, "prediction": True}, {"prediction": False, "decision": True}):
        asked = {
            "inputs": [tensor()],
            "outputs": [{"name": n, "parameters": {"binary_data": b}} for n, b in binary.items()],
        }
        answer = client.post(f"{model}/infer", json=asked)
        assert list(outputs(answer)) == list(binary)
        assert outputs(answer) == {n: expected[n] for n in binary}


def test_only_the_outputs_that_are_asked_for(client: httpx.Client, model: str) -> None:
    asked: dict[str, Any] = {"inputs": [tensor()], "outputs": [{"name": "decision"}]}
    assert list(outputs(client.post(f"{model}/infer", json=asked))) == ["decision"]
    asked["outputs"][0]["parameters"] = {"binary_data": False}
    asked["parameters"] = {"binary_data_output": True}
    answer = client.post(f"{model}/infer", json=asked)
    assert LENGTH not in answer.headers
    asked["outputs"] = []
    assert list(outputs(client.post(f"{model}/infer", json=asked))) == ["prediction", "decision"]


@pytest.mark.parametrize(
    ("labels", "datatype", "said"),
    [
        (["a", "é"], "BYTES", ["a", "é"]),
        ([3, -7], "INT64", [3, -7]),
        ([True, False], "BOOL", [True, False]),
        ([1, "b"], "BYTES", ["1", "b"]),
        ([True, 0], "BYTES", ["true", "0"]),
    ],
)
@pytest.mark.parametrize("binary", [False, True])
def test_labels_as_tensors(
    client: httpx.Client, name: str, labels: list[Any], datatype: str, said: list[Any], binary: bool
) -> None:
    rows = [[0, 0], [9, 9]]
    path = create(client, name, {"x": rows * 4, "y": labels * 4})
    asked = {
        "inputs": [{"name": "x", "shape": [2, 2], "datatype": "FP64", "data": rows}],
        "parameters": {"binary_data_output": binary},
    }
    answer = client.post(f"{path}/infer", json=asked)
    found = outputs(answer)["prediction"]
    assert [(type(v), v) for v in found] == [(type(v), v) for v in said]
    assert client.get(path).json()["outputs"][0]["datatype"] == datatype


def test_three_classes_have_one_decision_a_class(client: httpx.Client, name: str) -> None:
    samples = three_classes(200)
    path = create(client, name, body(samples))
    rows = samples.X[:6]
    sent = {"name": "x", "shape": [6, 3], "datatype": "FP64", "data": rows.tolist()}
    for binary in (False, True):
        asked = {"inputs": [sent], "parameters": {"binary_data_output": binary}}
        answer = client.post(f"{path}/infer", json=asked)
        expected = predicted(client, path, rows.tolist())
        assert outputs(answer) == {k: expected[k] for k in ("prediction", "decision")}
        assert np.shape(outputs(answer)["decision"]) == (6, 3)


def test_head_and_min_sequence_are_parameters(client: httpx.Client, name: str) -> None:
    path = create(client, name, body(two_classes(60)))
    client.post(f"/v1/models/{name}/asset", json=body(two_classes(60)))
    asked = {"inputs": [tensor()], "parameters": {"head": "asset", "min_sequence": 120}}
    told = client.post(f"{path}/infer", json=asked).json()
    assert told["parameters"]["head"] == "asset"
    assert told["parameters"]["sequence"] == 120


# -- rows of named numbers: one tensor a name -------------------------------------------


@pytest.mark.parametrize("shape", [[4], [4, 1]])
def test_named_rows_take_a_tensor_a_name(client: httpx.Client, name: str, shape: list[int]) -> None:
    path = create(client, name, body(few_words(150)))
    known = [told["name"] for told in client.get(path).json()["inputs"]]
    assert set(known) == {n for row in plain_rows(few_words(150)) for n in row}
    names = [known[0], "never met", known[7], known[3]]
    table = np.array([[1, 0, 0.5, 0], [0, 0, 0, 0], [0, 2, 0, 0], [1, 1, 1, 0]], float)
    columns = [
        {"name": n, "shape": shape, "datatype": "FP64", "data": table[:, k].tolist()}
        for k, n in enumerate(names)
    ]
    answer = client.post(f"{path}/infer", json={"inputs": columns})
    expected = predicted(
        client, path, [dict(zip(names, row, strict=True)) for row in table.tolist()]
    )
    assert outputs(answer) == {k: expected[k] for k in ("prediction", "decision")}


@pytest.mark.parametrize(
    ("columns", "detail"),
    [
        ([("a", [2]), ("b", [3])], "'b'"),
        ([("a", [2, 2])], "one feature of all rows"),
        ([], "is empty"),
        ([("", [2])], "name"),
        ([("n" * 257, [2])], "name"),
    ],
)
def test_columns_that_make_no_rows(
    client: httpx.Client, name: str, columns: list[tuple[str, list[int]]], detail: str
) -> None:
    path = create(client, name, body(few_words(50)))
    sent = [
        {"name": n, "shape": shape, "datatype": "INT64", "data": [1] * int(np.prod(shape))}
        for n, shape in columns
    ]
    assert detail in refused(client.post(f"{path}/infer", json={"inputs": sent}))


# -- what is wrong is refused in the protocol's form --------------------------------------

BAD = {
    "not an object": [],
    "no inputs": {},
    "null inputs": {"inputs": None},
    "empty inputs": {"inputs": []},
    "an input that is none": {"inputs": [7]},
    "no name": {"inputs": [{"shape": [1]}]},
    "a name that is no text": {"inputs": [tensor(name=7)]},
    "another name": {"inputs": [tensor(name="input0")]},
    "one input too many": {"inputs": [tensor(), tensor(name="z")]},
    "the same input twice": {"inputs": [tensor(), tensor()]},
    "no shape": {"inputs": [tensor(shape=None)]},
    "a shape without lengths": {"inputs": [tensor(shape=[], data=[])]},
    "three lengths": {"inputs": [tensor(shape=[5, 2, 2])]},
    "a negative length": {"inputs": [tensor(shape=[-5, -4])]},
    "a length of -1": {"inputs": [tensor(shape=[-1, 4])]},
    "no rows": {"inputs": [tensor([], shape=[0, 4])]},
    "rows without numbers": {"inputs": [tensor([], shape=[2**40, 0])]},
    "a huge shape": {"inputs": [tensor(shape=[2**40, 2**40])]},
    "a length beyond 64 bits": {"inputs": [tensor(shape=[2**70, 1])]},
    "a fraction as a length": {"inputs": [tensor(shape=[5.0, 4])]},
    "true as a length": {"inputs": [tensor(shape=[True, 20], data=[0] * 20)]},
    "too few numbers": {"inputs": [tensor([1.0, 2.0])]},
    "rows of another length": {"inputs": [tensor([[1, 2]] * 10)]},
    "a row that is none": {"inputs": [tensor([[1, 2, 3, 4]] * 4 + [7])]},
    "nested too deep": {"inputs": [tensor([[[1]] * 4] * 5)]},
    "another dimension": {"inputs": [tensor([1] * 20, shape=[4, 5])]},
    "no datatype": {"inputs": [tensor(datatype=None)]},
    "an unknown datatype": {"inputs": [tensor(datatype="FP65")]},
    "a datatype that is no text": {"inputs": [tensor(datatype=["FP64"])]},
    "text": {"inputs": [tensor(["1"] * 20, datatype="BYTES")]},
    "text as numbers": {"inputs": [tensor(["1"] * 20)]},
    "booleans as numbers": {"inputs": [tensor([True] * 20)]},
    "null as a number": {"inputs": [tensor([None] * 20)]},
    "a fraction as an integer": {"inputs": [tensor([0.5] * 20, datatype="INT64")]},
    "a number beyond its integers": {"inputs": [tensor([300] * 20, datatype="INT8")]},
    "a number beyond its floats": {"inputs": [tensor([1e39] * 20, datatype="FP32")]},
    "an endless integer": {"inputs": [tensor([10**400] + [0] * 19)]},
    "a number beyond the kernel": {"inputs": [tensor([1e300] * 20)]},
    "no data": {"inputs": [{"name": "x", "shape": [5, 4], "datatype": "FP64"}]},
    "data that are no list": {"inputs": [tensor({"0": 1})]},
    "shared memory": {"inputs": [tensor(parameters={"shared_memory_region": "r"})]},
    "parameters that are none": {"inputs": [tensor()], "parameters": 7},
    "parameters of an input that are none": {"inputs": [tensor(parameters=[])]},
    "an id that is no text": {"id": 42, "inputs": [tensor()]},
    "an unknown output": {"inputs": [tensor()], "outputs": [{"name": "output0"}]},
    "an output twice": {"inputs": [tensor()], "outputs": [{"name": "decision"}] * 2},
    "outputs that are none": {"inputs": [tensor()], "outputs": {"name": "decision"}},
    "top classes": {
        "inputs": [tensor()],
        "outputs": [{"name": "decision", "parameters": {"classification": 2}}],
    },
    "binary_data that is no boolean": {
        "inputs": [tensor()],
        "outputs": [{"name": "decision", "parameters": {"binary_data": 1}}],
    },
    "binary_data_output that is no boolean": {
        "inputs": [tensor()],
        "parameters": {"binary_data_output": "yes"},
    },
    "an unknown head": {"inputs": [tensor()], "parameters": {"head": "tail"}},
    "a head that is no text": {"inputs": [tensor()], "parameters": {"head": ["asset"]}},
    "a negative sequence": {"inputs": [tensor()], "parameters": {"min_sequence": -1}},
    "a sequence that is none": {"inputs": [tensor()], "parameters": {"min_sequence": "9"}},
    "data beside binary data": {"inputs": [tensor(parameters={"binary_data_size": 0})]},
    "binary data that are not there": {
        "inputs": [
            {
                "name": "x",
                "shape": [5, 4],
                "datatype": "FP64",
                "parameters": {"binary_data_size": 160},
            }
        ]
    },
}


@pytest.mark.parametrize("wrong", BAD)
def test_bad_requests(client: httpx.Client, model: str, wrong: str) -> None:
    text = refused(client.post(f"{model}/infer", content=json.dumps(BAD[wrong])))
    assert len(text) < 1000


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_numbers_that_are_not_finite(client: httpx.Client, model: str, number: str) -> None:
    content = json.dumps({"inputs": [tensor([7777] + [0] * 19)]}).replace("7777", number)
    assert "number 0 of row 0" in refused(client.post(f"{model}/infer", content=content))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_binary_numbers_that_are_not_finite(
    client: httpx.Client, model: str, number: float
) -> None:
    numbers = np.full((5, 4), number, "<f4")
    sent = {"name": "x", "shape": [5, 4], "datatype": "FP32"}
    asked = {"inputs": [sent | {"parameters": {"binary_data_size": numbers.nbytes}}]}
    assert "not finite" in refused(post_binary(client, model, asked, numbers.tobytes()))


@pytest.mark.parametrize("size", [159, 161, -1, 0, 2**63, 2**70, "160", 160.0, True, [160]])
def test_binary_sizes_that_do_not_fit(client: httpx.Client, model: str, size: Any) -> None:
    sent = {"name": "x", "shape": [5, 4], "datatype": "FP64"}
    asked = {"inputs": [sent | {"parameters": {"binary_data_size": size}}]}
    refused(post_binary(client, model, asked, X.tobytes()))


def test_bytes_that_belong_to_no_input(client: httpx.Client, model: str) -> None:
    asked = {"inputs": [tensor()]}
    assert "belong to no input" in refused(post_binary(client, model, asked, b"more"))


@pytest.mark.parametrize("length", [-1, 10**6, 10**30, "", "1e2", "ten", "¹", 5])
def test_lengths_of_the_json_that_do_not_fit(client: httpx.Client, model: str, length: Any) -> None:
    content = json.dumps({"inputs": [tensor()]}).encode()
    headers = {LENGTH.encode(): str(length).encode()}
    refused(client.post(f"{model}/infer", content=content, headers=headers), 400)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"null {}", b'{"id": "\\ud800"}'])
def test_bodies_that_are_not_json(client: httpx.Client, model: str, content: bytes) -> None:
    assert "not JSON" in refused(client.post(f"{model}/infer", content=content), 400)


def test_a_body_beyond_the_limit(server: ServerProcess, model: str) -> None:
    """Said before the body is sent, and so before any of it is held in memory."""
    with contextlib.closing(HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:
        connection.putrequest("POST", f"{model}/infer")
        connection.putheader("Content-Length", str(2**40))
        connection.endheaders()
        answer = connection.getresponse()
        assert answer.status == 413
        assert list(json.load(answer)) == ["error"]


def test_the_model_is_unharmed_by_all_of_that(client: httpx.Client, model: str) -> None:
    assert client.get(f"{model}/ready").json() == {"name": "shared", "ready": True}


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 2**70)
    | st.floats()
    | st.sampled_from(["x", "FP64", "INT8", "BYTES", "decision", ""]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["name", "shape", "datatype", "data", "parameters", "binary_data_size"]
            ),
            inner,
        )
    ),
    max_leaves=12,
)
FIELDS = st.fixed_dictionaries(
    {"name": st.just("x")},
    optional={
        "shape": st.just([2, 2]) | PLAIN,
        "datatype": st.sampled_from(["FP64", "FP16", "UINT64"]) | PLAIN,
        "data": st.just([1, 2, 3, 4]) | PLAIN,
        "parameters": st.fixed_dictionaries({"binary_data_size": st.just(8) | PLAIN}) | PLAIN,
    },
)


@given(
    fields=st.fixed_dictionaries(
        {"inputs": st.lists(FIELDS, max_size=2) | PLAIN},
        optional={"id": PLAIN, "outputs": PLAIN, "parameters": PLAIN},
    ),
    behind=st.binary(max_size=9),
    named=st.booleans(),
)
def test_whatever_is_sent_is_read_or_refused(fields: Any, behind: bytes, named: bool) -> None:
    head = json.dumps(fields).encode()
    try:
        rows = read_inference(head + behind, str(len(head)), named, BOUNDS).rows
    except Refusal as error:
        detail = error.detail
    else:
        assert n_rows(rows) >= 1
        assert named == isinstance(rows, NamedRows)
        return
    assert 0 < len(detail) < 1000
