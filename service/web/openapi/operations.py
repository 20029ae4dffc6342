"""What a route says of its requests and responses: the arguments of FastAPI's decorators.

FastAPI derives nothing of bodies that a route decodes itself, in several formats.
"""

from typing import Any

from wolfstream.service.calls.table import Call
from wolfstream.service.errors import Invalid, QuotaExceeded, Refusal, Unavailable
from wolfstream.service.web.formats.inference import JSON_LENGTH_HEADER
from wolfstream.service.web.formats.paths import speaks_inference
from wolfstream.service.web.formats.problems import status_of
from wolfstream.service.web.formats.wire import JSON, MEDIA_TYPES, OCTETS, PROBLEM_MEDIA_TYPE
from wolfstream.service.web.openapi.certainty import CONFIDENCE, EXPLAIN
from wolfstream.service.web.openapi.examples import EXAMPLES
from wolfstream.service.web.openapi.fields import MIN_SEQUENCE as OF_MIN_SEQUENCE
from wolfstream.service.web.openapi.primitives import COUNT, HEAD, TEXT, ref

Responses = dict[int | str, dict[str, Any]]

_RETRY_AFTER = {
    "description": "Seconds after which the request may succeed.",
    "schema": {"type": "integer"},
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The client's name for this request, such as a UUID: 1 to 255 visible ASCII "
    "characters, as they are or as a quoted string. The same samples sent again under the same key "
    "are learned once, and get the first answer.",
    "schema": {"type": "string", "maxLength": 512},
    "example": "8e03978e-40d5-43e8-bc93-6894a57f9324",
}
_PREFER = {
    "name": "Prefer",
    "in": "header",
    "description": "RFC 7240. `respond-async`: 202 as soon as the samples are durable. `wait=N`: "
    "202 unless they are learned within N seconds.",
    "schema": TEXT,
    "example": "respond-async, wait=2",
}
_REPLAYED = {
    "description": "The request was answered before under its key; this is that answer.",
    "schema": {"type": "string", "enum": ["true"]},
}
_APPLIED = {
    "description": "The preferences that were honoured, and how long the wait could be.",
    "schema": TEXT,
}
_HEAD = {
    "name": "head",
    "in": "query",
    "description": "By default the spec's `serve`.",
    "schema": HEAD,
}
_MIN_SEQUENCE = {
    "name": "min_sequence",
    "in": "query",
    "description": "Wait until the model has this sequence: read your own writes.",
    "schema": OF_MIN_SEQUENCE,
}
_MAX_LAG = {
    "name": "max_lag",
    "in": "query",
    "description": "Where nothing newer can be had, such as while a long log is replayed: how many "
    "of the last seconds a prediction may lack, instead of 503.",
    "schema": {"type": "number", "minimum": 0},
    "example": 3600,
}
_IF_MATCH = {
    "name": "If-Match",
    "in": "header",
    "description": "Entity tags: the request is carried out only while the model has this epoch "
    'and sequence ("EPOCH:SEQUENCE", as in ETag), or this epoch ("EPOCH").',
    "schema": TEXT,
    "example": '"b2c9e0d4a1f7:2"',
}
_PROBABILITY = {
    "name": "probability",
    "in": "query",
    "description": "Return probabilities too; for a regression, standard deviations.",
    "schema": {"type": "string", "enum": ["true", "false"]},
}
_CONFIDENCE = {"name": "confidence", "in": "query", "schema": CONFIDENCE}
_EXPLAIN = {"name": "explain", "in": "query", "schema": EXPLAIN}


def _column(role: str, what: str) -> dict[str, Any]:
    return {
        "name": role,
        "in": "query",
        "description": f"The column of flat rows {what}: its name, or its number from 1.",
        "schema": {"type": "string", "minLength": 1},
    }


_COLUMNS = [
    _column(
        "label",
        "that has the labels; by default the one named y, label, target or class. Predictions "
        "leave it out",
    ),
    _column(
        "id",
        "that says what a row is about, which is no feature; predicted rows wait for their labels "
        "under it",
    ),
    _column("weight", "that has the weights; predictions leave it out"),
]
_COSTS = {
    "name": "costs",
    "in": "query",
    "description": "As `costs` in a body, written as JSON.",
    "schema": {"type": "string", "examples": ['{"fraud": {"ok": 50}}']},
}
_LENGTH = {"description": "Number of bytes of JSON, before binary data.", "schema": COUNT}
_BINARY = {
    "schema": {
        "type": "string",
        "format": "binary",
        "description": f"JSON, as long as {JSON_LENGTH_HEADER} says, then the tensors' bytes.",
    }
}


def answer(name: str, description: str, media_types: tuple[str, ...] = MEDIA_TYPES) -> Any:
    """Return a response with a component, in these formats."""
    content = _in_json(name)[JSON.media_type]
    return {"description": description, "content": dict.fromkeys(media_types, content)}


def refusals(*kinds: type[Refusal], inference: bool = False) -> Responses:
    """Return the responses of a route that refuses for these reasons.

    inference: in the form of the Open Inference Protocol, not as problems (RFC 9457).
    """
    problem = {PROBLEM_MEDIA_TYPE: {"schema": ref("Problem")}}
    content = _in_json("InferenceError") if inference else problem
    responses: Responses = {}
    for kind in kinds:
        response = responses.setdefault(status_of(kind), {"description": "", "content": content})
        response["description"] = f"{response['description']} {_sentence(kind)}".lstrip()
        if issubclass(kind, Unavailable) and not inference:
            response["headers"] = {"Retry-After": _RETRY_AFTER}
    return responses


def _sentence(kind: type[Refusal]) -> str:
    if issubclass(kind, Invalid):
        return f"{kind.title}; `errors` says where."
    if issubclass(kind, QuotaExceeded):
        return f"{kind.title}; `Retry-After` says when to try again."
    return f"{kind.title}."


def body(name: str, required: bool = True) -> dict[str, Any]:
    """Return the `openapi_extra` of a route that takes a component."""
    content = {"schema": ref(name), "examples": EXAMPLES[name]}
    return {"requestBody": {"required": required, "content": dict.fromkeys(MEDIA_TYPES, content)}}


def rows_body(name: str) -> dict[str, Any]:
    """Return the body of samples or rows: JSON, MessagePack with raw arrays too, or lines."""
    kinds = {
        media_type: {kind: {"value": value} for kind, value in of_format.items()}
        for media_type, of_format in EXAMPLES[name].items()
    }
    in_json = kinds.pop(JSON.media_type)
    flat = ref("FlatRows")
    of_json = {"anyOf": [ref(name), flat]}
    content: dict[str, Any] = {JSON.media_type: {"schema": of_json, "examples": in_json}}
    for media_type in MEDIA_TYPES[1:]:
        packed = {"anyOf": [ref(f"Packed{name}"), flat]}
        content[media_type] = {"schema": packed, "examples": in_json}
    for media_type, lines in kinds.items():
        content[media_type] = {"schema": TEXT, "examples": lines}
    return {"required": True, "content": content}


def _tensors(name: str) -> dict[str, Any]:
    """Return a component of the Open Inference Protocol in JSON, or in JSON and binary data."""
    return _in_json(name) | {OCTETS: _BINARY}


def _in_json(name: str) -> dict[str, Any]:
    return {JSON.media_type: {"schema": ref(name), "example": EXAMPLES[name]}}


_NO_BODY = {
    "required": False,
    "content": {JSON.media_type: {"schema": {"type": "object", "maxProperties": 0}, "example": {}}},
}
_MODEL_FILE = {OCTETS: {"schema": {"type": "string", "format": "binary"}}}
_METRICS_EXAMPLE = "# TYPE wolfstream_ready gauge\nwolfstream_ready 1.0\n"
_EVENTS_EXAMPLE = """id: 5e0c92d1-17
event: state
data: {"model": "rooms", "sequence": 1500, "values": {"adaptive.accuracy": 0.92}}

"""
_LAST_EVENT_ID = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The id of the last event that was received: those missed come first, "
    "if it was within half a minute.",
    "schema": {"type": "string"},
}
_LENGTH_PARAMETER = {"name": JSON_LENGTH_HEADER, "in": "header"} | _LENGTH
_ALL: list[dict[str, Any]] = [
    *(_KEY, _PREFER, _IF_MATCH, _LAST_EVENT_ID, _LENGTH_PARAMETER),
    *(_HEAD, _MIN_SEQUENCE, _MAX_LAG, _PROBABILITY, _CONFIDENCE, _EXPLAIN, _COSTS, *_COLUMNS),
]
_PARAMETERS = {parameter["name"]: parameter for parameter in _ALL}
# Bodies that are no JSON, or JSON and something else.
_CONTENTS: dict[str, dict[str, Any]] = {
    "ModelFile": _MODEL_FILE,
    "InferenceRequest": _tensors("InferenceRequest"),
    "InferenceAnswer": _tensors("InferenceAnswer"),
    "Events": {
        "text/event-stream": {"schema": {"type": "string"}, "example": _EVENTS_EXAMPLE},
    },
    "Metrics": {
        "text/plain": {"schema": {"type": "string"}, "example": _METRICS_EXAMPLE},
        "application/openmetrics-text": {
            "schema": {"type": "string"},
            "example": f"{_METRICS_EXAMPLE}# EOF\n",
        },
    },
}
_HEADERS: dict[str, dict[str, Any]] = {
    "Learned": {"Idempotency-Replayed": _REPLAYED, "Preference-Applied": _APPLIED},
    "Accepted": {"Preference-Applied": _APPLIED},
    "InferenceAnswer": {JSON_LENGTH_HEADER: _LENGTH},
    "ModelFile": {
        "ETag": {
            "description": "The epoch and the sequence of the state.",
            "schema": {"type": "string"},
        }
    },
}


def request_of(call: Call) -> dict[str, Any]:
    """Return the parameters and the body of a call."""
    parameters = [_PARAMETERS[name] for name in (*call.headers, *call.query)]
    extra: dict[str, Any] = {"parameters": parameters} if parameters else {}
    match call.takes:
        case None:
            return extra
        case "Nothing":
            return extra | {"requestBody": _NO_BODY}
        case "Samples" | "Rows":
            return extra | {"requestBody": rows_body(call.takes)}
        case "ModelFile" | "InferenceRequest":
            content = _CONTENTS[call.takes]
            return extra | {"requestBody": {"required": True, "content": content}}
    return extra | body(call.takes, required=call.takes != "NewModel")


def responses_of(call: Call) -> Responses:
    """Return the responses of a call: what it gives, and its refusals."""
    inference = speaks_inference(call.path)
    media_types = MEDIA_TYPES if call.scope and not inference else (JSON.media_type,)
    responses: Responses = {}
    for status, (schema, meaning) in call.gives.items():
        if schema in _CONTENTS:
            responses[status] = {"description": meaning, "content": _CONTENTS[schema]}
        elif schema == "Nothing":
            responses[status] = {"description": meaning}
        else:
            responses[status] = answer(schema, meaning, media_types)
        if schema in _HEADERS:
            responses[status]["headers"] = _HEADERS[schema]
    return responses | refusals(*call.refusals, inference=inference)
