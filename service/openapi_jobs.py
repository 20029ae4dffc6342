"""What OpenAPI says of a refit's job."""

from typing import Any

from service.openapi import PROBLEM
from service.wire import MEDIA_TYPES

_JOB = {
    "type": "object",
    "required": ["job", "model", "status", "href"],
    "properties": {
        "job": {"type": "string"},
        "model": {"type": "string"},
        "status": {"enum": ["queued", "running", "done", "failed"]},
        "href": {"type": "string", "examples": ["/v1/models/m/jobs/4a3f"]},
        "sequence": {
            "type": ["integer", "null"],
            "description": "The model's when the window was taken, which is when the job began.",
        },
        "samples": {"type": ["integer", "null"], "description": "Samples in the window."},
        "seconds": {"type": "number"},
        "progress": {
            "type": ["object", "null"],
            "properties": {
                "iteration": {"type": "integer"},
                "kkt_violation": {"type": "number"},
                "tol": {"type": "number"},
            },
        },
        "result": {
            "type": ["object", "null"],
            "description": "Of a job that is done: the fit, which is on disk and served.",
        },
        "error": {"oneOf": [PROBLEM, {"type": "null"}]},
    },
}
# The answer that describes a job, among a route's `responses`.
JOB: dict[str, Any] = {
    "description": "The job.",
    "content": {name: {"schema": _JOB} for name in MEDIA_TYPES},
}
