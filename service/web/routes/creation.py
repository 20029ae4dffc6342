"""Creates models from a spec, or as challengers that follow others, and describes them."""

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
    """Create a model from a decoded spec; a short description, and whether it is new.

    Raises Invalid, ModelExists, TooManyModels, NotReady, StorageFailed; of one that follows another
    also Forbidden, ModelBroken.
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
        wrong: list[SampleError] = [{"pointer": "/follows", "detail": "names no model"}]
        raise Invalid(
            f"there is no model {name[:80]!r} to follow: create it first; GET /v1/models lists "
            "those that exist",
            wrong,
        ) from None


def check_name(name: str) -> None:
    """Raise Invalid for what cannot be the name of a model."""
    if not _MODEL_NAME.fullmatch(name):
        raise Invalid(
            "a model's name has 1 to 63 letters, digits, dots, underscores and hyphens, "
            "the first a letter or digit"
        )


def created(model: Model) -> Created:
    """Return a short description of a model that was created."""
    published = model.published
    return {
        "model": model.name,
        "sequence": published.sequence,
        "epoch": published.epoch,
        "status": model.status,
        "spec": _chosen(model.spec),
    }


def _chosen(spec: ModelSpec) -> dict[str, Any]:
    """Return the task, the served head, and the fields that differ from those of `{}`."""
    plain = spec.plain()
    decisive = {"task": plain["task"], "serve": plain["serve"]}
    return decisive | _difference(plain, ModelSpec().plain())


def _difference(plain: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    """Return the fields whose values are not the default ones, part by part."""
    different: dict[str, Any] = {}
    for name, value in plain.items():
        usual = default.get(name)
        if isinstance(value, dict) and isinstance(usual, dict):
            value = _difference(value, usual)
            if not value:
                continue
        elif value == usual:
            continue
        different[name] = value
    return different
