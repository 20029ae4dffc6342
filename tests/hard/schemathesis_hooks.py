"""What schemathesis needs: MessagePack, NDJSON, existing models, and bodies that fit them."""

from typing import Any

import msgpack
import schemathesis

from wolfstream.service.web.formats.inference import JSON_LENGTH_HEADER

MODELS = ("arrays", "three", "named", "fresh", "regression")
PACKED = ("application/vnd.msgpack", "application/x-msgpack")


@schemathesis.serializer(*PACKED)
def pack(_: Any, value: Any) -> bytes:
    """What was generated, or as text what MessagePack cannot say, which is wrong in another way."""
    packed: bytes = msgpack.packb(value, default=str)
    return packed


@schemathesis.deserializer(*PACKED)
def unpack(_: Any, response: Any) -> Any:
    """Return an answer as plain data."""
    return msgpack.unpackb(response.content)


@schemathesis.serializer("application/x-ndjson")
def lines(_: Any, value: Any) -> bytes:
    """Text as it is."""
    return str(value).encode()


@schemathesis.hook
def map_path_parameters(ctx: Any, path_parameters: Any) -> Any:
    """Most calls go to a model that exists; none of these is deleted."""
    if not path_parameters or ctx.operation.method.upper() in ("PUT", "DELETE"):
        return path_parameters
    name = path_parameters.get("name")
    if isinstance(name, str) and len(name) % 6 < len(MODELS):
        path_parameters["name"] = MODELS[len(name) % 6]
    return path_parameters


@schemathesis.hook
def map_headers(_: Any, headers: Any) -> Any:
    """Return a length of JSON that was generated fits no body: most requests go without."""
    length = (headers or {}).get(JSON_LENGTH_HEADER)
    if length and not str(length).endswith("7"):
        return {k: v for k, v in headers.items() if k.lower() != JSON_LENGTH_HEADER.lower()}
    return headers


@schemathesis.hook
def map_body(_: Any, body: Any) -> Any:
    """Return every other request fits a model of two numbers a row, which a schema cannot say."""
    if isinstance(body, dict) and isinstance(body.get("x"), list) and len(body["x"]) % 2:
        body["x"] = [_two(row) for row in body["x"] if isinstance(row, list)] or [[1, 2]]
        if isinstance(body.get("y"), list) and body["y"]:
            body["y"] = (body["y"] * len(body["x"]))[: len(body["x"])]
    inputs = body.get("inputs") if isinstance(body, dict) else None
    if isinstance(inputs, list) and len(inputs) == 1 and isinstance(inputs[0], dict):
        data = inputs[0].get("data")
        if isinstance(data, list) and len(data) % 2:
            of_x = {"name": "x", "shape": [len(data), 2], "data": [_two([v]) for v in data]}
            body["inputs"] = [inputs[0] | of_x]
    return body


def _two(row: list[Any]) -> list[Any]:
    return [*row, 0.5, 0.25][:2]
