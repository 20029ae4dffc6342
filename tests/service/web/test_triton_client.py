"""A client that others wrote for the Open Inference Protocol, against a real server.

It is Triton's (`tritonclient[http]`, in the extra `hard`), which brings gevent and other compiled
packages: where it is not installed these tests are skipped, and `test_inference` has the
protocol's examples with a plain client.
"""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from tests.service.process import ServerProcess
from tests.service.streams import body, few_words, three_classes, two_classes

triton: Any = pytest.importorskip(
    "tritonclient.http", reason="needs tritonclient[http]: pip install -e '.[hard]'"
)
SAMPLES = two_classes(200)


@pytest.fixture
def speaker(server: ServerProcess) -> Iterator[Any]:
    with triton.InferenceServerClient(f"127.0.0.1:{server.port}") as client:
        yield client


@pytest.fixture
def trained(client: httpx.Client, name: str) -> str:
    client.put(f"/v1/models/{name}", json={})
    client.post(f"/v1/models/{name}/samples", json=body(SAMPLES))
    return name


def tensor(name: str, X: np.ndarray, datatype: str, binary: bool = True) -> Any:
    given = triton.InferInput(name, list(X.shape), datatype)
    return given.set_data_from_numpy(X, binary_data=binary)


def test_server_and_model_describe_themselves(speaker: Any, trained: str) -> None:
    assert speaker.is_server_live()
    assert speaker.is_server_ready()
    assert speaker.is_model_ready(trained)
    assert speaker.is_model_ready(trained, "1")
    assert not speaker.is_model_ready(trained, "2")
    assert speaker.get_server_metadata()["name"] == "wolfstream"
    (given,) = speaker.get_model_metadata(trained, "1")["inputs"]
    assert given == {"name": "x", "datatype": "FP64", "shape": [-1, 4]}


@pytest.mark.parametrize(("datatype", "dtype"), [("FP32", "f4"), ("FP64", "f8"), ("INT64", "i8")])
@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("received", [False, True])
def test_infer(
    speaker: Any,
    client: httpx.Client,
    trained: str,
    datatype: str,
    dtype: str,
    sent: bool,
    received: bool,
) -> None:
    X = np.round(SAMPLES.X[:20] * 8).astype(dtype)
    wanted = [triton.InferRequestedOutput(n, received) for n in ("decision", "prediction")]
    result = speaker.infer(trained, [tensor("x", X, datatype, sent)], "1", wanted, "seven")
    rows = {"x": X.astype(float).tolist()}
    expected = client.post(f"/v1/models/{trained}/predict", json=rows).json()
    prediction = result.as_numpy("prediction").tolist()
    assert [p.decode() if received else p for p in prediction] == expected["prediction"]
    assert result.as_numpy("decision").tolist() == expected["decision"]
    response = result.get_response()
    assert (response["id"], response["model_version"]) == ("seven", "1")
    assert json.loads(response["parameters"]["classes"]) == expected["classes"]


def test_all_outputs_by_default_and_integer_labels(
    speaker: Any, client: httpx.Client, name: str
) -> None:
    samples = three_classes(200)
    client.put(f"/v1/models/{name}", json={})
    client.post(f"/v1/models/{name}/samples", json=body(samples))
    result = speaker.infer(name, [tensor("x", samples.X, "FP64")])
    expected = client.post(f"/v1/models/{name}/predict", json={"x": samples.X.tolist()}).json()
    assert result.as_numpy("prediction").dtype == np.int64
    assert result.as_numpy("prediction").tolist() == expected["prediction"]
    assert result.as_numpy("decision").tolist() == expected["decision"]


def test_named_rows(speaker: Any, client: httpx.Client, name: str) -> None:
    client.put(f"/v1/models/{name}", json={})
    client.post(f"/v1/models/{name}/samples", json=body(few_words(100)))
    inputs = [
        tensor("a 1", np.array([[1.0], [0.0]]), "FP64"),
        tensor("b 1", np.array([[0], [1]]), "INT64", binary=False),
    ]
    result = speaker.infer(name, inputs)
    assert result.as_numpy("prediction").tolist() == [b"a", b"b"]


def test_custom_parameters(speaker: Any, client: httpx.Client, trained: str) -> None:
    client.post(f"/v1/models/{trained}/asset", json=body(SAMPLES))
    given = [tensor("x", SAMPLES.X, "FP64")]
    result = speaker.infer(trained, given, parameters={"head": "asset", "min_sequence": 400})
    assert result.get_response()["parameters"]["head"] == "asset"


def test_a_refusal_is_understood(speaker: Any, trained: str) -> None:
    with pytest.raises(triton.InferenceServerException) as caught:
        speaker.infer(trained, [tensor("x", np.zeros((2, 3)), "FP64")])
    assert caught.value.status() == "422"
    assert "rows have 4" in caught.value.message()
    with pytest.raises(triton.InferenceServerException) as caught:
        speaker.infer("nobody", [tensor("x", np.zeros((2, 3)), "FP64")])
    assert caught.value.status() == "404"
