"""Admission: which requests of a group can be learned, before anything of it is written.

What is admitted is learned whatever happens: it is written to the journal next, and the journal
holds no refusals. Duplicates are recognised here, too.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from service.engine.absorb import Recorded
from service.engine.duplicates import Duplicates
from service.engine.idempotency import body_digest
from service.engine.late_labels import Found, Joining, LabelRequest, Run
from service.engine.live_models import not_yet_learned
from service.engine.predictions import Remembered, Remembering, RememberRequest
from service.engine.waiter import Waiter
from service.errors import ModelBroken, Refusal
from service.model.draft import Draft, Limits
from service.model.learner import Learner
from service.model.live import Model
from service.model.moment import Moment
from service.samples.predicted import to_labels_record
from service.samples.record import part_of, with_record
from service.samples.validation import Samples
from service.settings import Settings, usable_bytes
from service.spec.heads import HeadName
from service.storage.entries import PART_BYTES, PART_SAMPLES, Entry, KeyedRequest
from solver.prepare.named_rows import form_of

Answer: TypeAlias = dict[str, Any]
Reply: TypeAlias = tuple[Waiter, Any]


class LearnRequest(NamedTuple):
    """One client's samples for one head, and the future that waits for the answer.

    submitted: time of the monotonic clock, in seconds. key: of `engine.idempotency`. durable:
        done as soon as the samples are on disk, if a client wants to know; never of a duplicate.
    expected: the states of the model in which it is to be learned; nothing for any.
    record: of the samples, which are as a record has them, where they came as one.
    """

    model: Model
    head: HeadName
    samples: Samples
    answer: Waiter
    submitted: float
    key: bytes | None = None
    durable: Waiter | None = None
    expected: tuple[Moment, ...] = ()
    record: bytes | None = None

    @property
    def size(self) -> int:
        """How many samples."""
        return len(self.samples.y)


class Part(NamedTuple):
    """What is learned at a time, and its entry in the journal."""

    entry: Entry
    content: Recorded


class Admitted(NamedTuple):
    """A request that will be learned, in its parts; one, unless it is large.

    found: what became of each label, of a request of labels.
    """

    request: LearnRequest | LabelRequest
    parts: list[Part]
    found: Found | None = None

    @property
    def sequence(self) -> int:
        """Of its last sample."""
        return self.parts[-1].entry.sequence

    @property
    def samples(self) -> int:
        """How many are learned."""
        return sum(part.entry.samples for part in self.parts)


class Admission(NamedTuple):
    """What becomes of a group of requests, but for duplicates.

    admitted: what is learned, model by model and in order. remembered: predictions. settled:
    labels of which none is learned, to be answered when the rest of their group is durable.
    """

    admitted: list[Admitted]
    remembered: list[Remembered]
    settled: list[tuple[LabelRequest, Found]]
    refused: list[Reply]

    @property
    def entries(self) -> list[Entry]:
        """What is written: of each model its predictions first."""
        parts = [part.entry for item in self.admitted for part in item.parts]
        return [item.entry for item in self.remembered if item.entry is not None] + parts


class _Accepted(NamedTuple):
    """A request that is learned up to a sequence. found: as of `Admitted`."""

    request: LearnRequest | LabelRequest
    sequence: int
    runs: list[Run]
    found: Found | None = None

    @property
    def large(self) -> bool:
        """Whether others come between its parts."""
        run = self.runs[0]
        small = len(run.samples.y) <= PART_SAMPLES and len(run.record) <= PART_BYTES
        return not small or len(self.runs) > 1


def admit(
    requests: Sequence[LearnRequest | LabelRequest | RememberRequest],
    duplicates: Duplicates,
    settings: Settings,
    usable: Callable[[Model], Learner],
    time: Callable[[], int],
) -> Admission:
    """What becomes of a group of requests.

    A model's predictions come before what it learns, which has no place between them: so they cut
    no block. No label of the same group finds their rows, as nobody knows yet that they wait.

    usable: the learner of a model, or raises for a model that was deleted or broke while the
    request waited. time: of the group, the same each time, in milliseconds since 1970.
    """
    of_group = Admission([], [], [], [])
    by_model: dict[Model, list[LearnRequest | LabelRequest]] = {}
    predictions: dict[Model, list[RememberRequest]] = {}
    for request in requests:
        if isinstance(request, RememberRequest):
            predictions.setdefault(request.model, []).append(request)
        else:
            by_model.setdefault(request.model, []).append(request)
    for model, remembering in predictions.items():
        _remember(model, remembering, of_group, settings.threads, usable, time)
    limits = limits_of(settings)
    for model, of_model in by_model.items():
        _admit_to(model, of_model, duplicates, of_group, settings.threads, limits, usable, time)
    return of_group


def _remember(
    model: Model,
    requests: Sequence[RememberRequest],
    of_group: Admission,
    threads: int,
    usable: Callable[[Model], Learner],
    time: Callable[[], int],
) -> None:
    """Admit the predictions of a model."""
    taking: Remembering | None = None
    for request in requests:
        try:
            if taking is None:
                learner = usable(model)
                taking = Remembering(learner.pending, model, learner.sequence, time())
            of_group.remembered.append(taking.take(request, threads))
        except Refusal as error:
            of_group.refused.append((request.answer, error))


def _admit_to(
    model: Model,
    requests: Sequence[LearnRequest | LabelRequest],
    duplicates: Duplicates,
    of_group: Admission,
    threads: int,
    limits: Limits,
    usable: Callable[[Model], Learner],
    time: Callable[[], int],
) -> None:
    """Admit what a model is to learn."""
    draft: Draft | None = None
    joining: Joining | None = None
    accepted: list[_Accepted] = []
    for request in requests:
        try:
            if draft is None:
                draft = Draft(usable(model), limits)
            if isinstance(request, LearnRequest):
                item = _accept(request, draft, duplicates)
            else:
                joining = joining or Joining(usable(model).pending, model, time())
                item = _accept_labels(request, draft, joining, of_group)
        except Refusal as error:
            key = request.key if isinstance(request, LearnRequest) else None
            durable = isinstance(error, ModelBroken) and duplicates.knows(model.id, key)
            refusal = not_yet_learned(model) if durable else error
            of_group.refused.append((request.answer, refusal))
            count_rejected(request)
        else:
            if item is not None:
                accepted.append(item)
    for block in _blocks(accepted):
        of_group.admitted.extend(_in_parts(block, threads))


def _blocks(accepted: list[_Accepted]) -> list[list[_Accepted]]:
    """Requests that are learned together: rows of different forms are not joined."""
    if len(accepted) == 1:
        return [accepted]
    return [list(block) for _, block in groupby(accepted, key=_kind_of_block)]


def _kind_of_block(item: _Accepted) -> Hashable:
    return item.request.head, item.large, item.found is None, form_of(item.runs[0].samples.X)


def limits_of(settings: Settings) -> Limits:
    """What one model may meet."""
    most_bytes = settings.model_bytes or usable_bytes() // 2
    return Limits(settings.classes, settings.features, most_bytes)


def count_rejected(request: LearnRequest | LabelRequest) -> None:
    """Count the samples of a request that waited and will not be learned."""
    request.model.counts[request.head].rejected += request.size


def _accept_labels(
    request: LabelRequest, draft: Draft, joining: Joining, of_group: Admission
) -> _Accepted | None:
    """Look for the rows of labels; None where none is learned. Raises what `Draft.add` raises."""
    draft.check(request.expected)
    found = joining.look_up(request.labels)
    start = 0
    with draft.whole():
        for run in found.runs:
            try:
                draft.add(request.head, run.samples)
            except Refusal as error:
                error.errors = found.placed(error.errors, start)
                raise
            start += len(run.samples.y)
    joining.take(found, request.labels)
    if found.runs:
        return _Accepted(request, draft.sequence, found.runs, found)
    of_group.settled.append((request, found))
    return None


def _accept(request: LearnRequest, draft: Draft, duplicates: Duplicates) -> _Accepted | None:
    """Check a request and encode it; None of a duplicate. Raises what `Draft.add` raises."""
    model, head, key = request.model, request.head, request.key
    samples, record = request.samples, request.record
    if record is None:
        samples, record = with_record(samples)
    digest = b"" if key is None else body_digest(head, record)
    if key is not None and duplicates.recognise(model.id, key, digest, request.answer):
        model.counts[head].count_duplicates(len(samples.y))
        return None
    draft.add(head, samples, request.expected)
    if key is not None:
        keyed = KeyedRequest(model.id, draft.sequence, key, digest, None, len(samples.y))
        duplicates.add(keyed, request.answer)
    return _Accepted(request, draft.sequence, [Run(samples, record)])


def _in_parts(block: list[_Accepted], threads: int) -> list[Admitted]:
    """Journal entries of consecutive requests for one head of one model.

    Small ones are one block. Of a large one each part is a block, so that a replay learns it in the
    same parts.
    """
    if not block[0].large:
        ends = block[-1].sequence
        return [
            Admitted(item.request, [_part(item, run, item.sequence, ends, threads)], item.found)
            for item in block
            for run in item.runs
        ]
    return [Admitted(item.request, list(_parts(item, threads)), item.found) for item in block]


def _parts(item: _Accepted, threads: int) -> Iterator[Part]:
    """The parts of a large request: as many samples in each as its bounds allow, at least one."""
    sequence = item.sequence - sum(len(run.samples.y) for run in item.runs)
    for run in item.runs:
        n = len(run.samples.y)
        step = max(1, min(PART_SAMPLES, n * PART_BYTES // len(run.record)))
        for start in range(0, n, step):
            samples, record = with_record(part_of(run.samples, start, min(start + step, n)))
            joined = None if run.joined is None else run.joined.part(start, start + step)
            sequence += len(samples.y)
            part = Run(samples, record, joined)
            yield _part(item, part, sequence, sequence, threads)


def _part(item: _Accepted, run: Run, sequence: int, block: int, threads: int) -> Part:
    samples, record, joined = run
    entry = Entry(
        model=item.request.model.id,
        sequence=sequence,
        samples=len(samples.y),
        block=block,
        head=item.request.head,
        threads=threads,
        record=record if joined is None else to_labels_record(record, joined),
        kind="samples" if joined is None else "labels",
    )
    return Part(entry, Recorded(samples, joined))
