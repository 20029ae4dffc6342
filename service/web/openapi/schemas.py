"""The components of the document: schemas of everything that is sent and answered."""

from wolfstream.service.web.openapi.challengers import CHALLENGERS
from wolfstream.service.web.openapi.fields import object_of
from wolfstream.service.web.openapi.history import HISTORY
from wolfstream.service.web.openapi.models import MODELS
from wolfstream.service.web.openapi.primitives import (
    TEXT,
    Schema,
    array_of,
)
from wolfstream.service.web.openapi.refits import REFITS
from wolfstream.service.web.openapi.samples import SAMPLES

COMPONENTS: dict[str, Schema] = {
    **MODELS,
    **SAMPLES,
    **REFITS,
    **HISTORY,
    **CHALLENGERS,
    "Status": object_of(
        "status",
        "compiling",
        {
            "status": TEXT,
            "compiling": TEXT
            | {"description": "How much of the code for all kinds of models is compiled."},
        },
    ),
    "Problem": object_of(
        "type title status detail",
        "errors retry_after_seconds outcome request_id",
        {
            "status": {"type": "integer"},
            "outcome": {
                "type": "string",
                "enum": ["not-learned", "durable", "unknown"],
                "description": "The outcome for samples that were to be learned. `durable`: they "
                "are on disk, and learned after a restart at the latest.",
            },
            "errors": array_of(object_of("detail", "row line pointer")),
        },
        description="RFC 9457: what is wrong, and where.",
    ),
}
