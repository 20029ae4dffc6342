"""Hostile streams: clear refusals or sane numbers, and no state or answer that is not finite."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from wolfstream.service.errors import InvalidSamples
from wolfstream.service.model.draft import Draft, Limits
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.record import as_recorded
from wolfstream.service.samples.validation import read_samples
from wolfstream.service.spec.model import read_spec

LIMITS = Limits(classes=100, features=1000)
ROWS, BLOCK = 700, 50
ASSET = {"dimension": 32}
# Where NaN stands for a loss of a learner that was asked nothing; the last values are not kept
# without `temporal`.
NOTHING_TO_SAY = {f"adaptive.{of}losses_recent" for of in ("", "trees_", "past_")}
# Missing values as they came, and where a column has no more edges.
NOTHING_TO_SAY |= {"adaptive.trees_window_X", "adaptive.trees_forest_bins_edges"}
# Every learner there is that prepares its rows.
SPECS: dict[str, dict[str, Any]] = {
    "all": {"asset": ASSET},
    "temporal": {"working_set": None, "asset": None, "temporal": True},
    "indicator": {"working_set": None, "asset": ASSET, "prepare": {"missing": "indicator"}},
    "sfw": {"adaptive": None, "asset": None, "working_set": {"algorithm": "sfw"}},
    "asset*": {"adaptive": None, "working_set": None, "asset": ASSET | {"algorithm": "asset*"}},
    "nystrom": {"adaptive": None, "working_set": None, "asset": ASSET | {"features": "nystrom"}},
    "numbers": {"task": "regression", "asset": ASSET},
    "temporal numbers": {"task": "regression", "asset": None, "temporal": True},
}
Row = Callable[[int, np.random.Generator], Any]
STREAMS: dict[str, Row] = {
    "huge and tiny": lambda _, r: [float(r.normal()) * 10.0 ** r.uniform(-300, 300), r.normal()],
    "jumping units": lambda k, r: [float(r.normal()) * (1e12 if k % 100 < 50 else 1e-12), k],
    "a constant": lambda *_: [7.0, 1e300],
    "a single feature": lambda _, r: [float(r.normal())],
    "nothing but gaps": lambda *_: [None, math.nan],
    "gaps at last": lambda k, r: [float(r.normal()), k if k < 200 else None],
    "only categories": lambda _, r: {"a": f"a{r.integers(3)}", "b": f"b{r.integers(3)}"},
    "ever new categories": lambda k, r: {"user": f"user {k}", "x": float(r.normal())},
    "numbers and words": lambda k, _: {"x": float(k) if k % 2 else f"word {k % 5}", "y": k % 7},
    "booleans": lambda k, r: {"x": bool(r.integers(2)), "y": bool(k % 3)},
    "time that goes back": lambda k, r: {"at": 1e9 - 86_400 * k * k, "x": float(r.normal())},
    "sparse words": lambda k, _: {f"word {k % 50}": 1.0, f"other {k % 31}": 1e6},
}


def learner_of(name: str) -> Learner:
    spec = SPECS[name]
    prepare = spec.get("prepare", {}) | {"timestamps": ["at"]}
    return Learner(Model(1, "m", read_spec(spec | {"prepare": prepare})))


def called(learner: Learner) -> Any:
    return "working_set" if "working_set" in learner.heads else next(iter(learner.heads))


def learn(learner: Learner, rows: list[Any], y: list[Any]) -> list[Any]:
    answered: list[Any] = []
    for start in range(0, len(rows), BLOCK):
        body = {"x": rows[start : start + BLOCK], "y": y[start : start + BLOCK]}
        samples = as_recorded(read_samples(body, learner.model.spec.task, prepared=True))
        Draft(learner, LIMITS).add(called(learner), samples)
        answers = learner.absorb(called(learner), samples)
        answered += [answers.decision, answers.prediction]
    learner.publish()
    return answered


def numbers_in(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict):
        yield from numbers_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from numbers_in(part)


def check(learner: Learner, answered: list[Any]) -> None:
    _, arrays = learner.state()
    for name, array in arrays.items():
        if name not in NOTHING_TO_SAY and (
            name != "adaptive.last" or learner.model.spec.temporal is True
        ):
            assert np.isfinite(array).all(), name
    assert all(map(math.isfinite, numbers_in(answered)))
    described = learner.model.describe()
    assert all(map(math.isfinite, numbers_in([described["heads"], described["columns"]])))


@pytest.mark.parametrize("stream", STREAMS)
def test_a_hostile_stream_leaves_all_heads_finite(stream: str):
    check_stream("all", stream)


@pytest.mark.sweep
@pytest.mark.parametrize("spec", [name for name in SPECS if name != "all"])
@pytest.mark.parametrize("stream", STREAMS)
def test_a_hostile_stream_leaves_everything_finite(spec: str, stream: str):
    check_stream(spec, stream)


def check_stream(spec: str, stream: str) -> None:
    learner, random = learner_of(spec), np.random.default_rng(0)
    rows = [STREAMS[stream](k, random) for k in range(ROWS)]
    y: list[Any] = random.integers(2, size=ROWS).tolist()
    if learner.model.spec.task == "regression":
        y = [float(random.normal()) for _ in range(ROWS)]
    check(learner, learn(learner, rows, y))


@pytest.mark.parametrize("spec", [name for name in SPECS if "numbers" not in name])
def test_one_label_for_long(spec: str):
    learner, random = learner_of(spec), np.random.default_rng(0)
    rows = random.normal(size=(ROWS, 2)).tolist()
    check(learner, learn(learner, rows, [int(k > 600) for k in range(ROWS)]))


@pytest.mark.parametrize("spec", [name for name in SPECS if "numbers" in name])
@pytest.mark.parametrize("target", [0.0, 7.0, 1e100])
def test_a_constant_target(spec: str, target: float):
    learner, random = learner_of(spec), np.random.default_rng(0)
    rows = random.normal(size=(ROWS, 2)).tolist()
    check(learner, learn(learner, rows, [target] * ROWS))


@pytest.mark.parametrize("value", [math.inf, -math.inf, 10**400])
@pytest.mark.parametrize("row", [lambda v: [v, 1.0], lambda v: {"a": v}, lambda v: ["text", v]])
def test_infinity_is_refused(value: Any, row: Callable[[Any], Any]):
    with pytest.raises(InvalidSamples) as refused:
        read_samples({"x": [row(value)], "y": [1]}, prepared=True)
    assert refused.value.errors[0]["pointer"].startswith("/x")


def test_column_turned_text_learned_told_once():
    learner = learner_of("all")
    learn(learner, [{"x": float(k), "z": k % 3} for k in range(1000)], [k % 2 for k in range(1000)])
    learner.take_notices()
    learn(learner, [{"x": "broken", "z": 1}] * 3, [1, 0, 1])
    learn(learner, [{"x": "broken", "z": 1}], [1])
    (notice,) = learner.take_notices()
    assert (notice.slug, notice.column) == ("unread-value", "x")
    assert "sample 1001 has 'broken'" in notice.message


def test_very_many_categories_take_no_more_memory():
    learner = learner_of("temporal")
    known = []
    for part in range(3):
        rows = [{"user": f"user {part} {k}", "x": 1.0} for k in range(1000)]
        learn(learner, rows, [k % 2 for k in range(1000)])
        known.append(learner.state()[0]["schema"])
    assert known[0] == known[1] == known[2]
    assert learner.rows.form.layout is not None
    assert learner.rows.form.layout.width <= 40
