"""Specs that older versions stored or were sent, and what they meant."""

from contextlib import suppress
from typing import Any

from wolfstream.service.errors import Invalid
from wolfstream.service.spec.model import ModelSpec, read_spec

# Counts the changes of what models compute from the same samples, to the last bit. A test compares
# what they compute with `tests/service/numerics.json`, and says so where this has to be raised.
NUMERICS = 5
# In a stored spec, the numerics that its model began with.
_NUMERICS = "numerics"

# The meaning of specs that were stored before these fields existed.
_BEFORE: dict[str, Any] = {"prepare": None, "adaptive": None}
_BEFORE_PAST: dict[str, Any] = {"temporal": False}
_BEFORE_TABLES: dict[str, Any] = {
    "named": "sparse",
    "outliers": "clipped",
    "units": "kept",
    "texts": "slots",
    "codes": "numbers",
}
_BANK_BEFORE: dict[str, Any] = {"naive_bayes": []}
_SET_BEFORE: dict[str, Any] = {"horizon": None, "scores": "counted"}


def readings(given: Any) -> tuple[ModelSpec, ...]:
    """Return what a decoded body means, and what it meant before. Raises Invalid.

    A model that was made with the same body then still has the spec that is asked for.
    """
    spec = read_spec(given)
    without = spec if "temporal" in given else spec.model_copy(update=_BEFORE_PAST)
    others = _without_bayes(without, given)
    numbers = _with_before(others, given, "codes")
    slots = _with_before(numbers, given, "texts")
    kept = _with_before(slots, given, "units")
    clipped = _with_before(kept, given, "outliers")
    counted = _with_counted_pairs(clipped, given)
    meanings = [spec, without, others, numbers, slots, kept, clipped, counted]
    if spec.prepare is not None and not _BEFORE_TABLES.keys() & (given.get("prepare") or {}).keys():
        changed: dict[str, Any] = {"prepare": spec.prepare.model_copy(update=_BEFORE_TABLES)}
        for name in ("working_set", "asset"):
            own = getattr(counted, name)
            if own is not None and "horizon" not in (given.get(name) or {}):
                changed[name] = own.model_copy(update={"horizon": None})
        meanings.append(counted.model_copy(update=changed))
    if not _BEFORE.keys() & given.keys():
        # It may serve a head that did not exist.
        with suppress(Invalid):
            meanings.append(_with_counted_pairs(read_spec(_BEFORE | _BEFORE_PAST | given), given))
    return tuple(meanings)


def _with_before(spec: ModelSpec, given: Any, field: str) -> ModelSpec:
    """Return the spec with what a field of `prepare` that was not given meant before it existed."""
    if spec.prepare is None or field in (given.get("prepare") or {}):
        return spec
    before = spec.prepare.model_copy(update={field: _BEFORE_TABLES[field]})
    return spec.model_copy(update={"prepare": before})


def _without_bayes(spec: ModelSpec, given: Any) -> ModelSpec:
    own = spec.adaptive
    if own is None or "naive_bayes" in (given.get("adaptive") or {}):
        return spec
    return spec.model_copy(update={"adaptive": own.model_copy(update=_BANK_BEFORE)})


def _with_counted_pairs(spec: ModelSpec, given: Any) -> ModelSpec:
    own = spec.working_set
    if own is None or "scores" in (given.get("working_set") or {}):
        return spec
    counted = own.model_copy(update={"scores": _SET_BEFORE["scores"]})
    return spec.model_copy(update={"working_set": counted})


def to_stored_spec(spec: ModelSpec) -> dict[str, Any]:
    """Return what is stored of a spec as its model is made; see `read_stored_spec`."""
    return {**spec.plain(), _NUMERICS: NUMERICS}


def other_numerics(given: Any) -> str:
    """Return in words with which numerics the model of a stored spec began.

    "" with the present ones, or where that is unknown.
    """
    began = given.get(_NUMERICS) if isinstance(given, dict) else None
    return "" if began in (None, NUMERICS) else f"numerics {began} (now {NUMERICS})"


def read_stored_spec(given: Any) -> ModelSpec:
    """Check a spec that was stored with every default filled in, by this version or an older one.

    Models that were made before rows were prepared, or were tables, go on without. Raises Invalid.
    """
    if isinstance(given, dict):
        given = {
            name: part
            for name, part in (_BEFORE | _BEFORE_PAST | given).items()
            if name != _NUMERICS
        }
        if isinstance(given["prepare"], dict):
            given["prepare"] = _BEFORE_TABLES | given["prepare"]
        if isinstance(bank := given["adaptive"], dict):
            given["adaptive"] = _BANK_BEFORE | bank
        if isinstance(own := given.get("working_set"), dict):
            given["working_set"] = _SET_BEFORE | own
    return read_spec(given)
