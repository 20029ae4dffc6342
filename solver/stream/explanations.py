"""Explains predictions by members of a working set, gradients, and the texts of a row."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.crossed_values import CrossedValue, crossed_values, without_each
from wolfstream.solver.prepare.influence import Influence, influences
from wolfstream.solver.prepare.named_rows import Rows
from wolfstream.solver.rows.head_rows import HeadRows
from wolfstream.solver.rows.matrix import Matrix, SparseRows, n_rows, take_rows
from wolfstream.solver.stream.reasons import DifferentiableHead, MemberPulls, gradient_of
from wolfstream.solver.stream.rows import RowsView
from wolfstream.solver.stream.votes import HeadAnswer, HeadInputs, Vote

# Least probability of a class where logarithms are taken.
_LEAST = 1e-300


class Contest(NamedTuple):
    """The predicted class against the likeliest other one."""

    wanted: int  # class code of the prediction
    other: int  # class code of the likeliest other class
    log_odds: float | None  # log(p_wanted / p_other); None if no probability is known
    slope: float  # derivative of log_odds in the difference of the scores; 1 without log_odds


class CalibratedOdds(NamedTuple):
    """Probabilities of classes, and how they depend on scores."""

    probability: Float64Array  # (n, K)
    slope: float  # derivative of log(p_j / p_k) in the difference of the two scores


class ExplainableHead(DifferentiableHead, Protocol):
    """A view of a head that can explain its answers."""

    def contests(self, head_answer: HeadAnswer, /) -> Sequence[Contest] | None:
        """Return the contest of each row of an answer; None of a head of numbers."""

    def pulls(self, x: Matrix, wanted: int, other: int, /) -> MemberPulls | None:
        """Return how members pull row x (1, d) to class `wanted` against `other`.

        None of a head without members.
        """


class Ablation(NamedTuple):
    """What a bank predicts for the row without one of its values, a text or a code."""

    feature: str | int  # the column's name; its index in rows without names
    value: str | float
    without: float  # log-odds of the same two classes; in regression the prediction


class Explanation(NamedTuple):
    """The explanation of the prediction for one row."""

    contest: Contest | None  # None in regression
    # Of the log-odds, or if they are not known of the difference of scores; in regression of the
    # prediction.
    gradient: list[Influence]
    members: MemberPulls | None  # None of a head without members
    # Of the texts and codes of the row that the bank crosses, the most important first; None if it
    # crosses none or no bank predicts.
    values: list[Ablation] | None


def explanations(
    head: str,
    heads: Mapping[Any, ExplainableHead],
    view: RowsView,
    rows: Rows | SparseRows,
    seen: HeadRows,
    head_answer: HeadAnswer,
    inputs: HeadInputs,
    ask: Callable[[HeadRows], HeadAnswer],
) -> Iterator[Explanation]:
    """Yield the explanation of each row, lazily: pulls of many members are large.

    head: the name of the head that predicts.
    heads: views of all heads that can predict.
    view: of the form of rows.
    rows: n rows as they were sent.
    seen: the same rows as heads see them.
    head_answer: the head's answer to them.
    inputs: what the head got with them.
    ask: returns the head's answer to other rows.
    """
    explained, X = heads[head], seen.X
    contests = explained.contests(head_answer)
    encoded = None if isinstance(X, SparseRows) else _encoded(view, rows, X)
    present = _crossed(view, rows, seen, encoded, head_answer)
    for i in range(n_rows(X)):
        contest = None if contests is None else contests[i]
        row = take_rows(X, slice(i, i + 1))
        members = None if contest is None else explained.pulls(row, contest.wanted, contest.other)
        x = _dense(row)
        total = gradient_of(
            head, heads, x, _direction(contest, head_answer), _inputs_with(inputs, i)
        )
        if encoded is None:
            gradient = _sparse_influences(view, x, total)
        else:
            gradient = influences(view.form, view.preparation, encoded[i], total)
        values = None
        if present is not None and encoded is not None:
            whole = float(_answered(head_answer, contest)[i])
            words = None
            if view.form.wordy and seen.codes is not None:
                words = seen.codes[i, len(view.form.crossed_columns) :]
            asked = words, present[i], contest, whole
            values = _ablations(view, encoded[i], *asked, ask, in_turn=seen.in_turn)
        yield Explanation(contest, gradient, members, values)


def contests_of(
    scores: Float64Array, predicted: NDArray[np.int64], known: CalibratedOdds | None
) -> list[Contest]:
    """Return the contest of each row.

    scores: (n, K).
    predicted: (n,) class codes.
    known: the probabilities; None if they are not known.
    """
    ranked = scores if known is None else known.probability
    contests = []
    for i, wanted in enumerate(predicted.tolist()):
        others = np.where(np.isnan(ranked[i]), -np.inf, ranked[i])
        others[wanted] = -np.inf
        other, odds = int(np.argmax(others)), None
        if known is not None:
            p = np.maximum(known.probability[i], _LEAST)
            odds = float(np.log(p[wanted]) - np.log(p[other]))
        contests.append(Contest(wanted, other, odds, 1.0 if known is None else known.slope))
    return contests


def _crossed(
    view: RowsView,
    rows: Rows | SparseRows,
    seen: HeadRows,
    encoded: Float64Array | None,
    head_answer: HeadAnswer,
) -> list[list[CrossedValue]] | None:
    """Return the crossed values of each row; None if no value is crossed or no bank predicts."""
    is_bank = head_answer.probability is not None or head_answer.deviation is not None
    if not is_bank or seen.codes is None or encoded is None or isinstance(rows, SparseRows):
        return None
    return crossed_values(view.form, rows, encoded)


def _ablations(
    view: RowsView,
    row: Float64Array,
    words: Float64Array | None,
    values: list[CrossedValue],
    contest: Contest | None,
    whole: float,
    ask: Callable[[HeadRows], HeadAnswer],
    *,
    in_turn: bool,
) -> list[Ablation]:
    """Return the ablation of each value of an encoded row, the most important first.

    words: codes of the row's words; None if words are not learned.
    whole: log-odds or prediction for the complete row.
    """
    if not values:
        return []
    others = view.prepared(*without_each(row, words, values))._replace(in_turn=in_turn)
    answers = _answered(ask(others), contest).tolist()
    ablations = [
        Ablation(value.feature, value.value, answer)
        for value, answer in zip(values, answers, strict=True)
    ]
    return sorted(ablations, key=lambda ablation: -abs(whole - ablation.without))


def _answered(head_answer: HeadAnswer, contest: Contest | None) -> Float64Array:
    """Return a bank's log-odds (n,) of the two classes of a contest, or its values (n,)."""
    if contest is None or head_answer.probability is None:
        return head_answer.prediction
    logs = np.log(np.maximum(head_answer.probability, _LEAST))
    return np.asarray(logs[:, contest.wanted] - logs[:, contest.other])


def _direction(contest: Contest | None, head_answer: HeadAnswer) -> Float64Array:
    """Return the derivative of what is explained in the head's scores."""
    if contest is None:
        return np.ones(1)
    assert head_answer.classes is not None
    direction = np.zeros(len(head_answer.classes))
    direction[contest.wanted], direction[contest.other] = contest.slope, -contest.slope
    return direction


def _inputs_with(inputs: HeadInputs, i: int) -> HeadInputs:
    """Return the head's inputs for row i alone."""
    row = slice(i, i + 1)
    votes = {name: Vote(vote.classes, vote.scores[row]) for name, vote in inputs.votes.items()}
    codes = None if inputs.codes is None else inputs.codes[row]
    raw = None if inputs.raw is None else inputs.raw.part(row)
    return HeadInputs(votes, codes, raw, inputs.in_turn)


def _encoded(view: RowsView, rows: Rows | SparseRows, X: Float64Array) -> Float64Array:
    assert not isinstance(rows, SparseRows)
    return view.form.encoded(rows) if view.form.begun else X


def _dense(row: Matrix) -> Float64Array:
    """Return the only row of a matrix, (d,)."""
    if not isinstance(row, SparseRows):
        return np.asarray(row[0], np.float64)
    part = slice(int(row.start[0]), int(row.stop[0]))
    x = np.zeros(row.width)
    x[row.indices[part]] = row.values[part]
    return x


def _sparse_influences(view: RowsView, x: Float64Array, gradient: Float64Array) -> list[Influence]:
    """Return the influences of the entries of a sparse row, ordered by |gradient * value|."""
    names = None if view.names is None else view.names.names()
    place = np.flatnonzero((x != 0.0) & (gradient != 0.0))
    order = place[np.argsort(-np.abs(gradient[place] * x[place]), kind="stable")]
    return [
        Influence(j if names is None else names[j], None, float(gradient[j]), None)
        for j in order.tolist()
    ]
