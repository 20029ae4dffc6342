"""Admission: decides which requests of a group are learned, before any of them is written.

The log holds no refusals, so an admitted request is learned whatever happens later. Duplicates are
recognised here, too.

Admission holds the writer's role, so no other model learns meanwhile. Most requests are checked in
microseconds. The first rows of a table with very many columns, or labels for very many rows, take
a second. These are computed outside of admission, which finds the result in the request and uses it
only if the model is still as it was then.
"""

import logging
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.engine.blocks import AdmittedRequest, CheckedRequest, in_parts
from wolfstream.service.engine.idempotency import Duplicates, body_digest
from wolfstream.service.engine.late_labels import (
    AdmittedPrediction,
    LabelJoiner,
    PredictionAdmission,
)
from wolfstream.service.engine.queue_items import (
    GroupRequest,
    LabelOutcomes,
    LabelRequest,
    LearnRequest,
    Reply,
    SampleRun,
    Waiter,
    WaitingRowsRequest,
)
from wolfstream.service.errors import AnotherState, ModelBroken, Refusal, ServerFailed
from wolfstream.service.model.draft import (
    SMALL,
    Draft,
    Limits,
    columns_with_texts,
    has_too_many,
    next_form,
)
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.memory import ModelMemory
from wolfstream.service.recovery.broken import error_text, not_yet_learned
from wolfstream.service.samples.record import (
    as_recorded,
    concatenate_samples,
    records_of,
    with_record,
)
from wolfstream.service.settings import Settings
from wolfstream.service.storage.entries import Entry, KeyedRequest
from wolfstream.solver.prepare.named_rows import n_entries
from wolfstream.solver.prepare.row_form import RowForm

logger = logging.getLogger(__name__)

# Requests with at most this many values, or labels, are checked in about ten milliseconds.
_VALUES, _LABELS = 1 << 14, 1 << 11
# No request of fewer bytes, as the queue counts them, is costly.
COSTLY_BYTES = 1 << 17
# The most samples of requests that are checked together: a draft takes memory in advance for these.
_TOGETHER = SMALL


def is_costly(request: GroupRequest) -> bool:
    """Return whether a request may take long to check."""
    if isinstance(request, LearnRequest):
        return n_entries(request.samples.X) > _VALUES
    return isinstance(request, LabelRequest) and request.size > _LABELS


def with_precomputed(
    requests: Sequence[GroupRequest], learners: Mapping[Model, Learner], time: int
) -> list[GroupRequest]:
    """Return the requests of a group with the precomputed parts of their checks.

    Args:
        requests: in the order in which they came.
        learners: of the models that have costly requests; nothing else changes them meanwhile.
        time: of the group, in milliseconds since 1970.
    """
    forms = {model: learner.rows.form for model, learner in learners.items()}
    labelled, precomputed = set[Model](), list[GroupRequest]()
    for request in requests:
        model = request.model
        if model in learners and isinstance(request, LearnRequest):
            request, forms[model] = _with_form(request, forms[model])
        elif isinstance(request, LabelRequest) and model in learners.keys() - labelled:
            labelled.add(model)
            request = _with_outcomes(request, learners[model], time)
        precomputed.append(request)
    return precomputed


def _with_form(request: LearnRequest, form: RowForm) -> tuple[LearnRequest, RowForm]:
    """Return a request with its record and the form after it, and that form."""
    samples, record = request.samples, request.record
    if has_too_many(columns_with_texts(samples.X), form):  # refused without a look at them
        return request, form
    if record is None:
        samples, record = with_record(samples)
    form_after = next_form(form, samples.X)
    return request._replace(
        samples=samples, record=record, precomputed=form_after
    ), form_after.after


def _with_outcomes(request: LabelRequest, learner: Learner, time: int) -> LabelRequest:
    """Return a request with the outcomes of its labels; unchanged if admission will refuse it."""
    try:
        joiner = LabelJoiner(learner.pending, request.model, time)
        return request._replace(precomputed=joiner.look_up(request.labels))
    except Refusal:
        return request


class Admission(NamedTuple):
    """What becomes of the requests of a group, duplicates excepted.

    Attributes:
        admitted: samples and labels to learn, model by model and in order.
        waiting_rows: predictions whose rows are to wait for labels.
        known: requests of labels that bring nothing to learn. They are answered once the rest of
            the group is durable, because they may repeat its labels.
        refused: replies that no log has to confirm.
        unsure: refusals that are wrong if another replica has learned meanwhile, such as those of
            another revision. They are answered when `known` is.
    """

    admitted: list[AdmittedRequest]
    waiting_rows: list[AdmittedPrediction]
    known: list[tuple[LabelRequest, LabelOutcomes]]
    refused: list[Reply]
    unsure: list[tuple[Model, Reply]]

    @property
    def models(self) -> set[Model]:
        """The models of all requests that wait for the commit."""
        return {
            *(item.request.model for item in self.admitted),
            *(item.request.model for item in self.waiting_rows),
            *self.confirmed,
        }

    @property
    def confirmed(self) -> set[Model]:
        """The models about which a client is told something that writes no entry."""
        return {
            *(request.model for request, _ in self.known),
            *(item.request.model for item in self.waiting_rows if item.new is None),
            *(model for model, _ in self.unsure),
        }

    def waiting(self) -> Iterator[Waiter]:
        """Yield the waiters of all requests that wait for the commit."""
        yield from (item.request.waiter for item in self.admitted)
        yield from (item.request.waiter for item in self.waiting_rows)
        yield from (request.waiter for request, _ in self.known)
        yield from (waiter for _, (waiter, _) in self.unsure)

    def part_for(self, models: Collection[int]) -> "Admission":
        """Return the part that concerns these models (by id), without refusals."""
        return Admission(
            [item for item in self.admitted if item.request.model.id in models],
            [item for item in self.waiting_rows if item.request.model.id in models],
            [item for item in self.known if item[0].model.id in models],
            [],
            [item for item in self.unsure if item[0].id in models],
        )

    @property
    def entries(self) -> list[Entry]:
        """What the commit writes: first the predictions, then the rest, each model's in order."""
        parts = [part.entry for item in self.admitted for part in item.parts]
        return [item.new.entry for item in self.waiting_rows if item.new is not None] + parts


def admit(
    requests: Sequence[LearnRequest | LabelRequest | WaitingRowsRequest],
    duplicates: Duplicates,
    settings: Settings,
    memory: ModelMemory,
    usable: Callable[[Model], Learner],
    clock: Callable[[], int],
) -> Admission:
    """Decide what becomes of a group of requests.

    A model's predictions are written before the samples that it learns, so that they divide no
    block. Labels in the same group do not find these rows yet: no client can know that they wait.

    Args:
        requests: of any number of models, in the order in which they came.
        duplicates: recognises those that came before.
        settings: of the server.
        memory: from which models take what they grow by.
        usable: returns the learner of a model; raises if the model was deleted or broke while the
            request waited.
        clock: returns the time, in milliseconds since 1970, for rows that wait.
    """
    admission = Admission([], [], [], [], [])
    to_learn: dict[Model, list[LearnRequest | LabelRequest]] = {}
    predictions: dict[Model, list[WaitingRowsRequest]] = {}
    for request in requests:
        if isinstance(request, WaitingRowsRequest):
            predictions.setdefault(request.model, []).append(request)
        else:
            to_learn.setdefault(request.model, []).append(request)
    for model, predicted in predictions.items():
        _admit_waiting_rows(model, predicted, admission, settings.threads, usable, clock)
    limits = model_limits(settings)._replace(memory=memory)
    for model, own in to_learn.items():
        model_admission = _ModelAdmission(model, admission, duplicates, limits, usable, clock)
        admission.admitted.extend(model_admission.take(own, settings.threads))
    return admission


def _admit_waiting_rows(
    model: Model,
    requests: Sequence[WaitingRowsRequest],
    admission: Admission,
    threads: int,
    usable: Callable[[Model], Learner],
    clock: Callable[[], int],
) -> None:
    """Add a model's predictions to the admission."""
    prediction_admission: PredictionAdmission | None = None
    for request in requests:
        try:
            if prediction_admission is None:
                learner = usable(model)
                prediction_admission = PredictionAdmission(
                    learner.pending, model, learner.sequence, clock()
                )
            admission.waiting_rows.append(prediction_admission.take(request, threads))
        except Refusal as error:
            admission.refused.append((request.waiter, error.without_frames()))


class _ModelAdmission:
    """Adds to an admission what one model is to learn, with the arguments of `admit`.

    limits: bounds on the model, with the memory that it grows from.
    """

    def __init__(
        self,
        model: Model,
        admission: Admission,
        duplicates: Duplicates,
        limits: Limits,
        usable: Callable[[Model], Learner],
        clock: Callable[[], int],
    ) -> None:
        self._model, self._admission, self._duplicates = model, admission, duplicates
        self._limits, self._usable, self._clock = limits, usable, clock
        self._draft: Draft | None = None
        self._joiner: LabelJoiner | None = None

    def take(
        self, requests: Sequence[LearnRequest | LabelRequest], threads: int
    ) -> Iterator[AdmittedRequest]:
        """Check requests in order; yield what is admitted."""
        accepted: list[CheckedRequest] = []
        for run in _runs(requests):
            together = self._accepted_together(run) if len(run) > 1 else None
            accepted += together or filter(None, map(self._accepted, run))
        return in_parts(accepted, threads)

    def _drafted(self) -> Draft:
        """Return the draft. Raises what `usable` raises."""
        if self._draft is None:
            self._draft = Draft(self._usable(self._model), self._limits)
        return self._draft

    def _accepted_together(self, run: Sequence[Any]) -> list[CheckedRequest] | None:
        """Check requests of a run at once; None if one of them fails, whichever it is."""
        try:
            return _accept_run(run, self._drafted())
        except Exception:  # each is checked alone then, and its error told
            return None

    def _accepted(self, request: LearnRequest | LabelRequest) -> CheckedRequest | None:
        """Check a request; None if it is not to be learned."""
        model, admission = self._model, self._admission
        try:
            draft = self._drafted()
            if isinstance(request, LearnRequest):
                return _accept(request, draft, self._duplicates)
            if self._joiner is None:
                self._joiner = LabelJoiner(self._usable(model).pending, model, self._clock())
            return _accept_labels(request, draft, self._joiner, admission)
        except Refusal as error:
            key = request.key if isinstance(request, LearnRequest) else None
            durable = isinstance(error, ModelBroken) and self._duplicates.knows(model.id, key)
            refusal = not_yet_learned(model) if durable else error.without_frames()
            if isinstance(error, AnotherState):
                admission.unsure.append((model, (request.waiter, refusal)))
            else:
                admission.refused.append((request.waiter, refusal))
        except Exception as failure:  # requests of other models go on
            logger.exception("check failed, request not learned: model=%s", model.name)
            failed = ServerFailed(f"{error_text(failure)}; nothing was learned")
            admission.refused.append((request.waiter, failed))
        count_rejected(request)
        return None


def _runs(
    requests: Sequence[LearnRequest | LabelRequest],
) -> Iterator[list[LearnRequest | LabelRequest]]:
    """Yield consecutive requests that can be checked together."""
    run, samples, kind = list[LearnRequest | LabelRequest](), 0, None
    for request in requests:
        previous, kind, added = kind, _kind_of_check(request), request.size
        if run and (kind is None or kind != previous or samples + added > _TOGETHER):
            yield run
            run, samples = [], 0
        run.append(request)
        samples += added
    yield run


def _kind_of_check(request: LearnRequest | LabelRequest) -> Hashable:
    """Return what requests that are checked together share; None if a request is checked alone."""
    if not isinstance(request, LearnRequest):
        return None
    X, y, weight = request.samples
    if not isinstance(X, np.ndarray) or weight is not None or request.expected:
        return None
    if not (request.key is None is request.record is None is request.precomputed):
        return None
    return request.head, X.shape[1], type(y)


def model_limits(settings: Settings) -> Limits:
    """Return the bounds on what one model may hold."""
    most_bytes = settings.model_bytes or settings.most_bytes // 2
    return Limits(settings.classes, settings.features, most_bytes)


def count_rejected(request: LearnRequest | LabelRequest) -> None:
    """Count the samples of a request that was queued and will not be learned."""
    request.model.counts[request.head].rejected += request.size


def _accept_labels(
    request: LabelRequest, draft: Draft, joiner: LabelJoiner, admission: Admission
) -> CheckedRequest | None:
    """Join labels with their rows; None if there is nothing to learn. Raises as `Draft.add`."""
    draft.check(request.expected)
    outcomes = joiner.outcomes(request)
    start = 0
    with draft.whole():
        for run in outcomes.runs:
            try:
                draft.add(request.head, run.samples)
            except Refusal as error:
                error.errors = outcomes.relocate(error.errors, start)
                raise
            start += len(run.samples.y)
    joiner.take(outcomes, request.labels)
    if outcomes.runs:
        return CheckedRequest(request, draft.sequence, outcomes.runs, outcomes)
    admission.known.append((request, outcomes))
    return None


def _accept(request: LearnRequest, draft: Draft, duplicates: Duplicates) -> CheckedRequest | None:
    """Check and encode a request; return None for a duplicate. Raises as `Draft.add`."""
    model, head, key = request.model, request.head, request.key
    samples, record = request.samples, request.record
    if record is None:
        samples, record = with_record(samples)
    digest = b"" if key is None else body_digest(head, record)
    if key is not None and duplicates.recognise(model.id, key, digest, request.waiter):
        model.counts[head].count_duplicates(len(samples.y))
        return None
    draft.add(head, samples, request.expected, request.precomputed)
    if key is not None:
        keyed = KeyedRequest(model.id, draft.sequence, key, digest, None, len(samples.y))
        duplicates.add(keyed, request.waiter)
    return CheckedRequest(request, draft.sequence, [SampleRun(samples, record)])


def _accept_run(requests: Sequence[LearnRequest], draft: Draft) -> list[CheckedRequest]:
    """Check and encode the requests of a run, all or none of them. Raises as `Draft.add`."""
    samples = as_recorded(concatenate_samples([request.samples for request in requests]))
    sequence = draft.sequence
    draft.add(requests[0].head, samples)
    stops = list(accumulate([request.size for request in requests]))
    parts = [samples.part(start, stop) for start, stop in pairwise([0, *stops])]
    runs = map(SampleRun, parts, records_of(parts))
    return [
        CheckedRequest(request, sequence + stop, [run])
        for request, stop, run in zip(requests, stops, runs, strict=True)
    ]
