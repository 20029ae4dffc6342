"""The handlers under every transport: decoded data in, plain data out."""

import asyncio
import re
from typing import Any

from service.engine import Engine
from service.errors import Invalid, ModelBroken, NoSuchHead
from service.model import HEADS, Model
from service.names import NamedRows, Rows, n_entries, n_rows
from service.samples import Label, Samples
from service.spec import MODEL_NAME_PATTERN, HeadName, read_spec
from service.writer import Answer

# A prediction of more multiplications than this (about a millisecond) leaves the event loop.
_INLINE_COST = 20_000_000
# Numbering the features of so many named numbers takes about a millisecond too.
_INLINE_NAMED = 10_000
_MODEL_NAME = re.compile(MODEL_NAME_PATTERN)


def learn(
    engine: Engine, model: Model, head: HeadName, samples: Samples
) -> "asyncio.Future[Answer]":
    """Queue checked samples, in the order of the calls; the future is the answer.

    Raises NotReady, QueueFull, ModelBroken.
    """
    return engine.submit(model, head, samples)


async def predict(
    engine: Engine, model: Model, head: str | None, min_sequence: int | None, rows: Rows
) -> dict[str, Any]:
    """Predict with the published view; learning is neither waited for nor disturbed.

    Raises Invalid, InvalidSamples, ModelBroken, NoSuchHead, NotReached, Untrained.
    """
    name = read_head(head) or model.spec.serve
    if name not in model.heads:
        raise NoSuchHead(f"the spec of model {model.name!r} has null for {name}")
    if model.broken:
        raise ModelBroken(f"model {model.name!r}: {model.broken}")
    if min_sequence is not None:
        await engine.reached(model, min_sequence)
    published = model.published
    view = published.heads[name]

    def answer() -> tuple[list[Label], list[Any]]:
        return view.predict(published.matrix(rows))

    entries = n_entries(rows)
    inline = view.cost(n_rows(rows), entries) <= _INLINE_COST
    if isinstance(rows, NamedRows) and entries > _INLINE_NAMED:
        inline = False
    prediction, decision = answer() if inline else await asyncio.to_thread(answer)
    return {
        "model": model.name,
        "sequence": published.sequence,
        "head": name,
        "classes": list(view.classes),
        "prediction": prediction,
        "decision": decision,
    }


async def create(engine: Engine, name: str, body: Any) -> tuple[dict[str, Any], bool]:
    """Create a model from a decoded spec; its description and whether it is new.

    Raises Invalid, ModelExists, TooManyModels, NotReady, StorageFailed.
    """
    if not _MODEL_NAME.fullmatch(name):
        raise Invalid(
            "a model's name has 1 to 63 letters, digits, dots, underscores and hyphens, "
            "the first a letter or digit"
        )
    model, new = await engine.create(name, read_spec(body))
    return model.describe(), new


def list_models(engine: Engine, prefix: str) -> dict[str, Any]:
    """Name, sequence and number of features of every model whose name begins with the prefix."""
    models = [
        {"model": m.name, "sequence": m.published.sequence, "features": m.published.dimension}
        for m in engine.models()
        if m.name.startswith(prefix)
    ]
    return {"models": models}


def read_min_sequence(given: str | None) -> int | None:
    """The sequence that a query parameter asks for. Raises Invalid."""
    if given is None:
        return None
    if not given.isascii() or not given.isdecimal() or len(given) > 18:
        raise Invalid(f"min_sequence must be a whole number, zero or more, not {given[:40]!r}")
    return int(given)


def read_head(head: str | None) -> HeadName | None:
    """The head that a parameter names. Raises Invalid."""
    if head is None:
        return None
    for name in HEADS:
        if head == name:
            return name
    raise Invalid(f"head must be one of {', '.join(HEADS)}, not {head!r}")
