"""The types of path, query and header parameters, which are the same for all calls."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import Header, Path, Query
from pydantic import Field

from wolfstream.service.calls.certainty import Confidence, Explain
from wolfstream.service.calls.values import Count, MinSequence, ModelName
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.web.formats.inference import JSON_LENGTH_HEADER, VERSION

_Text = Annotated[str, Field(min_length=1)]
_NUMBERED = "its name, or its number from 1"

# Name -> type with FastAPI's annotation.
PATH: Mapping[str, Any] = {
    "name": Annotated[ModelName, Path()],
    "job": Annotated[str, Path()],
    "version": Annotated[str, Path(json_schema_extra={"enum": [VERSION]})],
}
QUERY: Mapping[str, Any] = {
    "head": Annotated[HeadName, Query(description="By default the spec's `serve`.")],
    "min_sequence": Annotated[
        MinSequence,
        Query(description="Wait until the model has this sequence: read your own writes."),
    ],
    "max_lag": Annotated[
        float,
        Query(
            ge=0,
            description="Where nothing newer can be had, such as while a long log is replayed: how "
            "many of the last seconds a prediction may lack, instead of 503.",
            examples=[3600],
        ),
    ],
    "probability": Annotated[
        Literal["true", "false"],
        Query(description="Return probabilities too; for a regression, standard deviations."),
    ],
    "confidence": Annotated[Confidence, Query()],
    "explain": Annotated[Explain, Query()],
    "costs": Annotated[
        str,
        Query(
            description="As `costs` in a body, written as JSON.",
            examples=['{"fraud": {"ok": 50}}'],
        ),
    ],
    "label": Annotated[
        _Text,
        Query(
            description=f"The column of flat rows that has the labels: {_NUMBERED}. By default the "
            "one named y, label, target or class. Predictions leave it out."
        ),
    ],
    "id": Annotated[
        _Text,
        Query(
            description=f"The column of flat rows that says what a row is about: {_NUMBERED}. It "
            "is no feature. Predicted rows wait for their labels under these ids."
        ),
    ],
    "weight": Annotated[
        _Text,
        Query(
            description=f"The column of flat rows that has the weights: {_NUMBERED}. Predictions "
            "leave it out."
        ),
    ],
}
HEADERS: Mapping[str, Any] = {
    "Idempotency-Key": Annotated[
        str,
        Header(
            alias="Idempotency-Key",
            max_length=512,
            description="The client's name for this request, such as a UUID: 1 to 255 visible "
            "ASCII characters, as they are or as a quoted string. The same samples sent again "
            "under the same key are learned once, and get the first answer.",
            examples=["8e03978e-40d5-43e8-bc93-6894a57f9324"],
        ),
    ],
    "Prefer": Annotated[
        str,
        Header(
            alias="Prefer",
            description="RFC 7240. `respond-async`: 202 as soon as the samples are durable. "
            "`wait=N`: 202 unless they are learned within N seconds.",
            examples=["respond-async, wait=2"],
        ),
    ],
    "If-Match": Annotated[
        str,
        Header(
            alias="If-Match",
            description="Entity tags: the request is carried out only while the model has this "
            'epoch and sequence ("EPOCH:SEQUENCE", as in ETag), or this epoch ("EPOCH").',
            examples=['"b2c9e0d4a1f7:2"'],
        ),
    ],
    "Last-Event-ID": Annotated[
        str,
        Header(
            alias="Last-Event-ID",
            description="The id of the last event that was received: those missed come first, if "
            "it was within half a minute.",
        ),
    ],
    JSON_LENGTH_HEADER: Annotated[
        Count,
        Header(
            alias=JSON_LENGTH_HEADER, description="Number of bytes of JSON, before binary data."
        ),
    ],
}
