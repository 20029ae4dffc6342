"""Requests and responses of the Open Inference Protocol, version 2, as plain data.

    GET  /v2, /v2/health/live, /v2/health/ready      the server
    GET  /v2/models/M[/versions/V][/ready]           a model
    POST /v2/models/M[/versions/V]/infer             its predictions

The binary tensor data extension is supported.

A model whose rows are arrays has one input, `x`, of shape [n, d]. A model whose numbers have names
has an input of shape [n] or [n, 1] for each name. An omitted input is zero in sparse rows and
missing in a table; a table also takes `x`. The outputs are `prediction` and `decision`.

A model has one version, 1: its present state. The sequence is not a version, because clients cannot
request an older one. It is one of a response's parameters, along with the head and, as JSON text,
the order of the classes or the refit that predicted.

A request may have the parameters `head`, `min_sequence` and `binary_data_output`. Other parameters
are ignored, and so are fields that the protocol does not define.
"""

from typing import Any, NamedTuple, get_args

import numpy as np

from wolfstream.service.calls.inference import (
    InferenceError,
    InferenceModel,
    OutputName,
    TensorMetadata,
)
from wolfstream.service.calls.values import Problem
from wolfstream.service.errors import Invalid, Unreadable
from wolfstream.service.model.live import Model
from wolfstream.service.model.revision import Revision, read_awaited
from wolfstream.service.samples.validation import read_rows
from wolfstream.service.web.formats.bounds import Bounds
from wolfstream.service.web.formats.finite import finite_json
from wolfstream.service.web.formats.tensors import (
    Output,
    as_array,
    as_one_sentence,
    as_text,
    datatype_of_labels,
    read_numbers,
    refuse,
    write_tensor,
)
from wolfstream.service.web.formats.wire import JSON
from wolfstream.solver.prepare.named_rows import Rows, table_of

VERSION = "1"
OUTPUTS = get_args(OutputName)
JSON_LENGTH_HEADER = "Inference-Header-Content-Length"
# Extensions that must not be ignored: the client would get another response than it expects.
_UNSUPPORTED = ("shared_memory_region", "classification")


class Inference(NamedTuple):
    """A request for predictions."""

    id: str | None
    rows: Rows
    head: str | None
    awaited: Revision | None
    outputs: list[tuple[str, bool]]  # the name of each tensor, and whether it is sent as binary

    @property
    def binary(self) -> bool:
        """Whether binary tensors follow the response's JSON."""
        return any(binary for _, binary in self.outputs)


def error_body(problem: Problem) -> InferenceError:
    """Return a problem in the protocol's form of errors."""
    return {"error": as_one_sentence(problem["detail"], problem.get("errors", []))}


def metadata(model: Model) -> InferenceModel:
    """Return a model's inputs and outputs, as far as it knows them; -1 means any length."""
    published = model.published
    view = published.heads[model.spec.serve]
    schema = published.rows.form.schema
    if published.rows.names is not None:
        names = published.rows.names.names()[: published.rows.dimension]
        inputs = [_tensor(name, "FP64", [-1]) for name in names]
    elif schema is not None and schema.named:
        inputs = [_tensor(name, "FP64", [-1]) for name in schema.names]
    else:
        inputs = [_tensor("x", "FP64", [-1, published.rows.dimension or -1])]
    classes = view.classes
    prediction = "FP64" if classes is None else datatype_of_labels(classes)
    decision = [-1, len(classes)] if classes and len(classes) > 2 else [-1]
    return {
        "name": model.name,
        "versions": [VERSION],
        "platform": "wolfstream",
        "inputs": inputs,
        "outputs": [
            _tensor("prediction", prediction, [-1]),
            _tensor("decision", "FP64", decision),
        ],
    }


def read_inference(body: bytes, json_length: str | None, named: bool, bounds: Bounds) -> Inference:
    """Decode and check a request.

    Args:
        body: the body, with binary data.
        json_length: the header with the number of bytes of JSON, which binary data may follow.
        named: whether the numbers in the model's rows have names.
        bounds: bounds on the number of values in the body.

    Raises Unreadable, Invalid, TooLarge.
    """
    size = len(body) if json_length is None else _read_length(json_length, len(body))
    fields = JSON.decode(body[:size], bounds)
    if not isinstance(fields, dict):
        raise Invalid("the request must be an object with inputs")
    request_id = fields.get("id")
    if request_id is not None and not isinstance(request_id, str):
        raise Invalid("id must be a string")
    tensors = _read_inputs(fields.get("inputs"), body[size:])
    parameters = _parameters(fields, "the request")
    head, awaited = parameters.get("head"), read_awaited(parameters.get("min_sequence"))
    if head is not None and not isinstance(head, str):
        raise Invalid("parameter head must be a string")
    binary = _flag(parameters, "binary_data_output", False, "the request")
    outputs = _read_outputs(fields.get("outputs"), binary)
    by_place = len(tensors) == 1 and tensors[0][0] == "x" and tensors[0][1].shape[1] > 1
    rows = _named(tensors) if named and not by_place else _dense(tensors)
    return Inference(request_id, rows, head, awaited, outputs)


def write_inference(wanted: Inference, answer: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Return the JSON of a response, and the bytes of the binary tensors that follow it.

    Args:
        wanted: the request.
        answer: the result of `handlers.predict`.

    Large answers are encoded on another thread, in parts between which other threads can run.
    """
    prediction = answer["prediction"]
    decision = as_array(answer["decision"])
    datatype = datatype_of_labels(answer.get("classes", prediction))
    if datatype == "BYTES":
        prediction = [as_text(label) for label in prediction]
    tensors = {
        "prediction": Output("prediction", datatype, [len(prediction)], prediction),
        "decision": Output("decision", "FP64", list(decision.shape), decision),
    }
    written = [write_tensor(tensors[name], binary) for name, binary in wanted.outputs]
    response: dict[str, Any] = {"model_name": answer["model"], "model_version": VERSION}
    if wanted.id is not None:
        response["id"] = wanted.id
    response["parameters"] = {name: answer[name] for name in ("sequence", "epoch", "head")}
    for name in ("classes", "fit"):
        if name in answer:
            response["parameters"][name] = finite_json(answer[name]).decode()
    response["outputs"] = [tensor for tensor, _ in written]
    return response, b"".join(data for _, data in written)


def _tensor(name: str, datatype: str, shape: list[int]) -> TensorMetadata:
    return {"name": name, "datatype": datatype, "shape": shape}


def _read_length(given: str, most: int) -> int:
    if not given.isascii() or not given.isdecimal() or len(given) > 18 or int(given) > most:
        raise Unreadable(f"{JSON_LENGTH_HEADER} must be a length within the body's {most} bytes")
    return int(given)


def _named_objects(given: Any, what: str) -> list[dict[str, Any]]:
    """Check that a list has objects with distinct names; return it. Raises Invalid."""
    if not isinstance(given, list):
        raise Invalid(f"{what} must be a list of objects, each with a name")
    names = set()
    for item in given:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise Invalid(f"{what} must be a list of objects, each with a name")
        if item["name"] in names:
            refuse(item["name"], f"is among the {what} twice")
        names.add(item["name"])
        for extension in _UNSUPPORTED:
            if extension in _parameters(item, item["name"]):
                refuse(item["name"], f"the extension {extension} is not supported")
    return given


def _parameters(given: dict[str, Any], where: str) -> dict[str, Any]:
    parameters = given.get("parameters")
    if parameters is not None and not isinstance(parameters, dict):
        raise Invalid(f"parameters of {where[:100]!r} must be an object")
    return parameters or {}


def _flag(parameters: dict[str, Any], name: str, default: bool, where: str) -> bool:
    value = parameters.get(name, default)
    if not isinstance(value, bool):
        raise Invalid(f"parameter {name} of {where[:100]!r} must be true or false")
    return value


def _read_inputs(given: Any, binary: bytes) -> list[tuple[str, Any]]:
    """Return (name, numbers) of each input; the inputs share the binary data in their order."""
    inputs = _named_objects(given, "inputs")
    parts: list[bytes | None] = []
    start = 0
    for tensor in inputs:
        size = _parameters(tensor, tensor["name"]).get("binary_data_size")
        if size is None:
            parts.append(None)
            continue
        if type(size) is not int or not 0 <= size <= len(binary) - start:
            detail = f"binary_data_size must be a length within the {len(binary) - start} bytes "
            refuse(tensor["name"], detail + f"after the JSON; is {JSON_LENGTH_HEADER} right?")
        if "data" in tensor:
            refuse(tensor["name"], "has data and binary_data_size; send one of them")
        parts.append(binary[start : start + size])
        start += size
    if start != len(binary):
        raise Invalid(f"{len(binary) - start} bytes after the JSON belong to no input")
    numbers = read_numbers(zip(inputs, parts, strict=True))
    return [(tensor["name"], array) for tensor, array in zip(inputs, numbers, strict=True)]


def _read_outputs(given: Any, binary: bool) -> list[tuple[str, bool]]:
    """Return the names of the requested outputs, by default all, and whether each is binary."""
    if given is None or given == []:
        return [(name, binary) for name in OUTPUTS]
    wanted = _named_objects(given, "outputs")
    for tensor in wanted:
        if tensor["name"] not in OUTPUTS:
            refuse(tensor["name"], f"is not an output; the outputs are {' and '.join(OUTPUTS)}")
    return [
        (name, _flag(_parameters(tensor, name), "binary_data", binary, name))
        for tensor in wanted
        for name in [tensor["name"]]
    ]


def _dense(tensors: list[tuple[str, Any]]) -> Rows:
    if len(tensors) != 1 or tensors[0][0] != "x":
        detail = "the model's rows are arrays: its only input is 'x', of shape [rows, numbers]"
        raise Invalid(detail)
    rows: Rows = tensors[0][1]
    return rows


def _named(tensors: list[tuple[str, Any]]) -> Rows:
    """Return rows of named numbers: each input is the column with its name."""
    if not tensors:
        raise Invalid("inputs is empty; the model takes an input for each of its features")
    for name, column in tensors:
        if column.shape[1] != 1 or len(column) != len(tensors[0][1]):
            detail = "the model's rows are named numbers: each input is one feature of all rows, "
            refuse(name, detail + f"here of shape [{len(tensors[0][1])}]")
    names = [name for name, _ in tensors]
    read_rows({"x": dict.fromkeys(names, 0)})  # refuses invalid names
    return table_of(names, np.hstack([column for _, column in tensors]))
