"""What OpenAPI says of the headers of learning calls and of their answers."""

from typing import Any

LEARNING_HEADERS: list[dict[str, Any]] = [
    {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "What the client calls this request, such as a UUID: 1 to 255 visible ASCII "
        "characters, as they are or as a quoted string. Sent again with the same samples, it is "
        "answered as at first and learned once.",
        "schema": {"type": "string", "maxLength": 512},
        "example": "8e03978e-40d5-43e8-bc93-6894a57f9324",
    },
    {
        "name": "Prefer",
        "in": "header",
        "description": "RFC 7240. `respond-async`: 202 as soon as the samples are durable. "
        "`wait=N`: 202 unless they are learned within N seconds.",
        "schema": {"type": "string"},
        "example": "respond-async, wait=2",
    },
]
_APPLIED = {
    "description": "The preferences that were honoured, and how long a wait was allowed.",
    "schema": {"type": "string"},
}
_REPLAYED = {
    "description": "The request came before under its key; this is the answer to the first.",
    "schema": {"type": "string", "enum": ["true"]},
}
LEARNED_HEADERS = {"Idempotency-Replayed": _REPLAYED, "Preference-Applied": _APPLIED}
ACCEPTED_HEADERS = {"Preference-Applied": _APPLIED}
