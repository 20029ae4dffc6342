"""The custom head's part of a model's spec: a learner from another Python distribution."""

import json
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from wolfstream.service.spec.kernel import SpecPart

_MAX_OPTION_BYTES = 16 << 10


def _check_size(options: dict[str, Any]) -> dict[str, Any]:
    """Refuse options that are not JSON data, or too long for a spec."""
    try:
        length = len(json.dumps(options, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise PydanticCustomError("options", "must be JSON data") from None
    if length > _MAX_OPTION_BYTES:
        raise PydanticCustomError("options", f"must have at most {_MAX_OPTION_BYTES:,} bytes")
    return options


class CustomSpec(SpecPart):
    """A learner from another Python distribution, such as River; see docs/heads.md.

    It learns every sample that the model is sent.
    """

    learner: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
        description="Name of an entry point in the group `wolfstream.heads` that the server's "
        "operator permits.",
    )
    options: Annotated[dict[str, Any], AfterValidator(_check_size)] = Field(
        default={}, description="The learner's options; see its documentation."
    )
