"""A model of a stream in process: what its state keeps."""

from solver.prepare.row_form import Preparing
from solver.stream.model import StreamModel


def test_a_state_of_before_goes_on_counting_pairs():
    model = StreamModel(
        "classification", "working_set", preparing=Preparing(), temporal=False, seed=0
    )
    assert model.own.scores == "coupled"
    state = model.__getstate__()
    del state["scores"]
    model.__setstate__(state)
    assert model.own.scores == "counted"
