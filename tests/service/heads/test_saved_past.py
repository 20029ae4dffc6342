"""Saved labels before a row of which a part is not one that a bank has are refused."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.service.forging import state_of
from wolfstream.service.heads.saved_arrays import WrongArrays
from wolfstream.service.heads.saved_bank import calibration_of_past, check_past
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.saved_state import check_numbers, check_state
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec
from wolfstream.service.storage.snapshot_format import State
from wolfstream.solver.adaptive.label_past import MOST_CLASSES, LabelPast

Arrays = dict[str, NDArray[Any]]


@cache
def saved(name: str) -> tuple[Arrays, int | None]:
    plain, arrays = state_of(name)
    head, prefix = plain["heads"]["adaptive"], "adaptive.past_"
    own = {key.removeprefix("adaptive."): a for key, a in arrays.items() if key.startswith(prefix)}
    return own, len(head["classes"]) if "classes" in head else None


def with_number(arrays: Arrays, name: str, place: Any, number: Any) -> Arrays:
    other = arrays[f"past_{name}"].copy()
    other[place] = number
    return {**arrays, f"past_{name}": other}


STREAMS = ["default", "numbers", "sparse", "temporal", "temporal numbers"]


@pytest.mark.parametrize("stream", STREAMS)
def test_what_was_saved_is_accepted(stream: str) -> None:
    arrays, classes = saved(stream)
    check_past(arrays, classes)
    assert len(calibration_of_past(arrays)) > 5
    restored = LabelPast(regression=classes is None, always=False)
    restored.restore(arrays)
    for name, array in restored.state().items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)


@pytest.mark.parametrize(
    ("stream", "name", "place", "number"),
    [
        ("default", "last", 0, 3),
        ("default", "last", 0, -2),
        ("default", "stay", 0, 1e9),
        ("default", "stay", 0, -1.0),
        ("default", "stay", 1, np.nan),
        ("default", "classes", 0, 2),
        ("default", "total", 0, -1),
        ("default", "losses_next", 0, 1001),
        ("numbers", "classes", 0, 1),
        ("numbers", "seen", 0, -1),
        ("numbers", "losses_next", 0, -1),
    ],
)
def test_a_number_that_cannot_be_is_refused(
    stream: str, name: str, place: Any, number: Any
) -> None:
    arrays, classes = saved(stream)
    with pytest.raises(WrongArrays):
        check_past(with_number(arrays, name, place, number), classes)


@pytest.mark.parametrize(
    ("stream", "name", "place", "number"),
    [
        ("default", "table", (0, 0), -1.0),
        ("default", "share", (0, 0), np.inf),
        ("default", "combination_weight", 0, -0.1),
        ("default", "combination_beta", 0, np.nan),
        ("numbers", "scale", 0, -1.0),
        ("numbers", "lags", 0, np.inf),
        ("numbers", "P", (0, 0, 0), np.nan),
        ("numbers", "mixture_weight", 0, 2.0),
    ],
)
def test_a_number_out_of_its_range_is_refused(
    stream: str, name: str, place: Any, number: Any
) -> None:
    arrays, _ = saved(stream)
    changed = with_number(arrays, name, place, number)
    check_numbers(["adaptive"], {f"adaptive.{key}": a for key, a in arrays.items()})
    with pytest.raises(WrongArrays):
        check_numbers(["adaptive"], {f"adaptive.{key}": a for key, a in changed.items()})


@pytest.mark.parametrize("stream", ["default", "numbers"])
def test_each_array_is_needed_as_it_is(stream: str) -> None:
    arrays, classes = saved(stream)
    own = [name for name in arrays if "calibration" not in name]
    for name in own:
        for other in (None, arrays[name].astype("f4"), arrays[name][..., None]):
            changed = {key: a for key, a in arrays.items() if key != name}
            if other is not None:
                changed[name] = other
            with pytest.raises(WrongArrays):
                check_past(changed, classes)
    with pytest.raises(WrongArrays):
        check_past({**arrays, "past_other": np.zeros(1)}, classes)


def test_a_bank_whose_spec_uses_labels_before_is_refused_without_them() -> None:
    plain, arrays = state_of("default")
    without = {name: a for name, a in arrays.items() if not name.startswith("adaptive.past_")}
    with pytest.raises(WrongArrays, match="past_classes is missing"):
        restored_from(plain, without)


def test_classes_beyond_those_that_labels_before_are_kept_of() -> None:
    """More of them may come after there are too many, and the state is still one of a bank."""
    learner = Learner(Model(1, "m", read_spec({"working_set": None, "asset": None})))
    random = np.random.default_rng(0)
    for classes in (MOST_CLASSES - 1, MOST_CLASSES + 1, MOST_CLASSES + 9):
        y: Any = [f"class {k}" for k in range(classes)]
        learner.absorb("adaptive", Samples(random.normal(size=(classes, 3)), y))
    state = State(*learner.state())
    other = restored_from(*state)
    rows = random.normal(size=(5, 3))
    for one in (learner, other):
        one.publish()
    said = [
        one.model.published.predict("adaptive", one.model.published.head_rows(rows))
        for one in (learner, other)
    ]
    np.testing.assert_array_equal(said[0].decision, said[1].decision)


def restored_from(plain: Any, arrays: Arrays) -> Learner:
    """A new learner that has taken a state, which is checked as that of a file is."""
    spec = (
        read_spec(plain["spec"])
        if "spec" in plain
        else read_spec({"working_set": None, "asset": None})
    )
    learner = Learner(Model(1, "m", spec))
    check_state(learner, plain, arrays)
    learner.restore(plain, arrays)
    return learner
