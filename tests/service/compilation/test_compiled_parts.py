"""After the warm-up nothing compiles: the first request is as fast as the next."""

import importlib
import pkgutil
from typing import Any

import numpy as np
import pytest

from tests.service.specs import read_papers_spec
from tests.service.streams import asset_specs, few_words, part, three_classes, two_classes
from wolfstream import solver
from wolfstream.service.compilation.compiled_parts import parts
from wolfstream.service.heads.fit import fit_from_record, fit_to_record
from wolfstream.service.heads.kinds import fit_window
from wolfstream.service.model.draft import Draft, Limits
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.record import from_record, to_record
from wolfstream.service.samples.tasks import Targets
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import TaskName
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.prepare.named_rows import NamedRows, named_values


def compiled_signatures() -> dict[str, list[Any]]:
    """The compiled signatures of every function of the solver."""
    found = {}
    for module in pkgutil.walk_packages(solver.__path__, "wolfstream.solver."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if hasattr(value, "signatures"):
                found[f"{module.name}.{name}"] = list(value.signatures)
    return found


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    for each in parts():
        each.compile()


SETS = {
    f"working_set {kernel}": {"kernel": {"type": kernel}, "working_set": {"max_size": 300}}
    for kernel in ("rbf", "polynomial", "linear")
}
SETS |= {f"{name}, regression": spec | {"task": "regression"} for name, spec in SETS.items()}
OTHERS = {
    "horizon": {"working_set": None, "asset": {"horizon": 300, "lambda": 1, "average_from": 5}},
    "regression, horizon": {"task": "regression", "asset": {"horizon": 300, "epsilon": 1}},
    "fixed": {"kernel": {"gamma": 1}, "working_set": None},
    "last iterate": {"working_set": None, "asset": {"average": False}},
}
SPECS = SETS | asset_specs() | OTHERS


@pytest.mark.sweep
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("make", [two_classes, three_classes, few_words])
def test_traffic_compiles_nothing(spec: Any, make: Any) -> None:
    before = compiled_signatures()
    assert before
    spec = read_papers_spec(spec)
    head = spec.serve
    samples = make(900)
    put_far_away(samples, 500)
    if spec.task == "regression":
        samples = Samples(samples.X, np.linspace(-3.0, 5.0, 900))
    learner, other = Learner(Model(1, "m", spec)), Learner(Model(1, "m", spec))
    for start, stop in ((0, 1), (1, 4), (4, 300), (300, 900)):
        Draft(learner, Limits(10, 10_000)).add(head, part(samples, start, stop))
        learner.absorb(head, part(samples, start, stop))
        learner.publish()
    learner.absorb(head, from_record(to_record(part(samples, 0, 7))))
    for stop in (1, 700):
        rows = learner.model.published.head_rows(part(samples, 0, stop).X).X
        learner.model.published.heads[head].predict(rows)
    if not isinstance(samples.X, NamedRows):
        learner.model.published.heads[head].predict(np.array(samples.X[:3], order="F"))
    other.restore(*learner.state())
    other.absorb(head, part(samples, 0, 300))
    other.publish()
    assert compiled_signatures() == before


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_default_model_compiles_nothing(task: TaskName) -> None:
    """It prepares its rows, and has a bank of learners."""
    before = compiled_signatures()
    learner = Learner(Model(1, "m", ModelSpec.model_validate({"task": task})))
    X = np.random.default_rng(0).standard_normal((300, 3))
    y: Targets = X[:, 0] if task == "regression" else ["a", "b", "c"] * 100
    for start, stop in ((0, 1), (1, 4), (4, 300)):
        learner.absorb(learner.model.head_of["samples"], Samples(X[start:stop], y[start:stop]))
        learner.publish()
    published = learner.model.published
    for rows in (X[:1], X[:5], X):
        published.predict(learner.model.spec.serve, published.head_rows(rows))
    assert compiled_signatures() == before


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_rows_with_texts_compile_nothing(task: TaskName) -> None:
    """No row waits for code because it is the first one with a text."""
    before = compiled_signatures()
    learner = Learner(Model(1, "m", ModelSpec.model_validate({"task": task})))
    rows = [{"x": 0.1 * i, "a": f"a{i % 7}", "b": f"b{i % 5}"} for i in range(300)]
    y: Targets = np.arange(300.0) if task == "regression" else ["a", "b", "c"] * 100
    for start, stop in ((0, 1), (1, 4), (4, 300)):
        samples = Samples(named_values(rows[start:stop]), y[start:stop])
        learner.absorb(learner.model.head_of["samples"], samples)
        learner.publish()
    published = learner.model.published
    for asked in (rows[:1], rows[:5], rows):
        published.predict(learner.model.spec.serve, published.head_rows(named_values(asked)))
    assert any(one.get("features") == "texts" for one in published.heads["adaptive"].learners)
    assert compiled_signatures() == before


@pytest.mark.parametrize("solver", ["pdsg", "mpd"])
@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "linear"])
def test_refits_compile_nothing(kernel: str, solver: str) -> None:
    before = compiled_signatures()
    own = {"solver": solver, "tol": 0.5, "window": 800, "basis": [{"type": "sin", "period": 3.0}]}
    spec = read_papers_spec(
        {"task": "regression", "kernel": {"type": kernel}, "semiparametric": own}
    )
    X = np.random.default_rng(0).standard_normal((900, 3))
    learner, other = Learner(Model(1, "m", spec)), Learner(Model(1, "m", spec))
    for stop in (40, 900):
        learner.absorb("asset", from_record(to_record(Samples(X[:stop], np.sin(X[:stop, 0])))))
        fit = fit_window(learner.window(), "1", lambda _: None)
        learner.adopt("semiparametric", fit_from_record(fit_to_record(fit)))
        learner.publish()
        for rows in (X[:1], X[:700], np.array(X[:3], order="F"), 1e9 * X[:2]):
            learner.model.published.heads["semiparametric"].predict(rows)
    other.restore(*learner.state())
    other.absorb("semiparametric", Samples(X[:300], X[:300, 0]))
    assert compiled_signatures() == before


def put_far_away(samples: Samples, i: int) -> None:
    """Give a row numbers so large that its distances are computed from differences."""
    if isinstance(samples.X, NamedRows):
        start = samples.X.lengths[:i].sum()
        samples.X.value[start : start + samples.X.lengths[i]] = 1e9
    else:
        samples.X[i] = 1e9
