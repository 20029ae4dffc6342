"""Deleted models are freed at once, without a collection: frozen objects would never be."""

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tests.service.engine.test_challengers import catch_up
from tests.service.engine.test_late_labels import label, predict
from tests.service.streams import curve, part, three_classes
from tests.service.writer_bench import Bench
from wolfstream.service.model.live import Model
from wolfstream.service.spec.model import read_spec

SMALL: dict[str, Any] = {"working_set": {"max_size": 20}, "asset": {"dimension": 16}}
ALONE: dict[str, Any] = {"working_set": None, "asset": None, "adaptive": None}
SPECS: dict[str, dict[str, Any]] = {
    "default": {},
    "regression": {"task": "regression"},
    "fitted": {"task": "regression", "semiparametric": {}, "asset": {"dimension": 16}},
    "small": SMALL,
    "small regression": {"task": "regression", **SMALL, "working_set": {"epsilon": 0.1}},
    "papers": {"prepare": None, "adaptive": None},
    "asset": ALONE | {"asset": {"features": "nystrom"}},
    "novelty": ALONE | {"asset": {"dimension": 16}, "novelty": {}},
}
CLASSES, NUMBERS = three_classes(200), curve(200)


@contextmanager
def no_collection() -> Iterator[None]:
    """Collect nothing within the block, as if all objects were frozen."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def cycles_of_ours() -> set[str]:
    """Collect what nobody refers to any more; the types of this project among it."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        found = {f"{type(one).__module__}.{type(one).__name__}" for one in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    return {name for name in found if name.startswith("wolfstream")}


def references(bench: Bench) -> list[weakref.ref[Any]]:
    """Weak references to all models, their learners and their views' chains."""
    assert bench.writer.models.all()
    return [
        weakref.ref(part)
        for learner in bench.writer.models.learners()
        for part in (learner.model, learner, learner.model.chain)
    ]


def live(bench: Bench, name: str) -> Model:
    model = bench.writer.models.get(name)
    assert model is not None
    return model


def delete_all(bench: Bench) -> None:
    for name in [model.name for model in bench.writer.models.all()]:
        bench.writer.delete(live(bench, name))
    bench.writer.snapshots.finish(wait=True)
    bench.replies.clear()


def left(references: list[weakref.ref[Any]]) -> list[str]:
    return [type(found).__name__ for one in references if (found := one()) is not None]


def learn(bench: Bench, name: str, spec: dict[str, Any]) -> None:
    """Create a model, teach it in blocks, ask it and save it."""
    model = bench.writer.new_models.create(name, read_spec(spec))[0]
    samples = NUMBERS if model.spec.task == "regression" else CLASSES
    taught = next(iter(model.spec.heads))
    for start in range(0, len(samples.y), 40):
        bench.learn(model, part(samples, start, start + 40), taught)
    published = model.published
    published.predict(model.spec.serve, published.head_rows(samples.X))
    bench.snapshot(model)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_a_deleted_model_leaves_no_cycle(bench: Bench, spec: dict[str, Any]) -> None:
    with no_collection():
        learn(bench, "m", spec)
        found = references(bench)
        delete_all(bench)
        assert left(found) == []
        assert cycles_of_ours() == set()


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_a_recovered_model_leaves_no_cycle(bench: Bench, spec: dict[str, Any]) -> None:
    learn(bench, "m", spec)
    again = bench.restarted()
    with no_collection():
        found = references(again)
        delete_all(again)
        assert left(found) == []
        assert cycles_of_ours() == set()
    again.close()


def test_twenty_models_are_freed(bench: Bench) -> None:
    with no_collection():
        for i in range(20):
            learn(bench, f"m{i}", SMALL)
        found = references(bench)
        delete_all(bench)
        assert left(found) == []


def test_a_challenger_and_its_champion_leave_no_cycle(bench: Bench) -> None:
    with no_collection():
        learn(bench, "champion", SMALL)
        spec = read_spec({})
        bench.writer.challengers.make("challenger", live(bench, "champion"), spec, "empty")
        catch_up(bench, live(bench, "challenger"))
        bench.writer.promotion.promote(live(bench, "champion"), live(bench, "challenger"))
        found = references(bench)
        delete_all(bench)
        assert left(found) == []
        assert cycles_of_ours() == set()


def test_rows_that_waited_for_labels_leave_no_cycle(bench: Bench) -> None:
    X: Any = CLASSES.X
    with no_collection():
        learn(bench, "m", SMALL)
        predict(bench, live(bench, "m"), ["a", "b"], X[:2])
        label(bench, live(bench, "m"), ["a"], CLASSES.y[:1])
        found = references(bench)
        delete_all(bench)
        assert left(found) == []
        assert cycles_of_ours() == set()


def test_a_refused_request_leaves_no_cycle(bench: Bench) -> None:
    learn(bench, "m", SMALL)
    wide = CLASSES._replace(X=np.ones((len(CLASSES.y), 7)))
    with no_collection():
        refusal = bench.learn(live(bench, "m"), wide)
        assert isinstance(refusal, Exception)
        del refusal
        bench.replies.clear()
        assert cycles_of_ours() == set()
