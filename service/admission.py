"""Which requests of a group can be learned, before anything of it is written.

What is let in here is learned whatever comes: it is written to the log next, and the log knows no
refusal. What comes again under its key is recognised here, too.
"""

import asyncio
from collections.abc import Callable
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from service.errors import Refusal
from service.idempotency import KeyedGroup, body_digest
from service.log_rows import Entry
from service.model import Draft, Limits, Model
from service.records import to_record
from service.samples import Samples
from service.settings import Settings
from service.spec import HeadName

Answer: TypeAlias = dict[str, Any]
Reply: TypeAlias = tuple["asyncio.Future[Any]", Any]


class LearnRequest(NamedTuple):
    """One client's samples for one head, and the future that waits for the answer.

    submitted: when, of the monotonic clock. key: what the client calls it by
        (`service.idempotency`). durable: done as soon as it is on disk, if anybody asks; never
        of a duplicate.
    """

    model: Model
    head: HeadName
    samples: Samples
    answer: "asyncio.Future[Answer]"
    submitted: float
    key: bytes | None = None
    durable: "asyncio.Future[Answer] | None" = None


class Admitted(NamedTuple):
    """A request that will be learned, and its entry in the log."""

    request: LearnRequest
    entry: Entry


def admit(
    requests: list[LearnRequest],
    keyed: KeyedGroup,
    settings: Settings,
    check_living: Callable[[Model], None],
) -> tuple[list[Admitted], list[Reply]]:
    """Entries for what can be learned, model by model and in order; refusals of the rest.

    Duplicates are in neither; `keyed` answers them. check_living: raises for a model that was
    deleted or broke meanwhile.
    """
    by_model: dict[Model, list[LearnRequest]] = {}
    for request in requests:
        by_model.setdefault(request.model, []).append(request)
    limits = Limits(settings.classes, settings.features)
    admitted: list[Admitted] = []
    refused: list[Reply] = []
    for model, of_model in by_model.items():
        draft = Draft(model)
        accepted: list[tuple[LearnRequest, int]] = []
        for request in of_model:
            try:
                check_living(model)
                if request.key is None:
                    model.check(request.head, request.samples, draft, limits)
                elif not _is_new(request, request.key, draft, limits, keyed):
                    continue
            except Refusal as error:
                refused.append((request.answer, error))
                count_rejected(request)
            else:
                accepted.append((request, draft.sequence))
        for _, block in groupby(accepted, key=lambda item: item[0].head):
            admitted += _entries(list(block), settings.threads)
    return admitted, refused


def count_rejected(request: LearnRequest) -> None:
    """Count the samples of a request that waited and will not be learned."""
    request.model.counts[request.head].rejected += len(request.samples.y)


def _is_new(
    request: LearnRequest, key: bytes, draft: Draft, limits: Limits, keyed: KeyedGroup
) -> bool:
    """Check a request with a key, unless it came before. Raises what `Model.check` does."""
    model, digest = request.model, body_digest(request.head, request.samples)
    if keyed.recognise(model.id, key, digest, request.answer):
        model.counts[request.head].count_duplicates(len(request.samples.y))
        return False
    model.check(request.head, request.samples, draft, limits)
    keyed.add(model.id, draft.sequence, key, digest, request.answer)
    return True


def _entries(block: list[tuple[LearnRequest, int]], threads: int) -> list[Admitted]:
    """Log entries of consecutive requests for one head of one model: one block."""
    return [
        Admitted(
            request,
            Entry(
                model=request.model.id,
                sequence=sequence,
                samples=len(request.samples.y),
                block=block[-1][1],
                head=request.head,
                threads=threads,
                record=to_record(request.samples),
            ),
        )
        for request, sequence in block
    ]
