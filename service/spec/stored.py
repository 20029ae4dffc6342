"""Specs as they are stored, with the numerics that their models began with."""

from typing import Any

from wolfstream.service.spec.model import ModelSpec, read_spec

# Counts the changes of what models compute from the same samples, to the last bit. A test compares
# what they compute with `tests/service/numerics.json`, and says so if this has to be raised.
NUMERICS = 5
# The field of a stored spec with the numerics that its model began with.
_NUMERICS = "numerics"


def to_stored_spec(spec: ModelSpec) -> dict[str, Any]:
    """Return what is stored of a spec when its model is made; see `read_stored_spec`."""
    return {**spec.plain(), _NUMERICS: NUMERICS}


def other_numerics(stored: Any) -> str:
    """Return in words with which other numerics the model of a stored spec began.

    "" if it began with the present ones, or if that is unknown.
    """
    began = stored.get(_NUMERICS) if isinstance(stored, dict) else None
    return "" if began in (None, NUMERICS) else f"numerics {began} (now {NUMERICS})"


def read_stored_spec(stored: Any) -> ModelSpec:
    """Return a stored spec, which has every default filled in. Raises Invalid."""
    if isinstance(stored, dict):
        stored = {name: part for name, part in stored.items() if name != _NUMERICS}
    return read_spec(stored)
