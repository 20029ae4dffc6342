"""Model files that somebody forged: the checksum is right, and a part of the state is not.

What becomes of a state is drawn from a seed. Some of it is a state that a model could have had;
most of it is not.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import msgpack
import numpy as np
from numpy.typing import NDArray

from tests.service.specs import PAPERS
from tests.service.streams import (
    asset_specs,
    curve,
    few_words,
    plain_rows,
    plain_y,
    three_classes,
    word_counts,
)
from wolfstream.service.heads.kinds import fit_window, head_of_call
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.record import PredictedRows, rows_record, to_prediction_record
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec
from wolfstream.service.storage.snapshot_format import State
from wolfstream.solver.prepare.named_rows import named_values, rows_between

# Arrays of bytes that are MessagePack, whose values are changed as those of the plain part are.
_PACKED = ("first", "pending")
_FLOATS = (
    *(math.nan, math.inf, -math.inf, 1e308, -1e308, 1e200, 5e-324, -5e-324, 1e-200),
    *(0.0, -0.0, -1.0, 1.0, 0.5, 2.0**53, -(2.0**63), 1e18),
)
# In ms since 1970. Rows that wait since then do not expire.
FAR_AHEAD = 4_102_444_800_000
_INTEGERS = (-1, 0, 1, 2, 7, 31, 32, 1000, 2**31, 2**53, 2**62, -(2**62), 2**63 - 1, -(2**63))
_TYPES = ("f4", "f8", "i4", "i8", "u1", "?", ">f8", "c16", "S3", "M8[s]")
_VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 7, 64, 10**6, 10**18, 10**40, 0.5, 5e-324, 1e308, -1e308),
    *(math.nan, math.inf, -math.inf, "", "x", "\ud800", [], {}, [[]], [None], {"x": 1}),
)


class Stream(NamedTuple):
    """What a model learned: its spec, and its samples, which both learning calls bring.

    x: the rows as JSON has them, where these are not those of `samples`.
    """

    spec: dict[str, Any]
    samples: Samples
    x: list[Any] | None = None

    def body(self, start: int, stop: int) -> dict[str, Any]:
        """The JSON body of some of the samples."""
        x = plain_rows(self.samples) if self.x is None else self.x
        return {"x": x[start:stop], "y": plain_y(self.samples)[start:stop]}


def _rooms(n: int) -> list[dict[str, Any]]:
    """Rows of a table with numbers, words, times, sentences and money."""
    return [
        {
            "degrees": float(i % 7),
            "side": ("north", "south", None)[i % 3],
            "when": f"2025-03-{1 + i % 28:02} 04:{i % 60:02}:00",
            "note": f"the room {i % 11} is {('cold', 'warm and dry')[i % 2]} today",
            "paid": f"${i}.50",
        }
        for i in range(n)
    ]


def _table(spec: dict[str, Any], n: int) -> Stream:
    rows = _rooms(n)
    y: Any = ["warm" if i % 3 else "cold" for i in range(n)]
    if "task" in spec:
        y = np.array([row["degrees"] + 2.0 * (i % 3 > 0) for i, row in enumerate(rows)])
    return Stream(spec, Samples(named_values(rows), y), rows)


_REGRESSION = {"task": "regression"}
_SMALL_SET = {"max_size": 40, "corrective_steps": 1}
_ALONE = {"asset": None, "adaptive": None}


@cache
def streams() -> dict[str, Stream]:
    """One for each kind of head and of rows, by a name."""
    classes, numbers, words = three_classes(150), curve(150), few_words(150)
    found = {
        "default": Stream({}, classes),
        "temporal": Stream({"temporal": True}, classes),
        "sparse": Stream({"working_set": None, "prepare": {"named": "sparse"}}, words),
        "sparse set": Stream({"prepare": {"named": "sparse"}, "working_set": _SMALL_SET}, words),
        "numbers": Stream(_REGRESSION, numbers),
        "temporal numbers": Stream({**_REGRESSION, "temporal": True, "asset": None}, numbers),
        "sparse numbers": Stream({**_REGRESSION, "prepare": {"named": "sparse"}}, word_counts(150)),
        "a set of numbers": Stream(
            {**_REGRESSION, "working_set": _SMALL_SET, "asset": None, "novelty": {}}, numbers
        ),
        "semiparametric": Stream(
            {**_REGRESSION, **_ALONE, "prepare": None, "semiparametric": {"window": 64}}, numbers
        ),
        "a table's first rows": _table({}, 90),
        "a table": _table({"asset": None}, 200),
        "trees of words": _table({"asset": None}, 600),
        "trees": Stream({"asset": None}, three_classes(600)),
        "trees of numbers": Stream({**_REGRESSION, "asset": None}, curve(600)),
        "everything of classes": _table(
            {"asset": None, "temporal": True, "adaptive": {"class_weight": "balanced"}}, 600
        ),
        "everything of numbers": _table({**_REGRESSION, "asset": None, "temporal": True}, 600),
        "weighed classes": Stream(
            {"asset": None, "adaptive": {"class_weight": "balanced"}}, classes
        ),
        "a set that fades": Stream({**_ALONE, "working_set": {"horizon": 512}}, three_classes(300)),
        "a search": Stream(_ALONE, three_classes(2100)),
        "papers": Stream(PAPERS, classes),
        "papers, steep": Stream(
            {**PAPERS, "kernel": {"type": "polynomial"}, "working_set": {"C": 1e6}}, classes
        ),
        "novelty": Stream({**PAPERS, "novelty": _SMALL_SET}, classes),
    }
    of_asset = {
        name: Stream(spec, numbers if "regression" in name else classes)
        for name, spec in asset_specs().items()
    }
    return found | of_asset


@cache
def state_of(name: str) -> State:
    """The state of a model that has learned one of `streams`."""
    given, samples, _ = streams()[name]
    spec = read_spec(given)
    learner, head = Learner(Model(1, "m", spec)), head_of_call(spec, "samples")
    head = head if head in spec.heads else "asset"
    stops = [0, 1, 70, len(samples.y)]
    for start, stop in pairwise(stops):
        learner.absorb(head, Samples(rows_between(samples.X, start, stop), samples.y[start:stop]))
    if "asset" in spec.heads and head != "asset":
        learner.absorb("asset", samples)
    if "semiparametric" in spec.heads:
        learner.adopt("semiparametric", fit_window(learner.window(), "", lambda _: None))
    if learner.pending is not None:
        rows = rows_between(samples.X, 0, 3)
        answers = [0.5] * 3 if spec.task == "regression" else plain_y(samples)[:3]
        predicted = PredictedRows(0, FAR_AHEAD, ["a", "b", 3], rows_record(rows), answers, 150, "e")
        learner.add_waiting_rows(predicted, to_prediction_record(predicted))
    return State(*learner.state())


class Forgery(NamedTuple):
    """A state, and what was done to it."""

    state: State
    what: str


def forged(state: State, random: np.random.Generator) -> Forgery:
    """A state of which an array or a plain value was changed, seldom two."""
    what = list[str]()
    for _ in range(1 if random.random() < 0.8 else 2):
        state, done = (_with_array if random.random() < 0.65 else _with_plain)(state, random)
        what.append(done)
    return Forgery(state, "; ".join(what))


def each_forgery(state: State) -> Iterator[Forgery]:
    """Yield states in each of which one array is another one, in each way and for each array."""
    for name in sorted(state.arrays.keys() - set(_PACKED)):
        array = state.arrays[name]
        for what, other in _each_array(array):
            same = (other.dtype, other.shape) == (array.dtype, array.shape)
            if not same or other.tobytes() != array.tobytes():
                yield Forgery(
                    state._replace(arrays={**state.arrays, name: other}), f"{name}: {what}"
                )


def _each_array(array: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield arrays with another value here or there, of another shape, or of another type."""
    places: dict[str, Any] = {"all": ...}
    if array.size > 1:
        middles = np.unravel_index(array.size // 2, array.shape)
        places |= {"the first": (0,) * array.ndim, "the last": (-1,) * array.ndim}
        places |= {"a middle one": middles, "a row": middles[0], "a column": (..., middles[-1])}
    for place, index in places.items() if array.size else ():
        for value in _values_like(array):
            other = array.copy()
            with np.errstate(over="ignore"):
                other[index] = value
            yield f"{place} = {value}", other
    for axis in range(array.ndim):
        if array.shape[axis]:
            last = np.take(array, [-1], axis)
            yield f"axis {axis} without its last", np.delete(array, -1, axis)
            yield f"axis {axis} with its last twice", np.concatenate([array, last], axis)
            yield f"axis {axis} tripled", np.concatenate([array] * 3, axis)
            yield f"axis {axis} reversed", np.ascontiguousarray(np.flip(array, axis))
        yield f"axis {axis} empty", np.take(array, [], axis)
    if array.ndim > 1:
        yield "axes swapped", np.ascontiguousarray(array.T)
        yield "flat", array.reshape(-1)
    yield "one more axis", array[..., None]
    with np.errstate(all="ignore"):
        for kind in _TYPES:
            yield f"as {kind}", array.astype(kind)


def _values_like(array: NDArray[Any]) -> list[Any]:
    """Return values of an array's type that are wrong in one place or another."""
    if array.dtype.kind == "f":
        return [*_FLOATS]
    if array.dtype.kind == "b":
        return [False, True]
    bounds = np.iinfo(array.dtype)
    values = {*_INTEGERS, len(array), len(array) + 1, bounds.min, bounds.max}
    return sorted(value for value in values if bounds.min <= value <= bounds.max)


def _with_array(state: State, random: np.random.Generator) -> tuple[State, str]:
    name = _one_of(sorted(state.arrays), random)
    array = state.arrays[name]
    if name in _PACKED and random.random() < 0.9:
        plain, what = _changed(msgpack.unpackb(array.tobytes(), strict_map_key=False), random)
        packed = np.frombuffer(
            msgpack.packb(plain, default=str, unicode_errors="surrogatepass"), np.uint8
        )
        return state._replace(arrays={**state.arrays, name: packed}), f"{name}{what}"
    ways: list[Callable[..., tuple[NDArray[Any] | None, str]]] = [_numbers] * 8
    ways += [_shape, _shape, _type, _of_another, _missing]
    changed, what = _one_of(ways, random)(array, state.arrays, random)
    arrays = {key: a for key, a in state.arrays.items() if key != name}
    if changed is not None:
        arrays[name] = changed
    return state._replace(arrays=arrays), f"{name}: {what}"


def _numbers(array: NDArray[Any], _: Any, random: np.random.Generator) -> tuple[NDArray[Any], str]:
    """Give one of the numbers, a row of them, or all another value."""
    other = array.copy()
    if not array.size:
        return other, "nothing"
    chosen: Any = slice(None)
    if random.random() < 0.6:
        chosen = np.unravel_index(int(random.integers(array.size)), array.shape)
    elif array.ndim and random.random() < 0.5:
        chosen = int(random.integers(len(array)))
    value: Any = _one_of(_FLOATS if array.dtype.kind == "f" else _INTEGERS, random)
    with np.errstate(all="ignore"):
        if random.random() < 0.25:
            factor = _one_of((-1, 2, 3), random)
            other[chosen] = (other[chosen] * np.int64(factor)).astype(array.dtype)
            return other, f"[{chosen}] times {factor}"
        if array.dtype.kind in "iub":
            value = np.array([value]).astype(array.dtype)[0]
        other[chosen] = value
    return other, f"[{chosen}] = {value}"


def _shape(array: NDArray[Any], _: Any, random: np.random.Generator) -> tuple[NDArray[Any], str]:
    axis = int(random.integers(max(array.ndim, 1)))
    ways: list[tuple[str, Callable[[], NDArray[Any]]]] = [
        ("last dropped", lambda: np.delete(array, -1, axis)),
        ("last doubled", lambda: np.concatenate([array, np.take(array, [-1], axis)], axis)),
        ("emptied", lambda: np.take(array, [], axis)),
        ("turned", lambda: np.ascontiguousarray(array.T)),
        ("reversed", lambda: np.ascontiguousarray(np.flip(array, axis))),
        ("one more axis", lambda: array[..., None]),
        ("flat", lambda: array.reshape(-1)),
        ("tripled", lambda: np.concatenate([array] * 3, axis)),
    ]
    what, make = _one_of(ways, random)
    if not array.size:
        return np.zeros((2,) * max(array.ndim, 1), array.dtype), "two of each"
    return make(), what


def _type(array: NDArray[Any], _: Any, random: np.random.Generator) -> tuple[NDArray[Any], str]:
    kind = _one_of(_TYPES, random)
    with np.errstate(all="ignore"):
        return array.astype(kind), f"as {kind}"


def _of_another(
    _: Any, arrays: Mapping[str, NDArray[Any]], random: np.random.Generator
) -> tuple[NDArray[Any], str]:
    name = _one_of(sorted(arrays), random)
    return arrays[name].copy(), f"that of {name}"


def _missing(*_: Any) -> tuple[None, str]:
    return None, "missing"


def _with_plain(state: State, random: np.random.Generator) -> tuple[State, str]:
    plain, what = _changed(state.plain, random)
    return state._replace(plain=plain), what


def _changed(plain: Any, random: np.random.Generator) -> tuple[Any, str]:
    """Change one value below a container, each level of which is chosen with equal chances."""
    if not isinstance(plain, dict | list | tuple) or not plain:
        value = _one_of(_VALUES, random)
        return value, f" = {value!r}"
    other: Any = dict(plain) if isinstance(plain, dict) else list(plain)
    keys: list[Any] = list(other) if isinstance(other, dict) else list(range(len(other)))
    if random.random() < 0.12:
        if isinstance(other, list):
            return _list(other, random)
        key = _one_of(keys, random)
        del other[key]
        return other, f".{key} deleted"
    key = _one_of(keys, random)
    if random.random() < 0.08:
        value = _one_of(_VALUES, random)
        other[key] = value
        return other, f".{key} = {value!r}"
    other[key], what = _changed(other[key], random)
    return other, f".{key}{what}"


def _list(values: list[Any], random: np.random.Generator) -> tuple[list[Any], str]:
    ways: dict[str, Callable[[], list[Any]]] = {
        " without its last": lambda: values[:-1],
        " with its last twice": lambda: [*values, values[-1]],
        " reversed": lambda: values[::-1],
        " tripled": lambda: values * 3,
        " emptied": list,
    }
    what = _one_of(sorted(ways), random)
    return ways[what](), what


def _one_of(choices: Any, random: np.random.Generator) -> Any:
    return choices[int(random.integers(len(choices)))]
