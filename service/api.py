"""The handlers under every transport: decoded data in, plain data out."""

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any, Literal

from service import tracing
from service.admission import Answer
from service.engine import Engine
from service.errors import Invalid, ModelBroken, NoSuchHead, Refusal
from service.model import HEADS, Model, classes_of
from service.names import NamedRows, Rows, n_entries, n_rows
from service.refits import Job
from service.samples import Samples
from service.semiparametric_head import FittedView
from service.spec import MODEL_NAME_PATTERN, HeadName, read_spec

# The calls that bring samples, by their names under /v1/models/{name}.
LearningCall = Literal["samples", "asset"]

# A prediction of more multiplications than this (about a millisecond) leaves the event loop.
_INLINE_COST = 20_000_000
# Numbering the features of so many named numbers takes about a millisecond too.
_INLINE_NAMED = 10_000
_MODEL_NAME = re.compile(MODEL_NAME_PATTERN)


def learn(
    engine: Engine,
    model: Model,
    call: LearningCall,
    samples: Samples,
    key: bytes | None = None,
    durable: "asyncio.Future[Answer] | None" = None,
) -> "asyncio.Future[Answer]":
    """Queue checked samples, in the order of the calls; the future is the answer.

    key, durable: see `Engine.submit`.

    `samples` feeds the working set, or the window of a model that has one to be refitted; what
    `asset` brings passes through the window as well. Raises NotReady, QueueFull, ModelBroken.
    """
    tracing.count_samples(len(samples.y))
    head = "asset" if call == "asset" else model.spec.samples_head
    return engine.submit(model, head, samples, key, durable)


async def predict(
    engine: Engine, model: Model, head: str | None, min_sequence: int | None, rows: Rows
) -> dict[str, Any]:
    """Predict with the published view; learning is neither waited for nor disturbed.

    Raises Invalid, InvalidSamples, ModelBroken, NoSuchHead, NotReached, Untrained.
    """
    began = time.monotonic()
    tracing.count_samples(n_rows(rows))
    name = read_head(head) or model.spec.serve
    if name not in model.heads:
        raise NoSuchHead(f"the spec of model {model.name!r} has null for {name}")
    if model.broken:
        raise ModelBroken(f"model {model.name!r}: {model.broken}")
    if min_sequence is not None:
        await engine.reached(model, min_sequence)
    published = model.published
    view = published.heads[name]

    def answer() -> tuple[list[Any], list[Any]]:
        return view.predict(published.matrix(rows))

    entries = n_entries(rows)
    inline = view.cost(n_rows(rows), entries) <= _INLINE_COST
    if isinstance(rows, NamedRows) and entries > _INLINE_NAMED:
        inline = False
    prediction, decision = answer() if inline else await asyncio.to_thread(answer)
    model.counts[name].predicted += n_rows(rows)
    engine.metrics.predict.observe(time.monotonic() - began)
    fit = {"fit": view.fit} if isinstance(view, FittedView) else {}
    return {
        "model": model.name,
        "sequence": published.sequence,
        "head": name,
        **fit,
        **classes_of(view),
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


def refit(engine: Engine, model: Model) -> Job:
    """The model's refit that is queued or runs, or else a new one.

    Raises JobsFull, ModelBroken, NoSuchHead, NotReady.
    """
    if "semiparametric" not in model.heads:
        raise NoSuchHead(f"the spec of model {model.name!r} has null for semiparametric")
    return engine.refit(model)


def describe_job(job: Job, describe: Callable[[Refusal], dict[str, Any]]) -> dict[str, Any]:
    """A job as plain data. describe: turns a refusal into the problem that the client gets."""
    return {
        "job": job.id,
        "model": job.model.name,
        "status": job.status,
        "href": f"/v1/models/{job.model.name}/jobs/{job.id}",
        "sequence": job.sequence,
        "samples": job.samples,
        "seconds": round(job.seconds, 3),
        "progress": job.progress._asdict() if job.progress else None,
        "result": job.result,
        "error": describe(job.error) if job.error else None,
    }


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
