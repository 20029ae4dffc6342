"""The fields of a description of a head."""

from wolfstream.service.web.openapi.fields import object_of
from wolfstream.service.web.openapi.primitives import (
    COUNT,
    HEAD,
    TEXT,
    Schema,
)

# What the description of a head may have, besides its name or classes.
HEAD_FIELDS = (
    "size support_vectors objective gap relative_gap warning bytes work_per_sample "
    "search_work_per_sample gamma algorithm features steps "
    "horizon dimension landmarks learners window fit prequential changes"
)
OF_HEAD: dict[str, Schema] = {
    "name": HEAD,
    "features": TEXT,
    "landmarks": object_of("used frozen"),
    "learners": COUNT,
}
