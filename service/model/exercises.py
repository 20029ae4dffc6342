"""Runs of a preparation's code, which compile it before a server needs it."""

from wolfstream.service.heads.exercises import rows_to_learn
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.prepare.named_rows import named_values
from wolfstream.solver.prepare.row_form import PreparationParameters
from wolfstream.solver.stream.rows import StreamRows


def exercise_preparation(spec: ModelSpec, _: bool) -> None:
    """Prepare rows of numbers, as learning and predictions do."""
    learner, X = Learner(Model(0, "exercise", spec)), rows_to_learn()
    learner.rows.form = learner.rows.form.after(X)
    learner.rows.prepared(X)
    learner.publish()
    learner.model.published.rows.prepared(X)


def exercise_tables(_: ModelSpec, __: bool) -> None:
    """Prepare a row of named values, one of them a text."""
    rows, table = StreamRows(PreparationParameters()), named_values([{"number": 1.0, "text": "a"}])
    rows.form = rows.form.after(table)
    rows.note(table)
    rows.head_rows(table)
