"""Admission: which requests of a group can be learned, before anything of it is written.

What is admitted is learned whatever happens: it is written to the journal next, and the journal
holds no refusals. Duplicates are recognised here, too.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from wolfstream.service.engine.broken import not_yet_learned
from wolfstream.service.engine.duplicates import Duplicates
from wolfstream.service.engine.idempotency import body_digest
from wolfstream.service.engine.journal_parts import Accepted, Admitted, in_parts
from wolfstream.service.engine.late_labels import Found, Joining, LabelRequest, Run
from wolfstream.service.engine.learn_request import LearnRequest, Reply
from wolfstream.service.engine.predictions import Remembered, Remembering, RememberRequest
from wolfstream.service.errors import AnotherState, ModelBroken, Refusal
from wolfstream.service.model.draft import Draft, Limits
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.record import with_record
from wolfstream.service.settings import Settings, usable_bytes
from wolfstream.service.storage.entries import Entry, KeyedRequest


class Admission(NamedTuple):
    """What becomes of a group of requests, duplicates excepted.

    Attributes:
        admitted: what is learned, model by model and in order.
        remembered: predictions.
        settled: labels of which none is learned, to be answered when the rest of their group is
            durable.
        refused: requests that need no look at a log.
        unsure: refusals that are wrong if another replica has learned since, such as that of
            another state. They are answered like `settled`.
    """

    admitted: list[Admitted]
    remembered: list[Remembered]
    settled: list[tuple[LabelRequest, Found]]
    refused: list[Reply]
    unsure: list[tuple[Model, Reply]]

    @property
    def models(self) -> set[Model]:
        """The models of all requests that wait for a commit."""
        return {
            *(item.request.model for item in self.admitted),
            *(item.request.model for item in self.remembered),
            *self.confirmed,
        }

    @property
    def confirmed(self) -> set[Model]:
        """The models about which something is answered that needs no entry."""
        return {
            *(request.model for request, _ in self.settled),
            *(item.request.model for item in self.remembered if item.new is None),
            *(model for model, _ in self.unsure),
        }

    def of(self, models: Collection[int]) -> "Admission":
        """Return the part for some models, without refusals."""
        return Admission(
            [item for item in self.admitted if item.request.model.id in models],
            [item for item in self.remembered if item.request.model.id in models],
            [item for item in self.settled if item[0].model.id in models],
            [],
            [item for item in self.unsure if item[0].id in models],
        )

    @property
    def entries(self) -> list[Entry]:
        """What is written: the predictions of each model first."""
        parts = [part.entry for item in self.admitted for part in item.parts]
        return [item.new.entry for item in self.remembered if item.new is not None] + parts


def admit(
    requests: Sequence[LearnRequest | LabelRequest | RememberRequest],
    duplicates: Duplicates,
    settings: Settings,
    usable: Callable[[Model], Learner],
    clock: Callable[[], int],
) -> Admission:
    """Decide what becomes of a group of requests.

    A model's predictions are written before what it learns, so that they divide no block. Labels of
    the same group do not find their rows, because no client knows yet that these wait.

    usable: returns the learner of a model, or raises if the model was deleted or broke while the
    request waited. clock: returns the time, in milliseconds since 1970; read where rows wait.
    """
    of_group = Admission([], [], [], [], [])
    by_model: dict[Model, list[LearnRequest | LabelRequest]] = {}
    predictions: dict[Model, list[RememberRequest]] = {}
    for request in requests:
        if isinstance(request, RememberRequest):
            predictions.setdefault(request.model, []).append(request)
        else:
            by_model.setdefault(request.model, []).append(request)
    for model, remembering in predictions.items():
        _remember(model, remembering, of_group, settings.threads, usable, clock)
    limits = limits_of(settings)
    for model, of_model in by_model.items():
        _admit_to(model, of_model, duplicates, of_group, settings.threads, limits, usable, clock)
    return of_group


def _remember(
    model: Model,
    requests: Sequence[RememberRequest],
    of_group: Admission,
    threads: int,
    usable: Callable[[Model], Learner],
    clock: Callable[[], int],
) -> None:
    """Admit the predictions of a model."""
    taking: Remembering | None = None
    for request in requests:
        try:
            if taking is None:
                learner = usable(model)
                taking = Remembering(learner.pending, model, learner.sequence, clock())
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
    clock: Callable[[], int],
) -> None:
    """Admit the samples that a model is to learn."""
    draft: Draft | None = None
    joining: Joining | None = None
    accepted: list[Accepted] = []
    for request in requests:
        try:
            if draft is None:
                draft = Draft(usable(model), limits)
            if isinstance(request, LearnRequest):
                item = _accept(request, draft, duplicates)
            else:
                joining = joining or Joining(usable(model).pending, model, clock())
                item = _accept_labels(request, draft, joining, of_group)
        except Refusal as error:
            key = request.key if isinstance(request, LearnRequest) else None
            durable = isinstance(error, ModelBroken) and duplicates.knows(model.id, key)
            refusal = not_yet_learned(model) if durable else error
            if isinstance(error, AnotherState):
                of_group.unsure.append((model, (request.answer, refusal)))
            else:
                of_group.refused.append((request.answer, refusal))
            count_rejected(request)
        else:
            if item is not None:
                accepted.append(item)
    of_group.admitted.extend(in_parts(accepted, threads))


def limits_of(settings: Settings) -> Limits:
    """Return what one model may meet."""
    most_bytes = settings.model_bytes or usable_bytes() // 2
    return Limits(settings.classes, settings.features, most_bytes)


def count_rejected(request: LearnRequest | LabelRequest) -> None:
    """Count the samples of a request that waited and will not be learned."""
    request.model.counts[request.head].rejected += request.size


def _accept_labels(
    request: LabelRequest, draft: Draft, joining: Joining, of_group: Admission
) -> Accepted | None:
    """Look for the rows of labels; None if none is learned. Raises what `Draft.add` raises."""
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
        return Accepted(request, draft.sequence, found.runs, found)
    of_group.settled.append((request, found))
    return None


def _accept(request: LearnRequest, draft: Draft, duplicates: Duplicates) -> Accepted | None:
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
    return Accepted(request, draft.sequence, [Run(samples, record)])
