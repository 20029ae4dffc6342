"""Answers questions about rows with the published view of a model.

A question is what a request asks about its rows: predictions, and other fields beside them.
"""

from collections.abc import Sequence

import numpy as np

from wolfstream.service.errors import InvalidSamples, Untrained
from wolfstream.service.heads.kinds import BESIDE, how_to_teach
from wolfstream.service.heads.recent_labels import rows_before
from wolfstream.service.model.columns import notices_of_rows, plain_notices
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView
from wolfstream.service.model.single_rows import QuestionAnswer
from wolfstream.service.samples.validation import Question
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.prepare.named_rows import joined, n_rows
from wolfstream.solver.rows.head_rows import HeadRows


def answer(
    model: Model, published: ModelView, head: HeadName, question: Question
) -> QuestionAnswer:
    """Return predictions, and the other fields that were asked for. Any thread may call it.

    Args:
        model: whose name messages have, and which keeps the order of the rows.
        published: its view.
        head: that predicts.
        question: of one request.

    Raises InvalidSamples, Invalid, Untrained.
    """
    view, rows = published.heads[head], question.rows
    checked = published.checked(rows)
    head_rows = model.order.marked(rows_before(view), published.rows.head_rows(checked))
    _check_taught(model, published, head)
    result = _answered(model, published, head, question, head_rows)
    if notices := notices_of_rows(published.rows, rows, checked):
        result.more["warnings"] = plain_notices(notices)
    return result


def is_simple(model: Model, published: ModelView, head: HeadName, question: Question) -> bool:
    """Return whether `answer_each` can answer a question.

    It must be about an array or a row of a table, without reasons or costs, for a head that
    predicts each row by itself.
    """
    rows = question.rows
    return (
        n_rows(rows) == 1
        and (isinstance(rows, np.ndarray) or published.rows.form.schema is not None)
        and not question.explain
        and question.costs is None
        and not published.rows.form.sparse
        and BESIDE.isdisjoint(published.heads)
        and model.chain.is_rowwise(published, head)
    )


def answer_each(
    model: Model, published: ModelView, head: HeadName, questions: Sequence[Question]
) -> Sequence[QuestionAnswer | Exception]:
    """Return the result or the error of `answer` for each of several questions, in one call.

    Other errors than those of a question are raised.

    questions: `is_simple` holds for each; their rows can be joined, and they ask for the same.
    """
    rows = None if len(questions) == 1 else _joined_rows(model, published, head, questions)
    if rows is None:
        return [_answer_or_error(model, published, head, question) for question in questions]
    return _answered_each(model, published, head, questions[0], rows)


def _joined_rows(
    model: Model, published: ModelView, head: HeadName, questions: Sequence[Question]
) -> HeadRows | None:
    """Return the rows of all questions, for heads; None if any is refused or gets a warning."""
    try:
        rows = joined([question.rows for question in questions])
        checked = published.checked(rows)
        _check_taught(model, published, head)
    except (InvalidSamples, Untrained):
        return None
    if notices_of_rows(published.rows, rows, checked, each=True):
        return None
    return published.rows.head_rows(checked)


def _answered_each(
    model: Model, published: ModelView, head: HeadName, question: Question, rows: HeadRows
) -> list[QuestionAnswer]:
    """Return the answers to a question about each row by itself, as if it came alone."""
    n = len(rows.X)
    # Whether each row comes just after the last labelled one, so that the last labels help.
    in_turn = model.order.marked_singly(rows_before(published.heads[head]), rows)
    if any(in_turn):
        single_rows = [rows.row(i, in_turn=in_turn[i]) for i in range(n)]
        return [_answered(model, published, head, question, row) for row in single_rows]
    answers, decisions, more = _answered(model, published, head, question, rows)
    return [
        QuestionAnswer(
            answers[i : i + 1],
            decisions[i : i + 1],
            {name: column[i : i + 1] for name, column in more.items()},
        )
        for i in range(n)
    ]


def _answer_or_error(
    model: Model, published: ModelView, head: HeadName, question: Question
) -> QuestionAnswer | Exception:
    try:
        return answer(model, published, head, question)
    except Exception as error:  # it belongs to one client, who gets it
        return error


def _answered(
    model: Model, published: ModelView, head: HeadName, question: Question, rows: HeadRows
) -> QuestionAnswer:
    """Return the answer about rows. Raises Untrained, Invalid."""
    predictions = model.chain.predict(published, head, rows)
    more = published.more(head, question, rows, predictions)
    return QuestionAnswer(predictions.prediction, predictions.decision, more)


def _check_taught(model: Model, published: ModelView, head: HeadName) -> None:
    """Raise Untrained if a head has learned too little to predict."""
    if lacks := published.heads[head].lacks:
        champion = model.champion
        how = (
            how_to_teach(model.name, model.spec, head)
            if champion is None
            else f"it learns what is sent to {champion.name!r}, which it follows"
        )
        raise Untrained(f"the head {head} of model {model.name!r} {lacks}; {how}")
