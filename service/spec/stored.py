"""Stored specs, and what specs of older versions mean today."""

from contextlib import suppress
from typing import Any

from wolfstream.service.errors import Invalid
from wolfstream.service.spec.model import ModelSpec, read_spec

# Counts the changes of what models compute from the same samples, to the last bit. A test compares
# what they compute with `tests/service/numerics.json`, and says so if this has to be raised.
NUMERICS = 5
# The field of a stored spec with the numerics that its model began with.
_NUMERICS = "numerics"

# What specs meant that were stored before these fields existed.
_BEFORE: dict[str, Any] = {"prepare": None, "adaptive": None}
_BEFORE_TABLES: dict[str, Any] = {
    "named": "sparse",
    "outliers": "clipped",
    "units": "kept",
    "texts": "slots",
    "codes": "numbers",
}
_BANK_BEFORE: dict[str, Any] = {"naive_bayes": []}
_SET_BEFORE: dict[str, Any] = {"horizon": None, "scores": "counted"}


def readings(body: Any) -> tuple[ModelSpec, ...]:
    """Return the spec in a decoded body, then what the same body meant to older versions.

    A model that an older version made from this body then counts as having this spec. Raises
    Invalid.
    """
    spec = read_spec(body)
    others = _without_bayes(spec, body)
    numbers = _with_before(others, body, "codes")
    slots = _with_before(numbers, body, "texts")
    units = _with_before(slots, body, "units")
    clipped = _with_before(units, body, "outliers")
    counted = _with_counted_pairs(clipped, body)
    meanings = [spec, others, numbers, slots, units, clipped, counted]
    if spec.prepare is not None and not _BEFORE_TABLES.keys() & (body.get("prepare") or {}).keys():
        changed: dict[str, Any] = {"prepare": spec.prepare.model_copy(update=_BEFORE_TABLES)}
        for name in ("working_set", "asset"):
            part = getattr(counted, name)
            if part is not None and "horizon" not in (body.get(name) or {}):
                changed[name] = part.model_copy(update={"horizon": None})
        meanings.append(counted.model_copy(update=changed))
    if not _BEFORE.keys() & body.keys():
        # It is no spec if it serves a head that did not exist then.
        with suppress(Invalid):
            meanings.append(_with_counted_pairs(read_spec(_BEFORE | body), body))
    return tuple(meanings)


def _with_before(spec: ModelSpec, body: Any, field: str) -> ModelSpec:
    """Return a spec with what an absent field of `prepare` meant before the field existed."""
    if spec.prepare is None or field in (body.get("prepare") or {}):
        return spec
    before = spec.prepare.model_copy(update={field: _BEFORE_TABLES[field]})
    return spec.model_copy(update={"prepare": before})


def _without_bayes(spec: ModelSpec, body: Any) -> ModelSpec:
    bank = spec.adaptive
    if bank is None or "naive_bayes" in (body.get("adaptive") or {}):
        return spec
    return spec.model_copy(update={"adaptive": bank.model_copy(update=_BANK_BEFORE)})


def _with_counted_pairs(spec: ModelSpec, body: Any) -> ModelSpec:
    working_set = spec.working_set
    if working_set is None or "scores" in (body.get("working_set") or {}):
        return spec
    counted = working_set.model_copy(update={"scores": _SET_BEFORE["scores"]})
    return spec.model_copy(update={"working_set": counted})


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
    """Return a stored spec, which has every default filled in, by this version or an older one.

    Models of versions before preparation, or before tables, go on without. Raises Invalid.
    """
    if isinstance(stored, dict):
        stored = {name: part for name, part in (_BEFORE | stored).items() if name != _NUMERICS}
        if isinstance(stored["prepare"], dict):
            stored["prepare"] = _BEFORE_TABLES | stored["prepare"]
        if isinstance(bank := stored["adaptive"], dict):
            stored["adaptive"] = _BANK_BEFORE | bank
        if isinstance(working_set := stored.get("working_set"), dict):
            stored["working_set"] = _SET_BEFORE | working_set
    return read_spec(stored)
