"""The interface's description: complete, valid and true; and the page that shows it."""

import html
import json
import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Route, WebSocketRoute

from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.formats.tensors import NUMERIC
from wolfstream.service.web.routes.app import create_app
from wolfstream.service.web.routes.pages import page
from wolfstream.service.web.routes.stream import Streams

APP: FastAPI = create_app(None, None, Settings(_env_file=None), Streams(), None, MemoryBudget(1))  # type: ignore[arg-type, call-arg]
TOLD: dict[str, Any] = json.loads(json.dumps(APP.openapi()))
_BYTES = "application/octet-stream"
# The document itself, the page that shows it, and the console, which is no interface.
NOT_DESCRIBED = {"/", "/console/{file}", "/openapi.json", "/docs"}


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, of_path in TOLD["paths"].items():
        for method, operation in of_path.items():
            yield path, method, operation


each_operation = pytest.mark.parametrize(
    ("path", "method", "operation"),
    [pytest.param(*o, id=o[2]["operationId"]) for o in operations()],
)


def schema_of(content: dict[str, Any]) -> dict[str, Any]:
    return resolved(content["schema"])


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        schema = TOLD["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


# -- complete ---------------------------------------------------------------------------


def test_every_route_is_described() -> None:
    served = {
        (route.path, method.lower())
        for route in APP.routes
        if isinstance(route, Route) and route.path not in NOT_DESCRIBED
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert served == {(path, method) for path, method, _ in operations()}
    (stream,) = [route for route in APP.routes if isinstance(route, WebSocketRoute)]
    assert f"WS {stream.path}" in TOLD["info"]["description"]


def test_what_the_interface_is() -> None:
    assert TOLD["openapi"].startswith("3.1")
    assert TOLD["info"]["version"] == version("wolfstream")
    assert TOLD["info"]["license"]["identifier"] == "BSD-3-Clause"


def test_names_for_generated_clients() -> None:
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z_]+", name) for name in names)


@each_operation
def test_an_operation_says_what_it_does_and_takes(
    path: str, method: str, operation: dict[str, Any]
) -> None:
    assert operation.get("description") or operation["summary"]
    assert set(operation["tags"]) <= {tag["name"] for tag in TOLD["tags"]}
    named = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
    assert named == set(re.findall(r"{(\w+)}", path))
    if method in ("post", "put"):
        for media_type, content in operation["requestBody"]["content"].items():
            assert schema_of(content)
            assert content.keys() & {"example", "examples"} or media_type == _BYTES


@each_operation
def test_an_operation_says_what_it_answers(
    path: str, method: str, operation: dict[str, Any]
) -> None:
    statuses = set(operation["responses"])
    assert any(status.startswith("2") for status in statuses)
    if "{name}" in path:
        assert {"404", "503"} <= statuses or method == "put"
    if method == "post":
        assert {"400", "409", "413", "422"} <= statuses
    for status, response in operation["responses"].items():
        assert response["description"]
        if status == "204":
            assert "content" not in response
        elif status.startswith("2"):
            assert all(schema_of(content) for content in response["content"].values())
            if response["content"].keys() & {"text/plain", "text/event-stream", _BYTES}:
                continue
            assert schema_of(response["content"]["application/json"])["examples"]
        elif path.startswith("/v2") and status != "431":
            assert list(schema_of(response["content"]["application/json"])["properties"]) == [
                "error"
            ]
        else:
            assert (
                "detail" in schema_of(response["content"]["application/problem+json"])["required"]
            )


def test_every_reference_leads_somewhere() -> None:
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(TOLD)))
    assert set(TOLD["components"]["schemas"]) == names


def test_datatypes_of_the_inference_protocol() -> None:
    assert TOLD["components"]["schemas"]["InputTensor"]["properties"]["datatype"]["enum"] == [
        *NUMERIC
    ]


def test_generated_clients_can_create_the_default_model() -> None:
    """They send fields that have a default, or want them to be given."""
    for schema in TOLD["components"]["schemas"].values():
        assert not any("default" in field for field in schema.get("properties", {}).values())
    model = TOLD["components"]["schemas"]["NewModel"]
    assert "required" not in model
    assert model["properties"]["seed"]["description"] == "By default 0."


# -- valid and true ---------------------------------------------------------------------


def test_it_is_valid() -> None:
    validator = pytest.importorskip("openapi_spec_validator", reason="pip install -e '.[test]'")
    validator.validate(TOLD)


def examples(path: str, kind: str = "classes", method: str = "post") -> Iterator[tuple[str, Any]]:
    """Media types and example bodies: the only one, or the one of a kind."""
    for media_type, content in TOLD["paths"][path][method]["requestBody"]["content"].items():
        if media_type == _BYTES or "msgpack" in media_type:
            continue
        several = content.get("examples", {})
        yield media_type, several[kind]["value"] if several else content["example"]


def send(client: httpx.Client, path: str, media_type: str, example: Any) -> httpx.Response:
    content = example if isinstance(example, str) else json.dumps(example)
    return client.post(path, content=content, headers={"Content-Type": media_type})


def as_described(answer: httpx.Response, path: str, method: str) -> None:
    """The answer has what the description promises, and nothing that it does not know."""
    response = TOLD["paths"][path][method]["responses"][str(answer.status_code)]
    media_type = answer.headers["content-type"]
    schema = schema_of(response["content"][media_type])
    body = answer.json()
    assert set(schema["required"]) <= set(body) <= set(schema["properties"])
    if "head" in body and isinstance(body["head"], dict):
        for part in ("head", "results"):
            assert set(body[part]) <= set(resolved(schema["properties"][part])["properties"])
    try:
        import jsonschema
    except ModuleNotFoundError:
        return
    whole = {"allOf": [schema], "components": TOLD["components"]}
    jsonschema.Draft202012Validator(whole).validate(body)


@pytest.mark.parametrize("head", ["samples", "asset"])
def test_the_examples_of_learning_and_predicting(
    client: httpx.Client, name: str, head: str
) -> None:
    model, learn = "/v1/models/{name}", f"/v1/models/{{name}}/{head}"
    predict = "/v1/models/{name}/predict"
    spec = {"serve": "asset"} if head == "asset" else {}
    for number, (media_type, example) in enumerate(examples(learn)):
        own = f"{name}.{number}"
        created = client.put(model.format(name=own), json=spec)
        as_described(created, model, "put")
        answer = send(client, learn.format(name=own), media_type, example)
        as_described(answer, learn, "post")
        rows = dict(examples(predict, "rows"))[media_type]
        answer = send(client, predict.format(name=own), media_type, rows)
        assert answer.json()["prediction"] == ["low"]
        as_described(answer, predict, "post")
        as_described(client.get(model.format(name=own)), model, "get")
        as_described(client.get("/v1/models"), "/v1/models", "get")
    answer = send(client, learn.format(name=own), media_type, "")
    as_described(answer, learn, "post")


def test_the_examples_of_specs(client: httpx.Client, name: str) -> None:
    model, kinds = "/v1/models/{name}", []
    content = TOLD["paths"][model]["put"]["requestBody"]["content"]["application/json"]
    client.put("/v1/models/rooms").raise_for_status()  # which the challenger follows
    for kind, example in content["examples"].items():
        answer = client.put(model.format(name=f"{name}.{kind}"), json=example["value"])
        as_described(answer, model, "put")
        kinds.append(answer.json()["spec"]["task"])
    assert set(kinds) == {"classification", "regression"}


def test_a_challenger(client: httpx.Client, name: str) -> None:
    """It is described as it is, before and after it has taken its champion's place."""
    rooms, model = f"/v1/models/{name}", "/v1/models/{name}"
    client.put(rooms).raise_for_status()
    client.put(f"{rooms}-b", json={"follows": name}).raise_for_status()
    for compared in (True, False):
        if compared:
            sent = {"x": [[0.1, 0.2], [0.8, 0.9]] * 5, "y": ["low", "high"] * 5}
            for _ in range(2):
                sequence = client.post(f"{rooms}/samples", json=sent).json()["sequence"]
            client.get(f"{rooms}-b?min_sequence={sequence}").raise_for_status()
        told = client.get(f"{rooms}/challengers")
        as_described(told, f"{model}/challengers", "get")
        assert (told.json()["challengers"][0]["interval"] is not None) == compared
        answer = client.post(f"{rooms}/promote", json={"model": f"{name}-b"})
        as_described(answer, f"{model}/promote", "post")
        as_described(client.get(f"{rooms}-b"), model, "get")
        as_described(client.get(f"{rooms}/history"), f"{model}/history", "get")


def test_the_examples_of_a_regression(client: httpx.Client, name: str) -> None:
    model, learn = "/v1/models/{name}", "/v1/models/{name}/asset"
    predict, infer = "/v1/models/{name}/predict", "/v2/models/{name}/infer"
    spec = dict(examples(model, "numbers", "put"))["application/json"]
    for number, (media_type, example) in enumerate(examples(learn, "numbers")):
        own = f"{name}.{number}"
        client.put(model.format(name=own), json=spec)
        answer = send(client, learn.format(name=own), media_type, example)
        as_described(answer, learn, "post")
        rows = dict(examples(predict, "rows"))[media_type]
        answer = send(client, predict.format(name=own), media_type, rows)
        as_described(answer, predict, "post")
        as_described(client.get(model.format(name=own)), model, "get")
        if media_type != "text/x-libsvm":
            ((kind, tensors), *_) = examples(infer)
            as_described(send(client, infer.format(name=own), kind, tensors), infer, "post")


def test_the_examples_of_a_refit(client: httpx.Client, name: str) -> None:
    model, learn = "/v1/models/{name}", "/v1/models/{name}/samples"
    predict, job = "/v1/models/{name}/predict", "/v1/models/{name}/jobs/{job}"
    refit, jobs = "/v1/models/{name}/refit", "/v1/models/{name}/jobs"
    spec = {"task": "regression", "asset": None, "semiparametric": {}}
    client.put(model.format(name=name), json=spec)
    ((media_type, samples), *_) = examples(learn, "numbers")
    as_described(send(client, learn.format(name=name), media_type, samples), learn, "post")
    as_described(client.get(model.format(name=name)), model, "get")
    ((media_type, empty),) = examples(refit)
    asked = send(client, refit.format(name=name), media_type, empty)
    as_described(asked, refit, "post")
    while (told := client.get(asked.headers["location"])).json()["status"] != "done":
        as_described(told, job, "get")
    as_described(told, job, "get")
    as_described(client.get(jobs.format(name=name)), jobs, "get")
    as_described(client.get(model.format(name=name)), model, "get")
    ((media_type, rows), *_) = examples(predict, "rows")
    answer = send(client, predict.format(name=name), media_type, rows)
    as_described(answer, predict, "post")
    assert answer.json()["fit"]["job"] == asked.json()["job"]


def test_the_examples_of_the_inference_protocol(client: httpx.Client, name: str) -> None:
    client.put(f"/v1/models/{name}", json={})
    ((_, learned), *_) = examples("/v1/models/{name}/samples")
    client.post(f"/v1/models/{name}/samples", json=learned)
    infer = "/v2/models/{name}/infer"
    for media_type, example in examples(infer):
        answer = send(client, infer.format(name=name), media_type, example)
        assert answer.json()["outputs"][0]["data"] == ["low"]
        as_described(answer, infer, "post")
    as_described(send(client, infer.format(name=name), "", {}), infer, "post")
    for path in TOLD["paths"]:
        if path.startswith("/v2") and "get" in TOLD["paths"][path]:
            answer = client.get(path.format(name=name, version="1"))
            assert answer.status_code == 200
            as_described(answer, path, "get")


@pytest.mark.parametrize("call", ["samples", "asset"])
def test_the_headers_of_learning(client: httpx.Client, name: str, call: str) -> None:
    path = f"/v1/models/{{name}}/{call}"
    client.put(f"/v1/models/{name}", json={})
    samples = dict(examples(path))["application/json"]
    described = {p["name"]: p for p in TOLD["paths"][path]["post"]["parameters"]}
    headers = {
        name: described[name]["schema"]["examples"][0] for name in ("Idempotency-Key", "Prefer")
    }

    def post(**changed: str) -> httpx.Response:
        sent = headers | {k.replace("_", "-"): v for k, v in changed.items()}
        answer = client.post(path.format(name=name), json=samples, headers=sent)
        as_described(answer, path, "post")
        told = TOLD["paths"][path]["post"]["responses"][str(answer.status_code)]
        given = {name.title() for name in answer.headers} & {
            "Idempotency-Replayed",
            "Preference-Applied",
        }
        assert given <= set(told.get("headers", {}))
        return answer

    assert post().status_code == 200
    assert post().headers["idempotency-replayed"] == "true"
    assert post(Idempotency_Key="other", Prefer="respond-async").status_code == 202
    assert post(Idempotency_Key="two words").status_code == 422


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_health(client: httpx.Client, path: str) -> None:
    as_described(client.get(path), path, "get")


# -- the page ---------------------------------------------------------------------------


def test_the_page_needs_nothing_from_elsewhere(client: httpx.Client) -> None:
    answer = client.get("/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert not re.search(r"https?:|//|<script|<link|<img|<iframe|@import|url\(", answer.text)
    for target in re.findall(r"href='?([^\s'>]+)", answer.text):
        assert target == "openapi.json" or f"id='{target[1:]}'" in answer.text
    assert client.get("/openapi.json").json() == TOLD
    assert client.get("/redoc").status_code == 404


def test_the_page_shows_everything() -> None:
    shown = html.unescape(re.sub(r"<[^>]+>", "", page(TOLD)))
    for path, method, operation in operations():
        assert re.search(rf"{method} {re.escape(path)}\s", shown)
        for status, response in operation["responses"].items():
            assert f"{status} {response['description'].replace('`', '')}" in shown
    for name in TOLD["components"]["schemas"]:
        assert name in shown
    assert "0.1,0.2,low" in shown


def test_the_page_is_text_whatever_is_described() -> None:
    told = json.loads(json.dumps(TOLD).replace("rooms", "</pre><script>alert(1)</script>"))
    told["info"]["title"] = told["tags"][0]["description"] = "<script>"
    assert "<script" not in page(told)
