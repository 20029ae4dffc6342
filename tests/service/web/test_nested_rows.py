"""Rows with objects in them: an error's pointer leads to the value in the body as it was sent."""

import json
from typing import Any

import httpx
import msgpack
import pytest

from tests.service.process import ServerProcess
from tests.service.web.test_stream import open_stream

JSON, NDJSON, MSGPACK = "application/json", "application/x-ndjson", "application/vnd.msgpack"
QUICK = {"working_set": None, "asset": None}
STRICT = {**QUICK, "prepare": {"names": "strict"}}
WRONG = [1, "b"]  # neither a value nor a text


def at(body: Any, pointer: str) -> Any:
    """The value that a JSON pointer (RFC 6901) leads to."""
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        body = body[int(name) if isinstance(body, list) else name]
    return body


def pointers(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 422, answer.text
    return [error["pointer"] for error in answer.json()["errors"]]


@pytest.mark.parametrize(
    "row",
    [
        {"user": {"age": WRONG}},
        {"user": {"home": {"city": WRONG, "zip": 7}}, "user.name": "x"},
        {"a/b": {"~c": {"": WRONG}}},
        {"": {"": WRONG}},
        {"__proto__": {"constructor": WRONG}},
        {"a.b": {"c": WRONG}, "a": {"b.d": 1}},
        {"a.b": WRONG, "c": {"d": 1}},
        {"0": {"1": WRONG}},
    ],
    ids=str,
)
@pytest.mark.parametrize("media_type", [JSON, MSGPACK])
def test_to_a_value_that_is_wrong(client: httpx.Client, row: Any, media_type: str) -> None:
    client.put("/v1/models/nested", json=QUICK).raise_for_status()
    body = {"x": [{"b": 1}, row]}
    pack = json.dumps if media_type == JSON else msgpack.packb
    headers = {"content-type": media_type, "accept": JSON}
    answer = client.post("/v1/models/nested/predict", content=pack(body), headers=headers)
    (pointer,) = pointers(answer)
    assert at(body, pointer) == WRONG


def test_of_a_row_alone(client: httpx.Client) -> None:
    client.put("/v1/models/nested", json=QUICK).raise_for_status()
    answer = client.post("/v1/models/nested/predict", json={"x": {"user": {"age": WRONG}}})
    assert pointers(answer) == ["/x/user/age"]


@pytest.mark.parametrize("single", [False, True])
def test_to_a_name_that_the_model_does_not_have(client: httpx.Client, single: bool) -> None:
    client.put("/v1/models/strict", json=STRICT).raise_for_status()
    rows = [{"user": {"age": 1, "x/y": {}}, "a": 2}, {"user": {"age": 2}, "a": 1}]
    learned = {"x": rows, "y": ["a", "b"]}
    client.post("/v1/models/strict/samples", json=learned).raise_for_status()
    row = {"user": {"age": 1, "x/z": 2}, "a": 2}
    body = {"x": row if single else [row]}
    (pointer,) = pointers(client.post("/v1/models/strict/predict", json=body))
    assert at(body, pointer) == 2


@pytest.mark.parametrize("media_type", [JSON, NDJSON, MSGPACK])
@pytest.mark.parametrize("more", [{}, {"c": 1}], ids=["a table", "rows by name"])
def test_in_flat_rows(client: httpx.Client, media_type: str, more: dict[str, Any]) -> None:
    client.put("/v1/models/nested", json=QUICK).raise_for_status()
    rows = [{"user": {"age": 1}, "y": "a"}, {"user": {"age": WRONG}, "y": "b", **more}]
    content: Any = msgpack.packb(rows) if media_type == MSGPACK else json.dumps(rows)
    if media_type == NDJSON:
        content = "\n".join(map(json.dumps, rows))
    answer = client.post(
        "/v1/models/nested/samples?label=y",
        content=content,
        headers={"content-type": media_type, "accept": JSON},
    )
    assert pointers(answer) == ["/1/user/age"]


def test_to_a_label_in_an_object(client: httpx.Client) -> None:
    client.put("/v1/models/nested", json=QUICK).raise_for_status()
    rows = [{"of": {"y": "a"}, "b": 1}, {"of": {"y": None}, "b": 1}]
    answer = client.post("/v1/models/nested/samples?label=of.y", json=rows)
    assert pointers(answer) == ["/1/of/y"]


def test_where_rows_differ_the_row_is_named(client: httpx.Client) -> None:
    client.put("/v1/models/nested", json=QUICK).raise_for_status()
    rows = [{"of.y": "a", "b": 1}, {"of": {"y": None}, "b": 1}]
    answer = client.post("/v1/models/nested/samples?label=of.y", json=rows)
    assert pointers(answer) == ["/1"]


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ({"a": 1, "b": "z"}, "a", "/x/b"),
        ([1.0], "a", "/x"),
        ([1.0, "c"], "a", "/x/1"),
        ([[1.0, "c"]], ["a"], "/x/0/1"),
        ([1.0, 2.0], "c", "/y"),
        ([[1.0, 2.0]], ["c"], "/y/0"),
    ],
)
def test_of_one_row_there_is_no_index(client: httpx.Client, x: Any, y: Any, expected: str) -> None:
    """Also where it is the model that refuses it, and not the reader of bodies."""
    spec = {"prepare": None, "adaptive": None, "asset": None, "classes": ["a", "b"]}
    client.put("/v1/models/single", json=spec).raise_for_status()
    learned = {"x": [[1.0, 2.0], [2.0, 1.0]], "y": ["a", "b"]}
    client.post("/v1/models/single/samples", json=learned).raise_for_status()
    answer = client.post("/v1/models/single/samples", json={"x": x, "y": y})
    assert pointers(answer) == [expected]


def test_in_frames(server: ServerProcess, client: httpx.Client) -> None:
    client.put("/v1/models/frames", json=STRICT).raise_for_status()
    client.post(
        "/v1/models/frames/samples",
        json={"x": [{"user": {"age": 1}}, {"user": {"age": 2}}], "y": ["a", "b"]},
    ).raise_for_status()
    unknown = {"user": {"age": 1, "city/x": "z"}}, "/user/city~1x"
    wrong = {"user": {"age": WRONG}}, "/user/age"
    predict, learn = {"op": "predict"}, {"op": "learn", "y": "a"}
    with open_stream(server, "frames") as stream:
        stream.receive()
        for fields, (row, told) in ((predict, unknown), (predict, wrong), (learn, wrong)):
            for x, at_row in ((row, "/x"), ([row], "/x/0")):
                error = stream.ask({"id": 1, **fields, "x": x})["error"]
                assert [one["pointer"] for one in error["errors"]] == [at_row + told]
