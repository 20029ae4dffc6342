"""The types, examples and media types of the bodies that the table of calls names."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Annotated, Any

from pydantic import Field

from wolfstream.service.calls import inference, models, samples, values
from wolfstream.service.calls.table import Call
from wolfstream.service.web.formats.inference import JSON_LENGTH_HEADER
from wolfstream.service.web.formats.paths import speaks_inference
from wolfstream.service.web.formats.wire import JSON, MEDIA_TYPES, OCTETS

EXAMPLES: dict[str, Any] = json.loads(
    files(__package__).joinpath("openapi_examples.json").read_bytes()
)
EXAMPLES["Jobs"] = {"jobs": [EXAMPLES["Job"]]}
EXAMPLES["History"]["snapshots"] = [EXAMPLES["Snapshot"]]


Content = dict[str, Any]

# Name in the table -> type.
_TYPES: Mapping[str, Any] = {
    "Nothing": Annotated[dict[str, Any], Field(max_length=0)],
    **{
        kind.__name__: kind
        for kind in (
            *(samples.Samples, samples.Rows, samples.LateLabels, models.NewModel),
            *(models.Rollback, models.Promotion, inference.InferenceRequest),
            *(samples.Learned, samples.Accepted, samples.Prediction, samples.Labelled),
            *(models.Created, models.Model, models.Models, models.Learners),
            *(models.Job, models.Jobs, models.History, models.Snapshot, models.MetricsHistory),
            *(models.Challengers, values.Status),
            *(inference.InferenceServer, inference.InferenceLive, inference.InferenceReady),
            *(inference.InferenceModel, inference.InferenceModelReady, inference.InferenceAnswer),
        )
    },
}
# Name -> type in MessagePack, which also has raw arrays.
PACKED = {"Samples": samples.PackedSamples, "Rows": samples.PackedRows}
_FLAT = samples.FlatRows
# Bodies that a client may leave out.
_OPTIONAL = ("Nothing", "NewModel")
_TEXT = {"type": "string"}
_TENSORS = {
    "type": "string",
    "format": "binary",
    "description": f"JSON, as long as {JSON_LENGTH_HEADER} says, then the tensors' bytes.",
}
_METRICS = "# TYPE wolfstream_ready gauge\nwolfstream_ready 1.0\n"
_EVENTS = """id: 5e0c92d1-17
event: state
data: {"model": "rooms", "sequence": 1500, "values": {"adaptive.accuracy": 0.92}}

"""
# Name -> media types of bodies that are not, or not only, JSON.
_OTHER: dict[str, Content] = {
    "ModelFile": {OCTETS: {"schema": {"type": "string", "format": "binary"}}},
    "InferenceRequest": {OCTETS: {"schema": _TENSORS}},
    "InferenceAnswer": {OCTETS: {"schema": _TENSORS}},
    "Events": {"text/event-stream": {"schema": _TEXT, "example": _EVENTS}},
    "Metrics": {
        "text/plain": {"schema": _TEXT, "example": _METRICS},
        "application/openmetrics-text": {"schema": _TEXT, "example": f"{_METRICS}# EOF\n"},
    },
}

_LABELS_IN_LINES: Content = {
    "text/csv": {"schema": _TEXT, "example": "id,label\nhall,humid\n7,dry\n"}
}


def ref(name: str) -> dict[str, Any]:
    """Return a reference to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


def type_of(name: str) -> Any:
    """Return the type of a body in JSON; None if it is never JSON."""
    kind = _TYPES.get(name)
    return kind | _FLAT if name in PACKED else kind


def is_required(name: str) -> bool:
    """Return whether a request needs its body."""
    return name not in _OPTIONAL


def request_content(name: str) -> Content:
    """Return the media types of a request's body, with examples, and schemas except for JSON."""
    if name in PACKED:
        return _rows(name)
    if name == "Nothing":
        return {JSON.media_type: {"example": {}}}
    if name in _OTHER:
        return _in_json(name) | _OTHER[name] if name in _TYPES else _OTHER[name]
    content = {"schema": ref(name), "examples": EXAMPLES[name]}
    in_lines = _LABELS_IN_LINES if name == "LateLabels" else {}
    return dict.fromkeys(MEDIA_TYPES, content) | in_lines


def response_content(call: Call, name: str) -> Content:
    """Return the media types of a response, with examples and schemas."""
    if name not in _TYPES:
        return _OTHER[name]
    if name in _OTHER:
        return _in_json(name) | _OTHER[name]
    if call.scope is None or speaks_inference(call.path):
        return _in_json(name)
    return dict.fromkeys(MEDIA_TYPES, _in_json(name)[JSON.media_type])


def _in_json(name: str) -> Content:
    return {JSON.media_type: {"schema": ref(name), "example": EXAMPLES[name]}}


def _rows(name: str) -> Content:
    """Return the media types of samples or rows: JSON, MessagePack with raw arrays, or lines."""
    kinds = {
        media_type: {kind: {"value": value} for kind, value in examples.items()}
        for media_type, examples in EXAMPLES[name].items()
    }
    in_json = kinds.pop(JSON.media_type)
    content: Content = {JSON.media_type: {"examples": in_json}}
    packed = {"anyOf": [ref(PACKED[name].__name__), ref(_FLAT.__name__)]}
    for media_type in MEDIA_TYPES[1:]:
        content[media_type] = {"schema": packed, "examples": in_json}
    for media_type, lines in kinds.items():
        content[media_type] = {"schema": _TEXT, "examples": lines}
    return content
