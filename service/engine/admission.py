"""Admission: which requests of a group can be learned, before anything of it is written.

What is admitted is learned whatever happens: it is written to the journal next, and the journal
holds no refusals. Duplicates are recognised here, too.
"""

import asyncio
from collections.abc import Callable
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from service.engine.duplicates import Duplicates
from service.engine.idempotency import body_digest
from service.engine.live_models import not_yet_learned
from service.errors import ModelBroken, Refusal
from service.model.draft import Draft, Limits
from service.model.learner import Learner
from service.model.live import Model
from service.model.moment import Moment
from service.samples.named_rows import form_of
from service.samples.record import as_recorded, to_record
from service.samples.validation import Samples
from service.settings import Settings, usable_bytes
from service.spec.heads import HeadName
from service.storage.entries import Entry

Answer: TypeAlias = dict[str, Any]
Reply: TypeAlias = tuple["asyncio.Future[Any]", Any]


class LearnRequest(NamedTuple):
    """One client's samples for one head, and the future that waits for the answer.

    submitted: time of the monotonic clock, in seconds. key: of `engine.idempotency`. durable:
        done as soon as the samples are on disk, if a client wants to know; never of a duplicate.
    expected: the states of the model in which it is to be learned; nothing for any.
    """

    model: Model
    head: HeadName
    samples: Samples
    answer: "asyncio.Future[Answer]"
    submitted: float
    key: bytes | None = None
    durable: "asyncio.Future[Answer] | None" = None
    expected: tuple[Moment, ...] = ()


class Admitted(NamedTuple):
    """A request that will be learned, its entry in the journal and the samples in that."""

    request: LearnRequest
    entry: Entry
    samples: Samples


class _Accepted(NamedTuple):
    request: LearnRequest
    sequence: int
    record: bytes
    samples: Samples


def admit(
    requests: list[LearnRequest],
    duplicates: Duplicates,
    settings: Settings,
    usable: Callable[[Model], Learner],
) -> tuple[list[Admitted], list[Reply]]:
    """Entries for what can be learned, model by model and in order; refusals of the rest.

    Duplicates are in neither list. usable: the learner of a model, or raises for a model that was
    deleted or broke while the request waited.
    """
    by_model: dict[Model, list[LearnRequest]] = {}
    for request in requests:
        by_model.setdefault(request.model, []).append(request)
    limits = Limits(
        settings.classes, settings.features, settings.model_bytes or usable_bytes() // 2
    )
    admitted: list[Admitted] = []
    refused: list[Reply] = []
    for model, of_model in by_model.items():
        draft: Draft | None = None
        accepted: list[_Accepted] = []
        for request in of_model:
            try:
                draft = draft or Draft(usable(model), limits)
                item = _accept(request, draft, duplicates)
            except Refusal as error:
                durable = isinstance(error, ModelBroken) and duplicates.knows(model.id, request.key)
                refused.append((request.answer, not_yet_learned(model) if durable else error))
                count_rejected(request)
            else:
                if item is not None:
                    accepted.append(item)
        # Rows of different forms are not joined.
        for _, block in groupby(
            accepted, key=lambda item: (item.request.head, form_of(item.samples.X))
        ):
            admitted += _entries(list(block), settings.threads)
    return admitted, refused


def count_rejected(request: LearnRequest) -> None:
    """Count the samples of a request that waited and will not be learned."""
    request.model.counts[request.head].rejected += len(request.samples.y)


def _accept(request: LearnRequest, draft: Draft, duplicates: Duplicates) -> _Accepted | None:
    """Check a request and encode it; None of a duplicate. Raises what `Draft.add` raises."""
    model, head, key = request.model, request.head, request.key
    samples = as_recorded(request.samples)
    if key is None:
        draft.check(request.expected)
        draft.add(head, samples)
        return _Accepted(request, draft.sequence, to_record(samples), samples)
    record = to_record(samples)
    digest = body_digest(head, record)
    if duplicates.recognise(model.id, key, digest, request.answer):
        model.counts[head].count_duplicates(len(samples.y))
        return None
    draft.check(request.expected)
    draft.add(head, samples)
    duplicates.add(model.id, draft.sequence, key, digest, request.answer)
    return _Accepted(request, draft.sequence, record, samples)


def _entries(block: list[_Accepted], threads: int) -> list[Admitted]:
    """Journal entries of consecutive requests for one head of one model: one block."""
    return [
        Admitted(
            request,
            Entry(
                model=request.model.id,
                sequence=sequence,
                samples=len(samples.y),
                block=block[-1].sequence,
                head=request.head,
                threads=threads,
                record=record,
            ),
            samples,
        )
        for request, sequence, record, samples in block
    ]
