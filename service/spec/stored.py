"""Stored specs, with the version of the numerics at the creation of their models."""

from typing import Any

from wolfstream.service.errors import Invalid, StartupError
from wolfstream.service.spec.model import ModelSpec, read_spec

# Raised whenever models compute other bits from the same samples. A test compares their results
# with `tests/service/numerics.json`, and fails if this must be raised.
NUMERICS = 5
# The field of a stored spec with the version of the numerics at its model's creation.
_NUMERICS = "numerics"


def to_stored_spec(spec: ModelSpec) -> dict[str, Any]:
    """Return what is stored of a spec when its model is created; see `read_stored_spec`."""
    return {**spec.plain(), _NUMERICS: NUMERICS}


def other_numerics(stored: Any) -> str:
    """Return a text that names the other numerics with which a stored spec's model was created.

    "" if they are the present ones, or unknown.
    """
    began = stored.get(_NUMERICS) if isinstance(stored, dict) else None
    return "" if began in (None, NUMERICS) else f"numerics {began} (now {NUMERICS})"


def read_stored_spec(stored: Any) -> ModelSpec:
    """Return the spec that `to_stored_spec` stored.

    Raises StartupError if this version of the program, or its settings, do not allow it.
    """
    if isinstance(stored, dict):
        stored = {name: part for name, part in stored.items() if name != _NUMERICS}
    try:
        return read_spec(stored)
    except Invalid as error:  # no fault of a client
        details = [entry["detail"] for entry in error.errors]
        raise StartupError("; ".join(details) or error.detail) from None
