"""The parts of checking requests that take long, computed before their admission.

Admission holds the writer's role, so no other model learns meanwhile. Most requests are checked in
microseconds. The first rows of a table with very many columns, or labels for very many rows, take
a second. These are computed outside of admission, which finds the result in the request and uses it
only if the model is still as it was then.
"""

from collections.abc import Mapping, Sequence

from wolfstream.service.engine.late_labels import LabelJoiner
from wolfstream.service.engine.queue_items import (
    GroupRequest,
    LabelRequest,
    LearnRequest,
)
from wolfstream.service.errors import Refusal
from wolfstream.service.model.draft import columns_with_texts, has_too_many, next_form
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.record import with_record
from wolfstream.solver.prepare.named_rows import n_entries
from wolfstream.solver.prepare.row_form import RowForm

# Requests with at most this many values, or labels, are checked in about ten milliseconds.
_VALUES, _LABELS = 1 << 14, 1 << 11
# No request of fewer bytes, as the queue counts them, is costly.
COSTLY_BYTES = 1 << 17


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
