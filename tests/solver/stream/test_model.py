"""A model of a stream in process: what its state keeps."""

from solver.prepare.row_form import Preparing
from solver.stream.model import StreamModel


def test_a_state_of_before_goes_on_counting_pairs_and_clipping_outliers():
    model = StreamModel(
        "classification", "working_set", preparing=Preparing(), temporal=False, seed=0
    )
    assert (model.own.scores, model.preparing.outliers) == ("coupled", "compressed")
    state = model.__getstate__()
    del state["scores"], state["outliers"]
    model.__setstate__(state)
    assert (model.own.scores, model.preparing.outliers) == ("counted", "clipped")
    assert model.rows.form.prepare.outliers == "clipped"
