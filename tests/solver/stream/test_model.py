"""A model of a stream in process: what its state keeps."""

from wolfstream.solver.prepare.row_form import Preparing
from wolfstream.solver.stream.model import StreamModel


def test_a_state_of_before_goes_on_as_it_was():
    model = StreamModel(
        "classification", "working_set", preparing=Preparing(), temporal=False, seed=0
    )
    assert (model.own.scores, model.preparing.outliers) == ("coupled", "compressed")
    assert (model.preparing.units, model.preparing.texts) == ("followed", "crossed")
    assert model.preparing.codes == "crossed"
    state = model.__getstate__()
    for field in ("scores", "outliers", "units", "texts", "codes"):
        del state[field]
    model.__setstate__(state)
    assert (model.own.scores, model.preparing.outliers) == ("counted", "clipped")
    assert model.rows.form.prepare.outliers == "clipped"
    assert model.rows.form.prepare.units == "kept"
    assert model.rows.form.prepare.texts == "slots"
