"""The handlers under every transport: decoded data in, plain data out.

HTTP, the websocket and the Open Inference Protocol decode and encode; what a call does, what it
counts and which quota it uses is decided here.
"""

import asyncio
import re
import time
from collections.abc import Collection
from typing import Any

from service.access.key_ring import Grant
from service.diagnostics import tracing
from service.engine.admission import Answer
from service.engine.facade import Engine
from service.engine.refits import Job
from service.engine.serving import Predicting, Serving
from service.errors import (
    Invalid,
    ModelBroken,
    NoSuchHead,
    Refusal,
    SampleError,
    UnknownModel,
    Untrained,
)
from service.heads.kinds import BESIDE, how_to_teach
from service.heads.protocol import Predictions
from service.model.live import Model
from service.model.moment import Moment
from service.model.published import Published
from service.samples.ids import LateLabels
from service.samples.targets import Label
from service.samples.validation import Question, Samples, check_explained
from service.spec.following import read_follows
from service.spec.heads import HEADS, HeadName, LearningCall
from service.spec.model import MODEL_NAME_PATTERN, ModelSpec
from service.spec.stored import readings
from service.web.formats.memory import UNCOUNTED_BYTES, VALUE_BYTES, Lease
from service.web.formats.problems import problem_of
from solver.prepare.named_rows import NamedRows, Rows, n_bytes, n_entries, n_rows

# A prediction of more multiplications than this (about a millisecond) leaves the event loop.
_INLINE_COST = 20_000_000
# Numbering the features of so many named numbers takes about a millisecond too.
_INLINE_NAMED = 10_000
_MODEL_NAME = re.compile(MODEL_NAME_PATTERN)
# Of a reason for a prediction: a member of a set each way, and a gradient.
_VALUES_OF_REASON = 24


def learn(
    engine: Serving,
    grant: Grant,
    model: Model,
    call: LearningCall,
    samples: Samples,
    key: bytes | None = None,
    durable: "asyncio.Future[Answer] | None" = None,
    expected: tuple[Moment, ...] = (),
) -> "asyncio.Future[Answer]":
    """Queue checked samples, in the order of the calls; the future is the answer.

    key, durable, expected: see `Engine.submit`.

    Raises QuotaExceeded, NotReady, QueueFull, ModelBroken.
    """
    grant.spend(len(samples.y))
    tracing.count_samples(len(samples.y))
    try:
        return engine.submit(model, model.head_of[call], samples, key, durable, expected)
    except Refusal:
        grant.give_back(len(samples.y))
        raise


async def predict(
    engine: Predicting,
    grant: Grant,
    model: Model,
    head: str | None,
    awaited: Moment | None,
    question: Question,
    lease: Lease,
) -> dict[str, Any]:
    """Predict with the published view, without waiting for learning or disturbing it.

    head: by default the one that the spec serves. awaited: what is to be waited for. lease: holds
    the rows while they wait, and the answer with them. Rows with ids are durable on return, and
    wait for their labels; `"replayed"` marks an answer to rows that did before.

    Raises QuotaExceeded, AnotherState, Invalid, InvalidSamples, MemoryFull, ModelBroken,
    NoSuchHead, NotReached, Untrained; with ids also Forbidden, and what `Engine.remember` raises.
    """
    rows, ids = question.rows, question.ids
    count = n_rows(rows)
    if ids is not None:
        grant.check("learn")
        engine.check_remembers(model)
    grant.spend(count)
    began = time.monotonic()
    tracing.count_samples(count)
    name = read_head(head) or model.spec.serve
    if name not in model.spec.heads:
        raise NoSuchHead(f"the spec of model {model.name!r} has null for {name}")
    if name in BESIDE:
        raise Invalid(f"the head {name} {model.published.heads[name].lacks}")
    if ids is not None and name != model.spec.serve:
        raise Invalid(f"rows wait for labels under the head that serves, {model.spec.serve}")
    check_explained(question)
    _check_intact(model)
    taken = n_bytes(rows)
    lease.keep(taken)
    published = await engine.view(model, name, rows, awaited)
    if name not in published.heads:  # it was promoted meanwhile
        raise NoSuchHead(f"model {model.name!r} has another spec by now, which lacks {name}")
    _hold_answer(lease, taken, published.heads[name].classes, question)
    predictions, more = await _predictions(model, published, name, question, lease)
    model.counts[name].predicted += count
    engine.metrics.predict.observe(time.monotonic() - began)
    told = {
        "model": model.name,
        "sequence": published.sequence,
        "epoch": published.epoch,
        "head": name,
        **published.heads[name].source,
        "prediction": predictions.prediction,
        "decision": predictions.decision,
        **more,
    }
    if ids is None:
        return told
    return await engine.remember(model, ids, rows, {**told, "ids": ids})


def label(
    engine: Serving,
    grant: Grant,
    model: Model,
    labels: LateLabels,
    expected: tuple[Moment, ...] = (),
) -> "asyncio.Future[Answer]":
    """Queue labels of predicted rows, in the order of the calls; the future is the answer.

    The rows are learned as those of a learning call that teaches the head which predicted them.
    expected: see `Engine.submit`. Raises QuotaExceeded, NotReady, QueueFull, ModelBroken.
    """
    grant.spend(len(labels.ids))
    tracing.count_samples(len(labels.ids))
    call: LearningCall = "asset" if model.spec.serve == "asset" else "samples"
    try:
        return engine.label(model, model.head_of[call], labels, expected)
    except Refusal:
        grant.give_back(len(labels.ids))
        raise


def _hold_answer(
    lease: Lease, taken: int, classes: tuple[Label, ...] | None, question: Question
) -> None:
    """Hold what the answer to some rows will take, beside the rows. Raises MemoryFull."""
    of_classes = 1 + question.probability + (question.confidence is not None)
    columns = 1 + of_classes * max(1, len(classes or ())) + question.explain * _VALUES_OF_REASON
    answer = columns * n_rows(question.rows) * VALUE_BYTES
    if answer > UNCOUNTED_BYTES:
        lease.hold(taken + answer)


async def check_predicts(engine: Predicting, model: Model, row: Rows, lease: Lease) -> None:
    """Raise MemoryFull, ModelBroken or Untrained unless the served head can predict a row."""
    _check_intact(model)
    published = await engine.view(model, model.spec.serve, row)
    await _predictions(model, published, model.spec.serve, Question(row), lease)


async def _predictions(
    model: Model, published: Published, head: HeadName, question: Question, lease: Lease
) -> tuple[Predictions, dict[str, Any]]:
    """Predictions, and the fields of what else is asked; on a thread if it takes long.

    Raises MemoryFull.
    """
    view, rows = published.heads[head], question.rows

    def compute() -> tuple[Predictions, dict[str, Any]]:
        X = published.matrix(rows)
        if view.lacks:
            how = how_to_teach(model.name, model.spec, head)
            raise Untrained(f"the head {head} of model {model.name!r} {view.lacks}; {how}")
        predictions = published.predict(head, X)
        return predictions, published.more(head, question, X, predictions)

    entries = n_entries(rows)
    inline = published.cost(head, n_rows(rows), entries) <= _INLINE_COST and not question.explain
    if isinstance(rows, NamedRows) and entries > _INLINE_NAMED:
        inline = False
    if inline:
        return compute()
    with lease.reading(model, published):
        return await asyncio.to_thread(compute)


def _check_intact(model: Model) -> None:
    """Raise ModelBroken where a broken model has no state of before to predict with."""
    if model.broken and not model.published.sequence:
        raise ModelBroken(f"model {model.name!r}: {model.broken}")


async def create(engine: Engine, grant: Grant, name: str, body: Any) -> tuple[dict[str, Any], bool]:
    """Create a model from a decoded spec; a short description, and whether it is new.

    Raises Invalid, ModelExists, TooManyModels, NotReady, StorageFailed; of one that follows another
    also Forbidden, ModelBroken.
    """
    check_name(name)
    follows, spec = read_follows(body)
    if follows is None:
        model, new = await engine.create(name, *readings(spec))
    else:
        champion = _champion(engine, grant, follows.champion)
        if follows.start == "state":
            spec = {**champion.spec.plain(), **spec}
        model, new = await engine.follow(name, champion, readings(spec)[0], follows.start)
    return created(model), new


def _champion(engine: Engine, grant: Grant, name: str) -> Model:
    """The model that another one is to follow. Raises Forbidden, Invalid, NotReady."""
    grant.check_model(name)
    try:
        return engine.model(name)
    except UnknownModel:
        wrong: list[SampleError] = [{"pointer": "/follows", "detail": "names no model"}]
        raise Invalid(f"there is no model {name[:80]!r} to follow", wrong) from None


async def promote(
    engine: Engine, name: str, challenger: str, expected: Collection[Moment]
) -> dict[str, Any]:
    """Exchange a model and its challenger; the model's description.

    Raises what `Engine.promote` raises.
    """
    return await engine.promote(engine.model(name), engine.model(challenger), expected)


def check_name(name: str) -> None:
    """Raise Invalid for what cannot be the name of a model."""
    if not _MODEL_NAME.fullmatch(name):
        raise Invalid(
            "a model's name has 1 to 63 letters, digits, dots, underscores and hyphens, "
            "the first a letter or digit"
        )


def created(model: Model) -> dict[str, Any]:
    """A short description of a model that was created."""
    description = model.describe()
    short: dict[str, Any] = {
        key: description[key] for key in ("model", "sequence", "epoch", "status")
    }
    return short | {"spec": _chosen(model.spec)}


def _chosen(spec: ModelSpec) -> dict[str, Any]:
    """The task, the served head, and the fields that differ from those of `{}`."""
    plain = spec.plain()
    decisive = {"task": plain["task"], "serve": plain["serve"]}
    return decisive | _difference(plain, ModelSpec().plain())


def _difference(plain: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    """The fields whose values are not the default ones, part by part."""
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


async def describe(engine: Engine, name: str, awaited: Moment | None) -> dict[str, Any]:
    """Describe a model. Raises UnknownModel, AnotherState, NotReady, NotReached."""
    model = engine.model(name)
    if awaited is not None:
        await engine.reached(model, awaited)
    return model.describe()


def learners(engine: Engine, name: str) -> dict[str, Any]:
    """What each learner of a model's heads is worth. Raises UnknownModel, NotReady."""
    published = engine.model(name).published
    heads = {head: view.learners for head, view in published.heads.items()}
    return {
        "model": name,
        "sequence": published.sequence,
        "epoch": published.epoch,
        "heads": {head: rows for head, rows in heads.items() if rows},
    }


def list_models(engine: Engine, prefix: str) -> dict[str, Any]:
    """Name, sequence, status and features of every model whose name begins with the prefix."""
    models = [(m, m.published) for m in engine.models() if m.name.startswith(prefix)]
    return {
        "models": [
            {
                "model": model.name,
                "sequence": published.sequence,
                "epoch": published.epoch,
                "status": model.status,
                "features": published.rows.dimension,
            }
            for model, published in models
        ]
    }


def refit(engine: Engine, name: str) -> dict[str, Any]:
    """The queued or running refit of a model, or else a new one.

    Raises UnknownModel, JobsFull, ModelBroken, NoSuchHead, NotReady.
    """
    model = engine.model(name)
    model.refitted_head()
    return _job(engine.refit(model))


def list_jobs(engine: Engine, name: str) -> dict[str, Any]:
    """The latest refits of a model, newest first. Raises UnknownModel, NotReady."""
    return {"jobs": [_job(job) for job in engine.refits.jobs(engine.model(name))]}


def describe_job(engine: Engine, name: str, job: str) -> dict[str, Any]:
    """A refit of a model. Raises UnknownModel, UnknownJob, NotReady."""
    return _job(engine.refits.job(engine.model(name), job))


def _job(job: Job) -> dict[str, Any]:
    return {
        "job": job.id,
        "model": job.model.name,
        "status": job.status,
        "href": f"/v1/models/{job.model.name}/jobs/{job.id}",
        "sequence": job.sequence,
        "epoch": job.epoch,
        "samples": job.samples,
        "seconds": round(job.seconds, 3),
        "progress": job.progress._asdict() if job.progress else None,
        "result": job.result,
        "error": problem_of(job.error) if job.error else None,
    }


def read_head(head: str | None) -> HeadName | None:
    """The head that a parameter names. Raises Invalid."""
    if head is None:
        return None
    for name in HEADS:
        if head == name:
            return name
    raise Invalid(f"head must be one of {', '.join(HEADS)}, not {head!r}")
