"""Uses a model from outside once, before it is served: it predicts, learns and is described.

This finds what no check of a saved state can know: a state whose model would answer with NaN, or
would break at a sample that is durable by then.
"""

import json
import time
from contextlib import suppress
from typing import Any

import numpy as np

from wolfstream.service.errors import Refusal
from wolfstream.service.model.draft import Draft, Limits
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.published import ModelView
from wolfstream.service.model.saved_state import check_numbers
from wolfstream.service.samples.tasks import TASKS, Targets
from wolfstream.service.samples.validation import Question, Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.prepare.named_rows import Rows, named_values, rows_between, table_of

# Enough rows for code that runs once in a chunk of 32, unless they would take longer than this.
_ROWS, _SECONDS = 33, 2.0
_CONFIDENCE = 0.9
_MOST_NAMES = 20


def use_once(learner: Learner, limits: Limits) -> None:
    """Predict and learn a few rows as a model's users would, in bounded time.

    learner: of a copy of the state, because it is useless afterwards.

    Raises WrongArrays, and whatever learners raise at values that they never save.
    """
    _check_published(learner, None)
    rows = _rows_like(learner)
    if rows is None:
        return
    for head in learner.model.spec.heads:
        _check_published(learner, rows_between(rows, 0, 2))
        began = time.monotonic()
        _learn(learner, head, rows, slice(0, 1), limits)
        if (time.monotonic() - began) * _ROWS < _SECONDS:
            _learn(learner, head, rows, slice(1, _ROWS), limits)
    _check_published(learner, rows_between(rows, 0, 2))
    plain, arrays = learner.state()
    json.dumps(plain, allow_nan=False)
    check_numbers(learner.model.spec.heads, arrays)


def _learn(learner: Learner, head: HeadName, rows: Rows, part: slice, limits: Limits) -> None:
    """Learn some of the rows, posted for a head, unless the model refuses them."""
    X = rows_between(rows, part.start, part.stop)
    samples = Samples(X, _targets(learner, head, part.stop - part.start))
    with suppress(Refusal):
        Draft(learner, limits).add(head, samples)
        answers = learner.absorb(head, samples)
        json.dumps([answers.prediction, answers.decision, answers.beside], allow_nan=False)
    learner.publish()


def _targets(learner: Learner, head: HeadName, n: int) -> Targets:
    spec = learner.model.spec
    classes = learner.heads[head].classes or learner.heads[spec.serve].classes or spec.classes
    return TASKS[spec.task].example(n, classes or ["label"])


def _check_published(learner: Learner, rows: Rows | None) -> None:
    """Predict with each head and describe the model, as requests would have it."""
    model = learner.model
    published = model.published
    json.dumps(model.describe(), allow_nan=False)
    for head, view in published.heads.items():
        described = [view.learners, view.latest(10), view.scores, view.gauges, view.n_changes]
        json.dumps(described, allow_nan=False)
        if rows is not None and not view.lacks:
            with suppress(Refusal):
                json.dumps(_predictions(published, head, rows), allow_nan=False)


def _predictions(published: ModelView, head: HeadName, rows: Rows) -> list[Any]:
    """Return everything that a prediction can be asked for."""
    seen = published.head_rows(rows)
    predictions = published.predict(head, seen)
    results: list[Any] = [predictions.prediction, predictions.decision]
    for question in (
        Question(rows, probability=True),
        Question(rows, confidence=_CONFIDENCE),
        Question(rows, explain=1),
    ):
        with suppress(Refusal):
            results.append(published.more(head, question, seen, predictions))
    return results


def _rows_like(learner: Learner) -> Rows | None:
    """Return rows like the model's, every second one without values; None before its first row."""
    form = learner.rows.form
    if form.sparse:
        assert learner.rows.names is not None
        names = learner.rows.names.names()[:_MOST_NAMES]
        return named_values([{name: float(i % 2) for name in names} for i in range(_ROWS)])
    if form.schema is not None:
        columns = form.schema.columns
        blank = None if form.prepare is not None else 0.0
        filled = [1.0 if c.numeric else (c.texts or ("text",))[0] for c in columns]
        values = [filled if i % 2 else [blank] * len(columns) for i in range(_ROWS)]
        if form.schema.named:
            names = list(form.schema.names)
            return named_values([dict(zip(names, row, strict=True)) for row in values])
        return table_of(None, values)
    if form.width is None:
        return None
    return np.repeat(np.arange(_ROWS) % 2.0, form.width).reshape(_ROWS, form.width)
