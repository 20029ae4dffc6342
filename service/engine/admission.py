"""Admission: which requests of a group can be learned, before anything of it is written.

What is admitted is learned whatever happens: it is written to the journal next, and the journal
holds no refusals. Duplicates are recognised here, too.
"""

import asyncio
from collections.abc import Callable, Iterator
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
from service.samples.record import as_recorded, part_of, to_record
from service.samples.validation import Samples
from service.settings import Settings, usable_bytes
from service.spec.heads import HeadName
from service.storage.entries import PART_BYTES, PART_SAMPLES, Entry, KeyedRequest
from solver.prepare.named_rows import form_of

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


class Part(NamedTuple):
    """Samples that are learned at a time, and their entry in the journal."""

    entry: Entry
    samples: Samples


class Admitted(NamedTuple):
    """A request that will be learned, in its parts; one, unless it is large."""

    request: LearnRequest
    parts: list[Part]

    @property
    def sequence(self) -> int:
        """Of its last sample."""
        return self.parts[-1].entry.sequence


class _Accepted(NamedTuple):
    request: LearnRequest
    sequence: int
    record: bytes
    samples: Samples

    @property
    def large(self) -> bool:
        """Whether others come between its parts."""
        return len(self.samples.y) > PART_SAMPLES or len(self.record) > PART_BYTES


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
            accepted,
            key=lambda item: (item.request.head, item.large, form_of(item.samples.X)),
        ):
            admitted += _in_parts(list(block), settings.threads)
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
    keyed = KeyedRequest(model.id, draft.sequence, key, digest, None, len(samples.y))
    duplicates.add(keyed, request.answer)
    return _Accepted(request, draft.sequence, record, samples)


def _in_parts(block: list[_Accepted], threads: int) -> list[Admitted]:
    """Journal entries of consecutive requests for one head of one model.

    Small ones are one block. Of a large one each part is a block, so that a replay learns it in the
    same parts.
    """
    if not block[0].large:
        ends = block[-1].sequence
        return [
            Admitted(item.request, [Part(_entry(item, item, ends, threads), item.samples)])
            for item in block
        ]
    return [Admitted(item.request, list(_parts(item, threads))) for item in block]


def _parts(item: _Accepted, threads: int) -> Iterator[Part]:
    """The parts of a large request: as many samples in each as its bounds allow, at least one."""
    n = len(item.samples.y)
    step = max(1, min(PART_SAMPLES, n * PART_BYTES // len(item.record)))
    begin = item.sequence - n
    for start in range(0, n, step):
        samples = as_recorded(part_of(item.samples, start, min(start + step, n)))
        sequence = begin + start + len(samples.y)
        part = _Accepted(item.request, sequence, to_record(samples), samples)
        yield Part(_entry(item, part, sequence, threads), samples)


def _entry(item: _Accepted, part: _Accepted, block: int, threads: int) -> Entry:
    return Entry(
        model=item.request.model.id,
        sequence=part.sequence,
        samples=len(part.samples.y),
        block=block,
        head=item.request.head,
        threads=threads,
        record=part.record,
    )
