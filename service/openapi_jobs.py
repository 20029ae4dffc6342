"""What OpenAPI says of refits: the jobs, and the fits that came of them."""

from service.schemas import COUNT, MODEL_NAME, SEQUENCE, Schema, array_of, object_of, ref

JOBS_TAG = {
    "name": "refitting",
    "description": "The semiparametric head, fitted anew to a window of recent samples.",
}
_MAYBE_COUNT: Schema = {"type": ["integer", "null"], "minimum": 0}
_EXAMPLE: Schema = {
    "job": "4a3f",
    "model": "rents",
    "status": "running",
    "href": "/v1/models/rents/jobs/4a3f",
    "sequence": 2000,
    "samples": 2000,
    "seconds": 0.125,
    "progress": {"iteration": 300, "kkt_violation": 0.02, "tol": 0.001},
    "result": None,
    "error": None,
}

JOB_COMPONENTS: dict[str, Schema] = {
    "Fit": object_of(
        {
            "job": {"type": ["string", "null"], "description": "null: fitted by `train`."},
            "sequence": SEQUENCE | {"description": "The model's when the window was taken."},
            "samples": COUNT,
            "support_vectors": COUNT,
            "kkt_violation": {"type": "number"},
            "n_iter": COUNT,
            "gamma": {"type": ["number", "null"]},
            "beta": array_of(
                object_of({"basis": {"type": "object"}, "beta": {"type": "number"}}),
                description="The coefficient of each function of the spec's basis.",
            ),
        },
        description="What a refit found: on disk, and served until the next one.",
    ),
    "Job": object_of(
        {
            "job": {"type": "string"},
            "model": MODEL_NAME,
            "status": {"type": "string", "enum": ["queued", "running", "done", "failed"]},
            "href": {"type": "string"},
            "sequence": _MAYBE_COUNT
            | {"description": "The model's when the window was taken, as the job began to run."},
            "samples": _MAYBE_COUNT | {"description": "Samples in the window."},
            "seconds": {"type": "number", "minimum": 0},
            "progress": {
                "description": "The solver ends at a violation of at most `tol`.",
                "type": ["object", "null"],
                "properties": {
                    "iteration": COUNT,
                    "kkt_violation": {"type": "number"},
                    "tol": {"type": "number"},
                },
            },
            "result": {"anyOf": [ref("Fit"), {"type": "null"}]},
            "error": {"anyOf": [ref("Problem"), {"type": "null"}]},
        },
        examples=[_EXAMPLE],
    ),
    "Jobs": object_of(
        {"jobs": array_of(ref("Job"), description="The last of the model, newest first.")},
        examples=[{"jobs": [_EXAMPLE]}],
    ),
}
