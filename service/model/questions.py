"""Answers to questions about rows, by the view of a model that is published."""

from collections.abc import Sequence

import numpy as np

from wolfstream.service.errors import InvalidSamples, Untrained
from wolfstream.service.heads.kinds import BESIDE, how_to_teach
from wolfstream.service.heads.past import past_of
from wolfstream.service.model.columns import notices_of_rows, plain_notices
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView
from wolfstream.service.model.single_rows import Answered
from wolfstream.service.samples.validation import Question
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.rows.seen import Seen


def answer(model: Model, published: ModelView, head: HeadName, question: Question) -> Answered:
    """Return predictions, and the other fields that were asked for. Any thread may call it.

    Raises InvalidSamples, Invalid, Untrained.
    """
    view, rows = published.heads[head], question.rows
    checked = published.checked(rows)
    seen = published.rows.seen(checked)
    _check_taught(model, published, head)
    answered = _answered(model, published, head, question, model.order.marked(past_of(view), seen))
    if notices := notices_of_rows(published.rows.form, rows, checked):
        answered.more["warnings"] = plain_notices(notices)
    return answered


def is_simple(model: Model, published: ModelView, head: HeadName, question: Question) -> bool:
    """Return whether `answer_each` takes a question.

    That is one about a dense row, without reasons or costs, to a head that predicts each row for
    itself.
    """
    rows = question.rows
    return (
        isinstance(rows, np.ndarray)
        and len(rows) == 1
        and not question.explain
        and question.costs is None
        and not published.rows.form.sparse
        and BESIDE.isdisjoint(published.heads)
        and model.chain.is_rowwise(published, head)
    )


def answer_each(
    model: Model, published: ModelView, head: HeadName, questions: Sequence[Question]
) -> Sequence[Answered | Exception]:
    """Return what `answer` returns for each of several questions, or raises, in one call.

    It raises an error itself that is no question's own.

    questions: `is_simple` holds for each; their rows have equal lengths, and they ask for the same.
    """
    seen = None if len(questions) == 1 else _seen_by_all(model, published, head, questions)
    if seen is None:
        return [_answer_or_error(model, published, head, question) for question in questions]
    return _answered_each(model, published, head, questions[0], seen)


def _seen_by_all(
    model: Model, published: ModelView, head: HeadName, questions: Sequence[Question]
) -> Seen | None:
    """Return the rows of all questions as the heads see them; None if any of them is refused."""
    try:
        seen = published.seen(np.concatenate([question.rows for question in questions]))
        _check_taught(model, published, head)
    except (InvalidSamples, Untrained):
        return None
    return seen


def _answered_each(
    model: Model, published: ModelView, head: HeadName, question: Question, seen: Seen
) -> list[Answered]:
    """Return the answers to a question about each row by itself, as the heads see it."""
    n = len(seen.X)
    in_turn = model.order.marked_singly(past_of(published.heads[head]), seen)
    if any(in_turn):
        rows = [seen.row(i, in_turn=in_turn[i]) for i in range(n)]
        return [_answered(model, published, head, question, row) for row in rows]
    answers, decisions, more = _answered(model, published, head, question, seen)
    return [
        Answered(
            answers[i : i + 1],
            decisions[i : i + 1],
            {name: column[i : i + 1] for name, column in more.items()},
        )
        for i in range(n)
    ]


def _answer_or_error(
    model: Model, published: ModelView, head: HeadName, question: Question
) -> Answered | Exception:
    try:
        return answer(model, published, head, question)
    except Exception as error:  # it belongs to one client, who gets it
        return error


def _answered(
    model: Model, published: ModelView, head: HeadName, question: Question, seen: Seen
) -> Answered:
    """Return the answer about rows as the heads see them. Raises Untrained, Invalid."""
    predictions = model.chain.predict(published, head, seen)
    more = published.more(head, question, seen, predictions)
    return Answered(predictions.prediction, predictions.decision, more)


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
