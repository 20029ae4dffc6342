"""What a prediction costs: it decides whether the event loop can be kept waiting for it."""

from typing import Any

import numpy as np
import pytest

from tests.service.specs import read_papers_spec
from tests.solver.streams import sparse
from wolfstream.service.heads.kinds import build
from wolfstream.service.heads.protocol import HeadView
from wolfstream.service.spec.model import read_spec
from wolfstream.solver.stream.votes import HeadInputs

MAPS = {
    "fourier": {},
    "nystrom": {"asset": {"features": "nystrom"}},
    "polynomial": {"kernel": {"type": "polynomial"}},
    "identity": {"kernel": {"type": "linear"}},
}
each_map = pytest.mark.parametrize("spec", MAPS.values(), ids=MAPS)


def view_of(spec: dict[str, Any], classes: int = 2, dimension: int = 64, n: int = 300) -> HeadView:
    asset = {"lambda": 1e-3} | spec.get("asset", {})
    if spec.get("kernel", {}).get("type") != "linear":
        asset["dimension"] = dimension
    head = build("asset", read_papers_spec({**spec, "working_set": None, "asset": asset}))
    X = np.random.default_rng(0).standard_normal((n, 3))
    head.absorb(X, [i % classes for i in range(n)])
    return head.view()


@each_map
def test_it_grows_with_rows_features_and_classes(spec: dict[str, Any]):
    view = view_of(spec)
    assert 0 < view.cost(1, 3) < view.cost(2, 6) < view.cost(2, 60)
    assert view.cost(100, 300) < view_of(spec, classes=10).cost(100, 300)


@pytest.mark.parametrize("name", ["fourier", "nystrom", "polynomial"])
def test_it_grows_with_the_dimension(name: str):
    small, large = (view_of(MAPS[name], dimension=d).cost(10, 30) for d in (32, 256))
    assert large > 5 * (small - 10 * 1800)


def test_identity_costs_no_more_than_its_products():
    """A wide row has as many products as numbers and machines, whatever the other maps need."""
    view = view_of(MAPS["identity"])
    assert view.cost(1, 10**6) < 3 * 10**6
    assert view_of(MAPS["fourier"]).cost(1, 10**6) > 60 * 10**6


def test_sparse_landmarks_are_looked_up():
    head = build("asset", read_papers_spec({"asset": {"features": "nystrom", "dimension": 32}}))
    head.absorb(sparse(np.eye(3)[[0, 1] * 50]), ["a", "b"] * 50)
    wide = build("asset", read_papers_spec({"asset": {"features": "nystrom", "dimension": 32}}))
    wide.absorb(sparse(np.eye(3)[[0, 1] * 50])._replace(width=10**9), ["a", "b"] * 50)
    assert 0 < head.view().cost(1, 3) < head.view().cost(20, 60)
    assert wide.view().cost(1, 3) == head.view().cost(1, 3)


def test_a_regression_has_one_function():
    spec = read_papers_spec({"task": "regression", "asset": {"dimension": 64, "lambda": 1e-3}})
    head = build("asset", spec)
    X = np.random.default_rng(0).standard_normal((300, 3))
    head.absorb(X, X[:, 0])
    assert head.view().cost(10, 30) < view_of(MAPS["fourier"]).cost(10, 30)


def test_texts_and_their_pairs_cost_a_bank():
    random, costs = np.random.default_rng(0), []
    for texts in (0, 3, 8):
        head = build("adaptive", read_spec({}))
        X, codes = random.standard_normal((64, 3)), random.integers(0, 9, (64, texts))
        heard = HeadInputs({}, codes.astype(np.float64) if texts else None)
        head.absorb(X, [i % 2 for i in range(64)], heard)
        costs.append(head.view().cost(1000, 3000))
    assert costs[1] - costs[0] > 1000 * 4000 * 7
    assert costs[2] - costs[1] == 1000 * 4000 * 30
