"""States of models whose rows have numbers that are codes."""

from typing import Any

import numpy as np
import pytest

from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.model_files import ModelFileError, fill_model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec
from wolfstream.service.storage.snapshot_format import State

SPEC = read_spec({"working_set": None})


def learned(n: int) -> tuple[Learner, State]:
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=n), random.integers(0, 20, (n, 2))])
    y = np.where(X[:, 1] % 3 > X[:, 2] % 2, "a", "b").tolist()
    learner = Learner(Model(1, "m", SPEC))
    learner.absorb("asset", Samples(np.ascontiguousarray(X), y))
    return learner, State(*learner.state())


@pytest.mark.parametrize("n", [60, 300], ids=["while it settles", "later"])
def test_a_restored_model_goes_on_bit_for_bit(n: int) -> None:
    learner, state = learned(n)
    again = fill_model(Model(1, "m", SPEC), state, "it").learner
    assert again.rows.form == learner.rows.form
    more = np.column_stack([np.linspace(0.0, 1.0, 100), *np.arange(200).reshape(2, 100) % 20])
    samples = Samples(np.ascontiguousarray(more), ["a", "b"] * 50)
    said = [one.absorb("asset", samples) for one in (learner, again)]
    np.testing.assert_array_equal(*(one.decision for one in said))
    assert learner.rows.form.coded == again.rows.form.coded == (1, 2)


@pytest.mark.parametrize("coded", [[1], [2, 1], [1, 1, 2], [1, 3], [0.0, 1], "12", None, 7])
def test_other_codes_are_refused(coded: Any) -> None:
    _, state = learned(300)
    with pytest.raises(ModelFileError):
        fill_model(Model(1, "m", SPEC), state._replace(plain={**state.plain, "coded": coded}), "it")
