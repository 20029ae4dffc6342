"""The handlers that all transports share: they take decoded data, and return plain data.

HTTP, the websocket and the Open Inference Protocol decode requests and encode responses. What a
call does, what it counts and which quota it uses is decided here.
"""

import asyncio
import time
from functools import partial
from typing import Any

from wolfstream.service.access.key_ring import Grant
from wolfstream.service.diagnostics import tracing
from wolfstream.service.engine.queue_items import Response
from wolfstream.service.engine.serving import PredictingEngine, ServingEngine
from wolfstream.service.errors import (
    Invalid,
    ModelBroken,
    NoSuchHead,
    Refusal,
)
from wolfstream.service.heads.kinds import BESIDE, call_of_head
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView
from wolfstream.service.model.questions import answer, answer_each, is_simple
from wolfstream.service.model.revision import Revision
from wolfstream.service.model.single_rows import MOST_COST, QuestionAnswer
from wolfstream.service.samples.ids import LateLabels
from wolfstream.service.samples.labels import Label
from wolfstream.service.samples.validation import Question, Samples, check_explained
from wolfstream.service.spec.heads import HEADS, HeadName, LearningCall
from wolfstream.service.web.formats.memory import UNCOUNTED_BYTES, VALUE_BYTES, Lease
from wolfstream.solver.prepare.named_rows import (
    NamedRows,
    Rows,
    form_of,
    n_bytes,
    n_entries,
    n_rows,
)

# Requests with more named numbers are answered on another thread: looking up the features of this
# many takes about a millisecond.
_INLINE_NAMED = 10_000
# Values of each explanation of a prediction: a member of the set on either side, and a gradient.
_VALUES_PER_REASON = 24


def learn(
    engine: ServingEngine,
    grant: Grant,
    model: Model,
    call: LearningCall,
    samples: Samples,
    key: bytes | None = None,
    durable: "asyncio.Future[Response] | None" = None,
    expected: tuple[Revision, ...] = (),
) -> "asyncio.Future[Response]":
    """Queue checked samples; return a future of the answer.

    Samples are learned in the order of the calls.

    Args:
        engine: the engine.
        grant: what the sender may do.
        model: the model.
        call: the call, which determines the head that learns.
        samples: the samples.
        key: the idempotency key; None without one.
        durable: set once the samples are on disk.
        expected: the revisions at which they may be learned; empty for any.

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
    engine: PredictingEngine,
    grant: Grant,
    model: Model,
    head: str | None,
    awaited: Revision | None,
    question: Question,
    lease: Lease,
) -> dict[str, Any]:
    """Predict rows with the current view. Learning does not delay this, nor does this delay it.

    Rows with ids are durable on return, and wait for their labels. If they were predicted before,
    the answer has `"replayed": true`.

    Args:
        engine: the engine.
        grant: what the sender may do.
        model: the model.
        head: the head that predicts; None for the one that the spec serves.
        awaited: the revision to wait for; None for any.
        question: the rows, and what to return for them.
        lease: holds the memory of the rows and of the answer.

    Raises QuotaExceeded, AnotherState, Invalid, InvalidSamples, MemoryFull, ModelBroken,
    NoSuchHead, NotReached, Untrained; with ids also Forbidden, and what
    `Engine.store_waiting_rows` raises.
    """
    rows, ids = question.rows, question.ids
    count = n_rows(rows)
    if ids is not None:
        grant.check("learn")
        engine.check_stores_rows(model)
    grant.spend(count)
    began = time.monotonic()
    tracing.count_samples(count)
    name = _predicting_head(model, head, has_ids=ids is not None)
    check_explained(question)
    _check_intact(model)
    if lease.holds:
        lease.shrink(n_bytes(rows))
    published = await engine.view(model, name, rows, awaited)
    if name not in published.heads:  # a promotion has changed the spec meanwhile
        raise NoSuchHead(f"model {model.name!r} has another spec by now, which lacks {name}")
    _hold_answer(lease, count, published.heads[name].classes, question)
    answered = await _answer(model, published, name, question, lease)
    seconds, counts = time.monotonic() - began, model.counts[name]
    counts.predicted += count
    counts.predict_requests += 1
    counts.predict_seconds += seconds
    engine.metrics.predict.observe(seconds)
    response = {
        "model": model.name,
        "sequence": published.sequence,
        "epoch": published.epoch,
        "head": name,
        **published.heads[name].source,
        "prediction": answered.prediction,
        "decision": answered.decision,
        **answered.more,
    }
    if ids is None:
        return response
    return await engine.store_waiting_rows(model, ids, rows, {**response, "ids": ids})


def _predicting_head(model: Model, head: str | None, has_ids: bool) -> HeadName:
    """Return the head that a prediction is asked of. Raises Invalid, NoSuchHead.

    Args:
        model: that predicts.
        head: as the request names it; None for the one that the spec serves.
        has_ids: whether the rows are to wait for their labels.
    """
    name = read_head(head) or model.spec.serve
    if head is not None and name not in model.spec.heads:
        raise NoSuchHead(f"the spec of model {model.name!r} has null for {name}")
    if name in BESIDE:
        raise Invalid(f"the head {name} {model.published.heads[name].lacks}")
    if has_ids and name != model.spec.serve:
        raise Invalid(
            f"rows with ids are predicted by the head that serves, {model.spec.serve}: leave head "
            "out, or leave ids out"
        )
    return name


def label(
    engine: ServingEngine,
    grant: Grant,
    model: Model,
    labels: LateLabels,
    expected: tuple[Revision, ...] = (),
) -> "asyncio.Future[Response]":
    """Queue labels of predicted rows; return a future of the answer.

    The rows are learned like those of a learning call for the head that predicted them, in the
    order of the calls.

    Args:
        engine: the engine.
        grant: what the sender may do.
        model: the model.
        labels: the labels.
        expected: the revisions at which they may be learned; empty for any.

    Raises QuotaExceeded, NotReady, QueueFull, ModelBroken.
    """
    grant.spend(len(labels.ids))
    tracing.count_samples(len(labels.ids))
    head = model.head_of[call_of_head(model.spec.serve)]
    try:
        return engine.label(model, head, labels, expected)
    except Refusal:
        grant.give_back(len(labels.ids))
        raise


def _hold_answer(
    lease: Lease, count: int, classes: tuple[Label, ...] | None, question: Question
) -> None:
    """Hold the memory of the answer to `count` rows. Raises MemoryFull."""
    per_class = 1 + question.probability + (question.confidence is not None)
    n_classes = max(1, len(classes or ()))
    columns = 1 + per_class * n_classes + question.explain * _VALUES_PER_REASON
    answer_bytes = columns * count * VALUE_BYTES
    if answer_bytes > UNCOUNTED_BYTES:
        lease.hold(n_bytes(question.rows) + answer_bytes)


async def check_predicts(engine: PredictingEngine, model: Model, row: Rows, lease: Lease) -> None:
    """Check that the served head can predict a row. Raises MemoryFull, ModelBroken, Untrained."""
    _check_intact(model)
    published = await engine.view(model, model.spec.serve, row)
    await _answer(model, published, model.spec.serve, Question(row), lease)


async def _answer(
    model: Model, published: ModelView, head: HeadName, question: Question, lease: Lease
) -> QuestionAnswer:
    """Return predictions, and the other requested fields.

    They are computed on another thread if that takes long. Single rows are computed together with
    others that arrive at the same time.

    Raises MemoryFull, Untrained.
    """
    rows = question.rows
    entries = n_entries(rows)
    cost = published.cost(head, n_rows(rows), entries)
    inline = cost <= MOST_COST and not question.explain
    if isinstance(rows, NamedRows) and entries > _INLINE_NAMED:
        inline = False
    if not inline:
        with lease.reading(model, published):
            return await asyncio.to_thread(answer, model, published, head, question)
    if not is_simple(model, published, head, question):
        return answer(model, published, head, question)
    # Rows by name are joined whatever names they have; other rows must be equally long.
    width = None if isinstance(rows, NamedRows) else entries
    form = form_of(rows), width
    kind = id(published), head, question.probability, question.confidence, form
    answer_singly = partial(answer_each, model, published, head)
    return await model.single_rows.ask(kind, question, cost, answer_singly)


def _check_intact(model: Model) -> None:
    """Raise ModelBroken for a broken model without samples, which cannot predict."""
    if model.broken and not model.published.sequence:
        raise ModelBroken(f"model {model.name!r}: {model.broken}")


def read_head(head: str | None) -> HeadName | None:
    """Return the head that a parameter names. Raises Invalid."""
    if head is None:
        return None
    for name in HEADS:
        if head == name:
            return name
    raise Invalid(f"head must be one of {', '.join(HEADS)}, not {head!r}")
