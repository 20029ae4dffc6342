"""Creates models from a spec, or as challengers that follow other models."""

import re
from typing import Any

from wolfstream.service.access.key_ring import Grant
from wolfstream.service.calls.models import Created
from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import Invalid, SampleError, UnknownModel
from wolfstream.service.model.live import Model
from wolfstream.service.spec.following import read_follows
from wolfstream.service.spec.model import MODEL_NAME_PATTERN, ModelSpec, read_spec

_MODEL_NAME = re.compile(MODEL_NAME_PATTERN)


async def create(engine: Engine, grant: Grant, name: str, body: Any) -> tuple[Created, bool]:
    """Create a model; return a short description of it, and whether it is new.

    Args:
        engine: the engine.
        grant: what the sender may do.
        name: the name of the new model.
        body: the decoded spec.

    Raises Invalid, ModelExists, TooManyModels, NotReady, StorageFailed; for a challenger also
    Forbidden, ModelBroken.
    """
    check_name(name)
    follows, spec = read_follows(body)
    if follows is None:
        model, new = await engine.orders.create(name, read_spec(spec))
    else:
        champion = _champion(engine, grant, follows.champion)
        if follows.start == "state":
            spec = {**champion.spec.plain(), **spec}
        model, new = await engine.orders.follow(name, champion, read_spec(spec), follows.start)
    return created(model), new


def _champion(engine: Engine, grant: Grant, name: str) -> Model:
    """Return the model that a new one will follow. Raises Forbidden, Invalid, NotReady."""
    grant.check_model(name)
    try:
        return engine.model(name)
    except UnknownModel:
        faults: list[SampleError] = [{"pointer": "/follows", "detail": "names no model"}]
        raise Invalid(
            f"there is no model {name[:80]!r} to follow: create it first; GET /v1/models lists "
            "those that exist",
            faults,
        ) from None


def check_name(name: str) -> None:
    """Raise Invalid unless a model may have this name."""
    if not _MODEL_NAME.fullmatch(name):
        raise Invalid(
            "a model's name has 1 to 63 letters, digits, dots, underscores and hyphens, "
            "the first a letter or digit"
        )


def created(model: Model) -> Created:
    """Return the short description with which the creation of a model is answered."""
    published = model.published
    return {
        "model": model.name,
        "sequence": published.sequence,
        "epoch": published.epoch,
        "status": model.status,
        "spec": _chosen(model.spec),
    }


def _chosen(spec: ModelSpec) -> dict[str, Any]:
    """Return the task, the served head, and the fields that differ from those of the spec `{}`."""
    plain = spec.plain()
    always = {"task": plain["task"], "serve": plain["serve"]}
    return always | _difference(plain, ModelSpec().plain())


def _difference(plain: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    """Return the fields whose values differ from the defaults, also inside objects."""
    different: dict[str, Any] = {}
    for name, value in plain.items():
        default_value = default.get(name)
        if isinstance(value, dict) and isinstance(default_value, dict):
            value = _difference(value, default_value)
            if not value:
                continue
        elif value == default_value:
            continue
        different[name] = value
    return different
