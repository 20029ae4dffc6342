"""Saved labels before a row of which a part is not one that a bank has are refused."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.service.forging import state_of
from wolfstream.service.engine.saved_numbers import check_numbers_in
from wolfstream.service.heads.array_checks import WrongArrays
from wolfstream.service.heads.saved_past import calibration_of_past, check_past
from wolfstream.solver.stream.label_past import LabelPast

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
    check_numbers_in({f"adaptive.{key}": a for key, a in arrays.items()}, {"adaptive": None})
    with pytest.raises(WrongArrays):
        check_numbers_in({f"adaptive.{key}": a for key, a in changed.items()}, {"adaptive": None})


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
