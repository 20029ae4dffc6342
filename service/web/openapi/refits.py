"""Schemas of refits: the jobs and their results."""

from wolfstream.service.web.openapi.fields import object_of, sequence_of
from wolfstream.service.web.openapi.primitives import (
    COUNT_OR_NULL,
    NUMBER_OR_NULL,
    TEXT_OR_NULL,
    Schema,
    array_of,
    ref,
)

_JOB_STATUS: Schema = {"type": "string", "enum": ["queued", "running", "done", "failed"]}

REFITS: dict[str, Schema] = {
    "Fit": object_of(
        "job sequence samples support_vectors kkt_violation n_iter gamma beta",
        fields=sequence_of("The model's sequence when the window was copied.")
        | {
            "job": TEXT_OR_NULL | {"description": "null: fitted by `train`."},
            "gamma": NUMBER_OR_NULL,
            "beta": array_of(
                object_of("basis beta"),
                description="The coefficient of each function of the spec's basis.",
            ),
        },
        description="The result of a refit: on disk, and used for predictions until the next one.",
    ),
    "Job": object_of(
        "job model status href sequence epoch samples seconds progress result error",
        fields=sequence_of(
            "The model's sequence when the window was copied, before the refit.", COUNT_OR_NULL
        )
        | {
            "status": _JOB_STATUS,
            "epoch": TEXT_OR_NULL,
            "samples": COUNT_OR_NULL | {"description": "Number of samples in the window."},
        },
    ),
    "Jobs": object_of(
        "jobs",
        fields={"jobs": array_of(ref("Job"), description="The model's latest, newest first.")},
    ),
}
