"""States that anybody made: each is refused, or it is a model that answers and learns."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.service.forging import streams
from tests.service.streams import curve, few_words, three_classes
from wolfstream.service.errors import UnusableState
from wolfstream.service.model.draft import Limits
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.model_files import ModelFileError, fill_model
from wolfstream.service.recovery.uploads import in_same_state, read_uploaded, usable
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.spec.model import ModelSpec, read_spec
from wolfstream.service.storage.snapshot_format import State, encode_state
from wolfstream.solver.prepare.named_rows import named_rows, named_values, rows_between

LIMITS = Limits(classes=20, features=200)
MOST_PLAIN = 1 << 20


def learned(
    given: dict[str, Any], samples: Samples, head: HeadName, *, followed: bool = False
) -> tuple[ModelSpec, State]:
    spec = read_spec(given)
    learner = Learner(Model(1, "m", spec))
    if followed:
        learner.record_losses()
    for start, stop in ((0, 70), (70, len(samples.y))):
        rows = rows_between(samples.X, start, stop)
        learner.absorb(head, Samples(rows, samples.y[start:stop]))
    return spec, State(*learner.state())


def rooms(n: int) -> Samples:
    """Rows of a table whose columns are not settled yet."""
    words = ("north", "south")
    rows = [{"degrees": float(i % 7), "side": words[i % 2]} for i in range(n)]
    return Samples(named_values(rows), ["warm" if i % 3 else "cold" for i in range(n)])


MODELS: dict[str, tuple[ModelSpec, State]] = {
    "default": learned({}, three_classes(150), "working_set"),
    "temporal": learned({"temporal": True, "asset": None}, three_classes(150), "working_set"),
    "sparse": learned({"working_set": None}, few_words(150), "asset"),
    "numbers": learned({"task": "regression"}, curve(150), "asset"),
    "a set of numbers": learned(
        {"task": "regression", "working_set": {}, "asset": None, "novelty": {}},
        curve(150),
        "working_set",
    ),
    "a table's first rows": learned({}, rooms(100), "working_set"),
}
each_model = pytest.mark.parametrize("name", MODELS)


def made(state: State) -> Learner:
    """The model of an uploaded state, which has predicted and learned. Raises UnusableState."""
    content = b"".join(encode_state(state))
    read, spec = read_uploaded(content, LIMITS, MOST_PLAIN)
    return usable("m", read, spec, LIMITS).learner


def test_text_that_no_response_can_have_is_refused():
    """Half of a surrogate pair, which JSON can name and no encoder takes."""
    _, state = MODELS["a table's first rows"]
    for late in ("\ud800", ["a\udfff"]):
        schema = {**state.plain["schema"], "late": late}
        with pytest.raises(UnusableState, match="text that is not valid Unicode"):
            made(state._replace(plain={**state.plain, "schema": schema}))


@pytest.mark.parametrize("name", ["rest", "before", "direction", "b_sum"])
def test_sums_whose_squares_are_no_numbers_are_refused(name: str):
    """Such a model broke at a later sample, when its decisions were no numbers."""
    _, state = MODELS["sparse"]
    array = state.arrays[f"asset.course1_{name}"].copy()
    array.flat[-1] = -1e308
    with pytest.raises(UnusableState, match="numbers that no learner holds"):
        made(state._replace(arrays={**state.arrays, f"asset.course1_{name}": array}))


def test_predictions_whose_errors_have_no_squares_are_refused():
    """They wait to be judged: the answer to later samples had no number for a width."""
    _, state = MODELS["numbers"]
    array = state.arrays["asset.calibration_waiting"].copy()
    array.flat[0] = 1e200
    with pytest.raises(UnusableState, match="numbers that no learner holds"):
        made(state._replace(arrays={**state.arrays, "asset.calibration_waiting": array}))


@each_model
def test_what_a_server_sends_is_taken(name: str):
    spec, state = MODELS[name]
    learner, again = made(state), Learner(Model(1, "m", spec))
    again.restore(*state)
    assert in_same_state(learner, again)
    assert learner.sequence == state.plain["sequence"]


@pytest.mark.parametrize("kind", ["horizons", "steps", "neighbours", "naive_bayes"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_bank_without_learners_of_a_kind_is_taken(kind: str, task: str):
    """The check of a bank for regression without neighbours read an array that it does not have."""
    samples = curve(150) if task == "regression" else three_classes(150)
    fields = {"task": task, "asset": None, "working_set": {}, "adaptive": {kind: []}}
    spec, state = learned(fields, samples, "working_set")
    learner, again = made(state), Learner(Model(1, "m", spec))
    again.restore(*state)
    assert in_same_state(learner, again)


def test_the_state_of_a_followed_model_is_taken_without_its_losses():
    _, state = learned({"asset": None}, three_classes(150), "working_set", followed=True)
    assert np.isnan(state.arrays["losses"]).any()  # of samples that it could not predict
    assert made(state).losses is None


def test_models_of_other_bits_differ_in_state():
    spec, state = MODELS["default"]
    arrays = dict(state.arrays)
    arrays["prepare_mean"] = np.nextafter(arrays["prepare_mean"], 9.0)
    one, other = (
        fill_model(Model(1, "m", spec), s, "it").learner
        for s in (state, State(state.plain, arrays))
    )
    assert not in_same_state(one, other)
    other = fill_model(Model(1, "m", spec), state, "it").learner
    assert in_same_state(one, other)
    other.epoch = "another"
    assert in_same_state(one, other)
    other.sequence += 1
    assert not in_same_state(one, other)


def leaves(plain: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all values, of long lists to the first one."""
    if path:
        yield path
    items = list(enumerate(plain))[:1] if isinstance(plain, list) else []
    for key, value in plain.items() if isinstance(plain, dict) else items:
        yield from leaves(value, (*path, key))


def changed(plain: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = plain.copy()
    copy[path[0]] = changed(plain[path[0]], path[1:], value)
    return copy


STRANGE = [None, -1, 10**40, "x", [], {}, [[]], True, 1e308, "\ud800"]


def is_refused_or_taken(state: State, path: tuple[Any, ...], value: Any) -> None:
    """Nothing but `UnusableState` is raised where a value is strange."""
    with contextlib.suppress(UnusableState):
        made(State(changed(state.plain, path, value), state.arrays))


@each_model
def test_a_value_of_the_plain_part_may_be_strange(name: str):
    _, state = MODELS[name]
    paths = sorted(leaves(state.plain), key=repr)[::7]
    for i, path in enumerate(paths):
        is_refused_or_taken(state, path, STRANGE[i % len(STRANGE)])


@pytest.mark.hard
@pytest.mark.sweep
@pytest.mark.timeout(1800)  # thousands of files, each of which is used once if it is taken
@each_model
def test_any_value_of_the_plain_part_may_be_strange(name: str):
    _, state = MODELS[name]
    for path in leaves(state.plain):
        for value in STRANGE:
            is_refused_or_taken(state, path, value)


# A count that first use alone does not bring to the largest that a file may have.
NEARLY_TOO_MANY, LEFT = 2**53 - 150, 160


def learns_and_is_taken_again(state: State, samples: Samples, head: HeadName) -> bool:
    """Whether a state is taken; then it has learned some more and was taken once again."""
    try:
        learner = made(state)
    except UnusableState:
        return False
    rows = rows_between(samples.X, 0, 80)
    for _ in range(LEFT // 80):
        learner.absorb(head, Samples(rows, samples.y[:80]))
    made(State(*learner.state()))
    return True


@pytest.mark.parametrize(
    ("name", "samples", "head"),
    [
        ("default", three_classes(150), "working_set"),
        ("numbers", curve(150), "asset"),
        ("a set of numbers", curve(150), "working_set"),
    ],
)
def test_model_of_huge_counts_can_be_reuploaded(
    name: str, samples: Samples, head: HeadName
) -> None:
    _, state = MODELS[name]
    for path in leaves(state.plain):
        value = state.plain
        for key in path:
            value = value[key]
        if type(value) is int and path[0] != "spec":
            plain = changed(state.plain, path, NEARLY_TOO_MANY)
            try:
                learns_and_is_taken_again(State(plain, state.arrays), samples, head)
            except UnusableState as error:
                raise AssertionError(f"{path}: {error}") from error


def others(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Arrays of other shapes and types, and integers elsewhere."""
    yield array[:-1]
    yield np.concatenate([array, array[-1:]])
    yield array[..., None]
    yield array.reshape(-1)[:0].reshape((0,) * array.ndim)
    yield array.astype(np.complex64).view(np.float32)
    if array.dtype.kind == "i":
        of_type = np.iinfo(array.dtype)
        for value in (-3, 2**30, -(2**62)):
            if of_type.min <= value <= of_type.max:
                yield np.full_like(array, value)


# Of the samples' own numbers any is as good as another.
FREE = {"counts", "steps", "seen", "stored", "age", "evidence", "run", "total"}


@each_model
def test_arrays_of_a_bank_that_do_not_belong_together_are_refused(name: str):
    spec, state = MODELS[name]
    bank = [key for key in state.arrays if key.startswith("adaptive.")]
    assert len(bank) > 10
    for key in bank:
        array = state.arrays[key]
        if not array.size or key.removeprefix("adaptive.").rpartition("_")[2] in FREE:
            continue
        growing = any(word in key for word in ("gains", "endless", "earlier", "diagonal", "texts"))
        for other in others(array):
            if growing and other.ndim == array.ndim and other.dtype == array.dtype:
                continue
            with pytest.raises(ModelFileError):
                fill_model(
                    Model(1, "m", spec), State(state.plain, {**state.arrays, key: other}), "it"
                )


EARLIER = ("bayes_earlier_sums", "bayes_earlier_beta", "bayes_earlier_curvature")


def test_foreign_naive_bayes_states_are_refused():
    spec, state = MODELS["default"]
    now = state.arrays["adaptive.bayes_sums"]
    kept, ones = np.stack([now, now]), np.ones((2, 1))
    made_by = [
        (kept, ones, ones),
        (kept[..., :-1], ones, ones),
        (kept[:, :, :, :-1], ones, ones),
        (-1.0 - kept, ones, ones),
        (kept, ones[:1], ones),
        (kept, ones, np.ones((2, 2))),
        (kept, ones, np.empty(0)),
        (kept,),
    ]
    for given in made_by:
        arrays = {key: a for key, a in state.arrays.items() if "bayes_earlier" not in key}
        names = (f"adaptive.{name}" for name in EARLIER)
        arrays |= dict(zip(names, given, strict=False))
        if given is made_by[0]:
            made(State(state.plain, arrays))
            continue
        with pytest.raises(ModelFileError, match="bayes_earlier"):
            fill_model(Model(1, "m", spec), State(state.plain, arrays), "it")


@pytest.mark.parametrize("key", ["neighbours_target", "neighbours_said", "past_last"])
def test_classes_that_a_bank_has_not_met_are_refused(key: str):
    spec, state = MODELS["temporal"]
    for value in (3, -2, 10**6):
        arrays = dict(state.arrays)
        arrays[f"adaptive.{key}"] = np.full_like(arrays[f"adaptive.{key}"], value)
        with pytest.raises(ModelFileError, match=key):
            fill_model(Model(1, "m", spec), State(state.plain, arrays), "it")


@pytest.mark.parametrize("key", ["diagonal_entries", "diagonal_W"])
def test_slots_that_are_not_equally_many_are_refused(key: str):
    spec, state = MODELS["sparse"]
    arrays = dict(state.arrays)
    arrays[f"adaptive.{key}"] = arrays[f"adaptive.{key}"][:-1]
    with pytest.raises(ModelFileError, match="diagonal"):
        fill_model(Model(1, "m", spec), State(state.plain, arrays), "it")


def test_slots_of_texts_that_do_not_belong_together_are_refused():
    spec, state = MODELS["a table's first rows"]
    slots = state.arrays["adaptive.texts_slots"]
    assert len(slots) == 3
    for other in (slots[:-1], slots[::-1], slots - 1, np.full_like(slots, 5), slots + 2**40):
        arrays = {**state.arrays, "adaptive.texts_slots": other}
        with pytest.raises(ModelFileError, match="texts"):
            fill_model(Model(1, "m", spec), State(state.plain, arrays), "it")


def test_a_bank_of_another_number_of_texts_is_refused():
    spec, state = MODELS["a table's first rows"]
    for texts in (7, 0, None, "1"):
        plain = changed(state.plain, ("heads", "adaptive", "texts"), texts)
        with pytest.raises(ModelFileError, match="texts"):
            fill_model(Model(1, "m", spec), State(plain, state.arrays), "it")


def test_a_bank_of_another_number_of_columns_is_refused():
    spec, state = MODELS["default"]
    for columns in (5, None, True, "4"):
        plain = changed(state.plain, ("heads", "adaptive", "columns"), columns)
        with pytest.raises(ModelFileError, match="columns"):
            fill_model(Model(1, "m", spec), State(plain, state.arrays), "it")


@each_model
def test_a_bank_that_has_begun_without_samples_is_refused(name: str):
    """It would be asked for predictions, and have none."""
    spec, state = MODELS[name]
    counts = state.arrays["adaptive.counts"].copy()
    counts[0] = 0
    arrays = {**state.arrays, "adaptive.counts": counts}
    with pytest.raises(ModelFileError, match="counts"):
        fill_model(Model(1, "m", spec), State(state.plain, arrays), "it")


@each_model
def test_bank_with_surplus_chunk_rows_is_refused(name: str):
    """It would break at a sample that is durable by then."""
    spec, state = MODELS[name]
    counts = state.arrays["adaptive.counts"]
    assert counts[0] % 32
    for samples in (counts[0] - counts[0] % 32, 2**62):
        wrong = {"adaptive.counts": np.array([samples, *counts[1:]])}
        if "adaptive.bayes_rows" in state.arrays:
            wrong["adaptive.bayes_rows"] = np.array([samples])
        with pytest.raises(ModelFileError, match="rows of a chunk"):
            fill_model(Model(1, "m", spec), State(state.plain, {**state.arrays, **wrong}), "it")


def test_first_samples_of_other_rows_are_refused():
    _, state = MODELS["a table's first rows"]
    _, other = learned({}, Samples(named_rows([{"a": 1.0}] * 100), ["warm"] * 100), "working_set")
    with pytest.raises(UnusableState, match="first samples"):
        made(State(state.plain, {**state.arrays, "first": other.arrays["first"]}))
    with pytest.raises(UnusableState):
        made(State(state.plain, {**state.arrays, "first": np.arange(9, dtype=np.uint8)}))


@pytest.mark.parametrize("name", ["default", "numbers", "a set of numbers", "papers", "a table"])
@pytest.mark.parametrize("stop", [0, 1, 2, 33])
def test_a_young_model_is_taken(name: str, stop: int) -> None:
    given, samples, _ = streams()[name]
    learner = Learner(Model(1, "m", read_spec(given)))
    if stop:
        rows = rows_between(samples.X, 0, stop)
        learner.absorb(
            "working_set" if "working_set" in learner.heads else "asset",
            Samples(rows, samples.y[:stop]),
        )
    made(State(*learner.state()))


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e150, 1e300])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_model_of_strange_numbers_is_taken(scale: float, task: str) -> None:
    """What a model could learn it can hold, however large or small; 0 makes all rows alike."""
    random = np.random.default_rng(0)
    X = scale * random.standard_normal((120, 3))
    y: Any = ["a" if value > 0.0 else "b" for value in X[:, 0]]
    if task == "regression":
        y = np.clip(X[:, 0], -1e100, 1e100) if scale else np.ones(120)
    given = {"task": task, **({"working_set": {}, "asset": None} if task == "regression" else {})}
    _, state = learned(given, Samples(X, y), "working_set")
    made(state)
