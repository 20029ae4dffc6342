"""The view of a model, which predictions and descriptions read."""

from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from wolfstream.service.errors import InvalidSamples
from wolfstream.service.heads.kinds import BESIDE, KINDS, LISTENERS
from wolfstream.service.heads.protocol import HeadView, Predictions
from wolfstream.service.model.saved_rows import not_fitting
from wolfstream.service.samples.validation import Question
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.prepare.named_rows import Rows
from wolfstream.solver.prepare.row_form import AnotherKind
from wolfstream.solver.prepare.schema import Misfit
from wolfstream.solver.prepare.table_rows import TableRows
from wolfstream.solver.rows.head_rows import HeadRows
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.stream.explanations import Explanation, explanations
from wolfstream.solver.stream.rows import RowsView
from wolfstream.solver.stream.turns import inputs_of
from wolfstream.solver.stream.votes import HeadInputs


def explained(view: HeadView, explanation: Explanation, most: int) -> dict[str, Any]:
    """Return one row's explanation, with at most `most` features and members for and against."""
    result: dict[str, Any] = {
        "gradient": [_plain(influence) for influence in explanation.gradient[:most]]
    }
    if explanation.values is not None:
        result["values"] = [influence._asdict() for influence in explanation.values[:most]]
    contest, classes = explanation.contest, view.classes
    if contest is None or classes is None:
        return result
    result = {
        "for": classes[contest.wanted],
        "against": classes[contest.other],
        "log_odds": contest.log_odds,
        **result,
    }
    if explanation.members is not None:
        result["members"] = explanation.members.strongest(classes, most)
    return result


def _plain(influence: Any) -> dict[str, Any]:
    fields = {"feature": influence.feature, "gradient": influence.gradient}
    if influence.category is not None:
        fields["category"] = influence.category
    if influence.deviation is not None:
        fields["deviation"] = influence.deviation
    return fields


class ModelView(NamedTuple):
    """A view of a model: replaced as a whole after each block, never changed.

    Attributes:
        sequence: of the last sample that it has learned.
        epoch: in which the sequence counts.
        rows: the form and the preparation of the model's rows.
        heads: a view of each head.
    """

    sequence: int
    epoch: str
    rows: RowsView
    heads: dict[HeadName, HeadView]

    @property
    def n_bytes(self) -> int:
        """The approximate memory of the heads."""
        return sum(int(view.gauges.get("head_memory_bytes") or 0) for view in self.heads.values())

    def predict(self, head: HeadName, rows: HeadRows) -> Predictions:
        """Return a head's predictions for rows; a head that listens gets the others' as votes.

        Heads that predict nothing, such as novelty, add their columns.

        Raises Untrained, InvalidSamples.
        """
        return self.with_beside(self.heads[head].predict(rows.X, self._inputs(head, rows)), rows)

    def with_beside(self, predictions: Predictions, rows: HeadRows) -> Predictions:
        """Return predictions with the columns of heads that predict nothing."""
        if BESIDE.isdisjoint(self.heads):
            return predictions
        columns = {
            str(name): beside(view, rows.X)
            for name, view in self.heads.items()
            if (beside := KINDS[name].beside) is not None
        }
        return replace(predictions, beside=columns)

    def more(
        self, head: HeadName, question: Question, rows: HeadRows, predictions: Predictions
    ) -> dict[str, Any]:
        """Return the fields of a response besides predictions, such as those that were asked for.

        Args:
            head: that predicted.
            question: of the request.
            rows: of the request, for heads.
            predictions: of the head.

        Raises Untrained, Invalid.
        """
        view, head_answer = self.heads[head], predictions.head_answer
        fields: dict[str, Any] = {**predictions.beside}
        if question.probability:
            fields |= view.probabilities(head_answer)
        if question.confidence is not None:
            fields |= view.covering(head_answer, question.confidence)
        if question.costs is not None:
            fields |= view.cheapest(head_answer, question.costs)
        if question.explain:
            fields["explanation"] = self._explained(head, question, rows, predictions)
        return fields

    def _explained(
        self, head: HeadName, question: Question, rows: HeadRows, predictions: Predictions
    ) -> list[dict[str, Any]]:
        inputs, view = self._inputs(head, rows), self.heads[head]
        explained_rows = explanations(
            head,
            self.heads,
            self.rows,
            question.rows,
            rows,
            predictions.head_answer,
            inputs,
            lambda other: view.predict(other.X, self._inputs(head, other)).head_answer,
        )
        return [explained(view, explanation, question.explain) for explanation in explained_rows]

    def _inputs(self, head: HeadName, rows: HeadRows) -> HeadInputs:
        """Return the other heads' votes on rows, and the rows' texts, if this head listens."""

        def ask(name: HeadName) -> Predictions | None:
            return prediction_of(self.heads[name], rows.X)

        return inputs_of(head, self.heads, LISTENERS, ask, rows)

    def cost(self, head: HeadName, rows: int, entries: int) -> int:
        """Return the number of multiplications of a prediction; see `HeadView.cost`."""
        if not KINDS[head].listens and BESIDE.isdisjoint(self.heads):
            return self.heads[head].cost(rows, entries)
        heads = self.heads if KINDS[head].listens else {head, *(BESIDE & self.heads.keys())}
        return sum(self.heads[name].cost(rows, entries) for name in heads)

    def checked(self, rows: Rows) -> Rows | TableRows:
        """Return rows to predict, as `TableRows` if the model's rows are a table.

        Raises InvalidSamples.
        """
        try:
            return self.rows.form.checked(rows)
        except (Misfit, AnotherKind) as error:
            raise not_fitting(rows, error) from None

    def head_rows(self, rows: Rows) -> HeadRows:
        """Return rows to predict, for heads. Raises InvalidSamples."""
        return self.rows.head_rows(self.checked(rows))


def prediction_of(view: HeadView, X: Matrix) -> Predictions | None:
    """Return a head's predictions; None if it has learned too little, or cannot take the rows."""
    if not view.lacks:
        with suppress(InvalidSamples):
            return view.predict(X)
    return None
