"""Model files that somebody made: what is wrong in them is found before compiled code reads it."""

import functools
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.service.specs import read_papers_spec
from tests.service.streams import few_words, part, three_classes
from wolfstream.service.heads.kinds import KINDS, fit_window
from wolfstream.service.heads.saved_arrays import WrongArrays
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.saved_state import check_state
from wolfstream.service.recovery.model_files import ModelFileError, fill_model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.storage.snapshot_format import State

X = np.random.default_rng(0).normal(size=(60, 3))
SET = {"working_set": {"max_size": 15}}


def learned(given: dict[str, Any], samples: Samples) -> tuple[ModelSpec, State]:
    spec = read_papers_spec(given)
    learner = Learner(Model(1, "m", spec))
    for head in spec.heads:
        learner.absorb(head, samples)
    if "semiparametric" in spec.heads:
        learner.adopt("semiparametric", fit_window(learner.window(), "", lambda _: None))
    return spec, State(*learner.state())


def weighted(samples: Samples) -> Samples:
    return samples._replace(weight=np.linspace(0.5, 2.0, len(samples.y)))


NUMBERS = Samples(X, X[:, 0].copy())
REGRESSION: dict[str, Any] = {"task": "regression", "working_set": None}
# What they are made of; a model is taught when a test first needs it.
MODELS: dict[str, tuple[dict[str, Any], Samples]] = {
    "dense": ({**SET, "asset": {"dimension": 8}}, three_classes(60)),
    "sparse": (
        {**SET, "kernel": {"type": "linear"}, "asset": {"features": "identity"}},
        few_words(60),
    ),
    "nystrom": ({**SET, "asset": {"features": "nystrom", "dimension": 8}}, few_words(60)),
    "sparse fourier": ({"working_set": None, "asset": {"dimension": 8}}, few_words(60)),
    "fading": ({"working_set": {"max_size": 15, "horizon": "auto"}}, three_classes(60)),
    "searching": (
        {"working_set": {"max_size": 15, "horizon": "auto"}, "asset": None},
        three_classes(1100),
    ),
    "courses": (
        {"working_set": None, "asset": {"dimension": 8, "horizon": "auto"}},
        three_classes(60),
    ),
    "few": ({**SET, "asset": {"dimension": 8}}, three_classes(2)),
    "weighted": (
        {"working_set": {"max_size": 15, "horizon": "auto"}, "asset": {"dimension": 8}},
        weighted(three_classes(60)),
    ),
    "weighted regression": (
        {**REGRESSION, "asset": {"dimension": 8}, "semiparametric": {"tol": 0.1}},
        weighted(NUMBERS),
    ),
    "regression": ({**REGRESSION, "asset": {"dimension": 8}}, NUMBERS),
    "set of numbers": (
        {"task": "regression", "asset": None, "working_set": {"max_size": 15}},
        NUMBERS,
    ),
    "few numbers": (
        {"task": "regression", "asset": None, "working_set": {}},
        weighted(part(NUMBERS, 0, 30)),
    ),
    "novelty": (
        {"working_set": None, "asset": {"dimension": 8}, "novelty": {"max_size": 15}},
        three_classes(60),
    ),
    "semiparametric": ({**REGRESSION, "asset": None, "semiparametric": {"tol": 0.1}}, NUMBERS),
    "polynomial": (
        {**SET, "asset": None, "kernel": {"type": "polynomial", "degree": 8, "gamma": 1.0}},
        three_classes(60),
    ),
}


@functools.cache
def model(name: str) -> tuple[ModelSpec, State]:
    return learned(*MODELS[name])


def check(spec: ModelSpec, plain: dict[str, Any], arrays: dict[str, Any]) -> None:
    check_state(Learner(Model(1, "m", spec)), plain, arrays)


each_model = pytest.mark.parametrize("name", MODELS)


@each_model
def test_what_a_server_saves_is_right(name: str):
    spec, state = model(name)
    fill_model(Model(1, "m", spec), state, "it")


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_empty_model_saves_is_right(kind: str):
    for spec in KINDS[kind].specs():  # type: ignore[index]
        learner = Learner(Model(1, "m", spec))
        fill_model(Model(1, "m", spec), State(*learner.state()), "it")


VARIANTS: list[dict[str, Any]] = [
    {"algorithm": "asset*"},
    {"average": False},
    {"average": True},
    {"average_from": 5},
    {"horizon": 10},
    {"horizon": "auto"},
    {"features": "nystrom"},
]


@pytest.mark.parametrize("make", [three_classes, few_words])
@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("kind", ["working_set", "asset"])
def test_it_is_right_at_every_moment(kind: str, task: str, make: Any):
    """While rows, classes and names come, and samples leave the set."""
    plain = {"kernel": {"type": "rbf"}, "working_set": None, "task": task}
    more = [read_papers_spec({**plain, "asset": {"dimension": 8, **own}}) for own in VARIANTS]
    for spec in [*KINDS[kind].specs(), *(more if kind == "asset" else [])]:  # type: ignore[index]
        if spec.task != task:
            continue
        samples = make(150)
        if task == "regression":
            samples = Samples(samples.X, np.arange(150.0))
        learner = Learner(Model(1, "m", spec))
        for start, stop in pairwise((0, 1, 2, 3, 7, 20, 40, 60, 150)):
            learner.absorb(kind, part(samples, start, stop))  # type: ignore[arg-type]
            fill_model(Model(1, "m", spec), State(*learner.state()), "it")


def wrong_integers(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Each of the first and last places elsewhere."""
    for place in {0, array.size - 1}:
        for value in (-2, -(2**31), 2**30):
            changed = array.copy()
            changed.flat[place] = value
            yield changed


def wrong_shapes(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    yield array[:-1]
    yield np.concatenate([array, array[-1:]])
    yield array[..., None]
    yield array.reshape(-1)[:0].reshape((0,) * array.ndim)


# What is no index and no length: any value of these numbers is as good as another.
FREE = ("steps", "seen", "auto_seen", "first_seen")
# Arrays of which only the first number counts, or that only numpy reads.
LENGTHS = (
    "auto_gamma",
    "auto_seen",
    "first_seen",
    "seen",
    "fit.beta",
    "origin",
    "frequency",
    "moved_table",
)


@each_model
def test_indices_that_point_elsewhere_are_refused(name: str):
    spec, state = model(name)
    for key, array in state.arrays.items():
        if array.dtype.kind != "i" or not array.size or key.partition(".")[2] in FREE:
            continue
        if key.endswith(".counts"):
            continue
        for changed in wrong_integers(array):
            arrays = {**state.arrays, key: changed}
            with pytest.raises(WrongArrays, match=key.partition(".")[2]):
                check(spec, state.plain, arrays)


@pytest.mark.parametrize("name", ["weighted", "weighted regression", "few numbers"])
def test_weights_that_are_none_are_refused(name: str):
    spec, state = model(name)
    keys = [key for key in state.arrays if key.endswith(("inverse_weight", "_weight"))]
    keys = [key for key in keys if "progress" not in key]
    assert keys
    for key in keys:
        for value in (0.0, -1.0, np.nan, np.inf):
            changed = state.arrays[key].copy()
            changed[-1] = value
            with pytest.raises(WrongArrays, match="above zero"):
                check(spec, state.plain, {**state.arrays, key: changed})


@each_model
def test_arrays_of_other_shapes_are_refused(name: str):
    spec, state = model(name)
    for key, array in state.arrays.items():
        if not array.size or key.partition(".")[2] in LENGTHS:
            continue
        for changed in wrong_shapes(array):
            with pytest.raises(WrongArrays):
                check(spec, state.plain, {**state.arrays, key: changed})


@each_model
def test_arrays_of_other_types_are_refused(name: str):
    spec, state = model(name)
    for key, array in state.arrays.items():
        for dtype in ("S8", "c16", "M8[s]"):
            arrays = {**state.arrays, key: np.zeros(array.shape, dtype)}
            with pytest.raises(WrongArrays):
                check(spec, state.plain, arrays)


def test_counts_that_nobody_has_met():
    spec, state = model("dense")
    for key in ("working_set.counts", "asset.counts"):
        changed = state.arrays[key].copy()
        changed[0] += 1
        with pytest.raises(WrongArrays):
            check(spec, state.plain, {**state.arrays, key: changed})


def test_a_weight_that_no_sample_has_is_refused():
    spec, state = model("set of numbers")
    codes = state.arrays["working_set.codes"].copy()
    codes[np.flatnonzero(state.arrays["working_set.beta"])[0]] = -1
    with pytest.raises(WrongArrays, match="beta has a slot that is free"):
        check(spec, state.plain, {**state.arrays, "working_set.codes": codes})


def test_the_file_is_named():
    spec, state = model("dense")
    column = state.arrays["working_set.column"] + 10**6
    arrays = {**state.arrays, "working_set.column": column}
    with pytest.raises(ModelFileError, match=r"rooms.model cannot be used: its array column"):
        fill_model(Model(1, "m", spec), State(state.plain, arrays), "rooms.model")


@pytest.mark.parametrize(
    "plain", [{"dimension": 10**9}, {"dimension": -1}, {"dimension": "3"}, {"sequence": -1}]
)
def test_plain_data_that_does_not_fit(plain: dict[str, Any]):
    spec, state = model("dense")
    with pytest.raises(WrongArrays):
        check(spec, {**state.plain, **plain}, state.arrays)


@pytest.mark.parametrize("large", [1e7, 1e60, np.inf, np.nan])
def test_rows_that_could_not_have_been_learned_are_refused(large: float):
    """A kernel of degree 8 would make 1e112 of the first, and publish it."""
    spec, state = model("polynomial")
    rows = state.arrays["working_set.rows"].copy()
    fill_model(Model(1, "m", spec), state, "it")
    rows[1] = large
    with pytest.raises(ModelFileError, match="rows has rows too large for the kernel"):
        fill_model(
            Model(1, "m", spec),
            state._replace(arrays={**state.arrays, "working_set.rows": rows}),
            "it",
        )


def dense(state: State, name: str) -> dict[str, NDArray[Any]]:
    """The arrays of a state with sparse rows of a name as dense ones."""
    arrays = dict(state.arrays)
    parts = ("indptr", "indices", "data", "width")
    ends, columns, values, _ = (arrays.pop(f"{name}_{field}") for field in parts)
    arrays[name] = np.zeros((len(ends) - 1, state.plain["dimension"]))
    row = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    arrays[name][row, columns[: ends[-1]]] = values[: ends[-1]]
    return arrays


@pytest.mark.parametrize(
    ("name", "array", "other"),
    [
        ("dense", "origin", lambda _: np.zeros(0)),
        ("sparse fourier", "origin", np.zeros),
        ("sparse", "width", lambda dimension: np.array([dimension, 0])),
    ],
)
def test_features_of_another_kind_of_rows_are_refused(
    name: str, array: str, other: Callable[[int], NDArray[Any]]
):
    """No row that the model takes would have features."""
    spec, state = model(name)
    arrays = dict(state.arrays)
    key = f"asset.{array}"
    arrays[key] = other(int(state.plain["dimension"]))
    with pytest.raises(ModelFileError, match=f"{array} is of another kind"):
        fill_model(Model(1, "m", spec), State(state.plain, arrays), "it")


def test_features_of_more_columns_than_the_rows_have_are_refused():
    spec, state = model("dense")
    twice = np.concatenate([state.arrays["asset.frequency"]] * 2)
    with pytest.raises(ModelFileError, match="frequency"):
        fill_model(
            Model(1, "m", spec),
            State(state.plain, {**state.arrays, "asset.frequency": twice}),
            "it",
        )


@pytest.mark.parametrize(
    ("array", "value"),
    [
        ("direction", np.nan),
        ("b_sum", np.nan),
        ("progress_steps", np.inf),
        ("progress_steps", -1.0),
    ],
)
def test_iterates_that_cannot_go_on_are_refused(array: str, value: float):
    """Their next sample would break the model."""
    spec, state = model("courses")
    for key in (f"asset.{array}", f"asset.course1_{array}"):
        changed = state.arrays[key].copy()
        changed.flat[-1] = value
        with pytest.raises(ModelFileError, match=array):
            fill_model(
                Model(1, "m", spec), State(state.plain, {**state.arrays, key: changed}), "it"
            )


def test_landmarks_of_another_kind_of_rows_are_refused():
    spec, state = model("nystrom")
    with pytest.raises(ModelFileError, match="landmarks"):
        fill_model(Model(1, "m", spec), State(state.plain, dense(state, "asset.landmarks")), "it")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["dense", "regression"])
def test_calibrations_with_numbers_that_are_not_finite_are_refused(name: str, value: float):
    """Their next samples would break the model."""
    spec, state = model(name)
    prefix = "asset.calibration_"
    arrays = [key for key, a in state.arrays.items() if key.startswith(prefix) and a.size]
    floats = [key for key in arrays if state.arrays[key].dtype == np.float64]
    assert f"{prefix}recent" in floats
    for key in floats:
        if key.endswith("widths") and value == np.inf:
            continue  # a sum of wide intervals
        changed = {**state.arrays, key: state.arrays[key].copy()}
        changed[key].flat[-1] = value
        with pytest.raises(ModelFileError, match=key.removeprefix("asset.")):
            fill_model(Model(1, "m", spec), State(state.plain, changed), "it")


@pytest.mark.parametrize(
    ("name", "array", "value"),
    [
        ("dense", "recent", -0.5),
        ("dense", "bins", -1.0),
        ("dense", "scores", -np.inf),
        ("regression", "recent", -0.5),
        ("regression", "waiting", -0.5),
    ],
)
def test_calibrations_of_impossible_numbers_are_refused(name: str, array: str, value: float):
    spec, state = model(name)
    key = f"asset.calibration_{array}"
    changed = {**state.arrays, key: np.full_like(state.arrays[key], value)}
    assert changed[key].size
    with pytest.raises(ModelFileError, match=array):
        fill_model(Model(1, "m", spec), State(state.plain, changed), "it")
