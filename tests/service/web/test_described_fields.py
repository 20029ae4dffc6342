"""The OpenAPI document names each field of each request and response that is on record.

`python -m tests.service.web.test_described_fields` records them again after an intended change.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.routes.app import create_app
from wolfstream.service.web.routes.stream import Streams

RECORD = Path(__file__).with_name("described_fields.json")
_JSON = "application/json"


def fields(schema: Any, components: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the paths of all fields in a schema, those in arrays and maps too."""
    if "$ref" in schema:
        schema = components[schema["$ref"].rpartition("/")[2]]
    for choice in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(choice, ()):
            yield from fields(one, components, path)
    for name, of_field in schema.get("properties", {}).items():
        yield f"{path}/{name}"
        yield from fields(of_field, components, f"{path}/{name}")
    for many in ("items", "additionalProperties"):
        if isinstance(schema.get(many), dict):
            yield from fields(schema[many], components, f"{path}/*")


def described(document: dict[str, Any]) -> dict[str, list[str]]:
    """Return the fields of each request and response in JSON, by operation."""
    by_operation = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            contents = {"body": operation.get("requestBody", {})} | operation["responses"]
            for where, content in contents.items():
                schema = content.get("content", {}).get(_JSON, {}).get("schema", {})
                found = sorted(set(fields(schema, document["components"]["schemas"])))
                if found:
                    by_operation[f"{method.upper()} {path} {where}"] = found
    components = document["components"]["schemas"]
    problem = fields(components["Problem"], components)
    return by_operation | {"Problem": sorted(set(problem))}


def _document() -> dict[str, Any]:
    app = create_app(None, None, Settings(_env_file=None), Streams(), None, MemoryBudget(1))  # type: ignore[arg-type, call-arg]
    document: dict[str, Any] = json.loads(json.dumps(app.openapi()))
    return document


EXPECTED: dict[str, list[str]] = json.loads(RECORD.read_text()) if RECORD.exists() else {}


@pytest.fixture(scope="module")
def document() -> dict[str, list[str]]:
    return described(_document())


def test_bodies_are_those_on_record(document: dict[str, list[str]]) -> None:
    assert document.keys() == EXPECTED.keys()


@pytest.mark.parametrize("body", EXPECTED)
def test_fields_are_those_on_record(document: dict[str, list[str]], body: str) -> None:
    assert document[body] == EXPECTED[body]


if __name__ == "__main__":
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in described(_document()).items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
