"""After the warm-up nothing compiles: the first request is as fast as the next."""

import importlib
import pkgutil
from typing import Any

import numpy as np
import pytest

import solver
from service.head import Head
from service.samples import from_record, to_record
from service.spec import ModelSpec
from service.warm_up import warm_up
from tests.service.streams import part, three_classes, two_classes


def compiled_signatures() -> dict[str, list[Any]]:
    """The compiled signatures of every function of the solver."""
    found = {}
    for module in pkgutil.iter_modules(solver.__path__, "solver."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if hasattr(value, "signatures"):
                found[f"{module.name}.{name}"] = list(value.signatures)
    return found


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    warm_up()


@pytest.mark.parametrize(
    ("head", "kernel"),
    [
        ("working_set", "rbf"),
        ("working_set", "polynomial"),
        ("working_set", "linear"),
        ("asset", "rbf"),
    ],
)
@pytest.mark.parametrize("make", [two_classes, three_classes])
def test_traffic_compiles_nothing(head: Any, kernel: str, make: Any) -> None:
    before = compiled_signatures()
    assert before
    spec = ModelSpec.model_validate({"kernel": {"type": kernel}, "working_set": {"max_size": 300}})
    samples = make(900)
    samples.X[500] = 1e6
    learner = Head(head, spec)
    for start, stop in ((0, 1), (1, 4), (4, 300), (300, 900)):
        learner.absorb(*part(samples, start, stop))
        learner.view()
    learner.absorb(*from_record(to_record(part(samples, 0, 7))))
    for rows in (samples.X[:1], samples.X[:700], np.array(samples.X[:3], order="F")):
        learner.view().predict(rows)
    other = Head(head, spec)
    other.restore(*learner.state())
    other.absorb(samples.X[:300], samples.labels[:300])
    assert compiled_signatures() == before
