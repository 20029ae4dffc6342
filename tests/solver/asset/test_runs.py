"""ASSET with several horizons side by side."""

import numpy as np
import pytest

from tests.solver.streams import blocks, clusters, in_order_of_appearance, sparse
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.merge import merge
from wolfstream.solver.asset.runs import KEPT, LARGEST_LOSS, RATE
from wolfstream.solver.asset.step_rules import AUTO
from wolfstream.solver.asset.view import predict
from wolfstream.solver.kernels.functions import Kernel


def made(horizon="auto", **parameters):
    kernel = "linear" if parameters.get("features") == "identity" else "rbf"
    return Asset(Kernel(kernel, 0.2), **{"dimension": 32, "horizon": horizon, **parameters})


def late_class(n, seed=0):
    """Three classes, of which the third comes late."""
    X, codes = clusters(seed, n, n_classes=3)
    early = np.arange(n) < n // 2
    codes[early] = codes[early] % 2
    return X, in_order_of_appearance(codes.tolist())


def curve(n, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    y = 100.0 + 20.0 * np.sin(X[:, 0]) + 5.0 * X[:, 1]
    y[n // 2] = 1e6
    return X, y


STREAMS = {
    "two classes": lambda n: clusters(3, n),
    "a late class": late_class,
    "numbers": curve,
}


def absorbed(learner, X, y, length):
    """Decisions, NaN where there was none."""
    wide = learner.regression or y.max() < 2
    found = np.full(len(y) if wide else (len(y), y.max() + 1), np.nan)
    for part in blocks(len(y), length):
        decision = learner.absorb(X[part], y[part]).decision
        if decision.ndim == found.ndim:
            found[part] = decision if wide else np.nan
        if decision.ndim == 2:
            found[part, : decision.shape[1]] = decision
        elif not wide:
            found[part, 0], found[part, 1] = -decision, decision
    return found


def combined(each, y, unit):
    """Sample by sample by the formulas of `runs`, from decisions (n, runs, ...)."""
    lost, answers = np.zeros(each.shape[1]), []
    for said, label in zip(each, y, strict=True):
        weight = np.exp(-RATE * lost)
        answers.append(np.tensordot(weight / weight.sum(), said, axes=1))
        if unit is not None:
            loss = np.minimum(np.abs(said - label) / unit, LARGEST_LOSS)
        elif said.ndim == 1:
            loss = (said > 0.0) != label
        else:
            loss = np.argmax(np.nan_to_num(said, nan=-np.inf), axis=1) != label
        lost = KEPT * lost + np.nan_to_num(loss)
    return np.array(answers)


@pytest.mark.parametrize("length", [1, 7, 256])
@pytest.mark.parametrize("stream", STREAMS)
def test_answers_are_weighted_by_what_each_lost_before(stream, length):
    X, y = STREAMS[stream](1200)
    task = "regression" if stream == "numbers" else "classification"
    each = []
    for horizon, averages in AUTO:
        learner = made(horizon, task=task, average=averages)
        learner.begin(X[:128], y[:128])
        each.append(absorbed(learner, X, y, 256))
    learner = made(task=task)
    learner.begin(X[:128], y[:128])
    unit = y[:128].std() if task == "regression" else None
    expected = combined(np.stack(each, axis=1), y, unit)
    found = absorbed(learner, X, y, length)
    np.testing.assert_allclose(found[1:], expected[1:], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("features", ["fourier", "nystrom", "identity"])
def test_the_view_says_of_the_next_sample_what_the_answer_says(features):
    X, y = clusters(1, 700)
    learner = made(features=features)
    learner.absorb(X[:600], y[:600])
    _, before = predict(learner.view(), X[600:601])
    np.testing.assert_allclose(learner.absorb(X[600:601], y[600:601]).decision, before, rtol=1e-9)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("at", [1, 100, 700])
def test_a_state_goes_on_bit_for_bit(stream, at):
    X, y = STREAMS[stream](1200)
    task = "regression" if stream == "numbers" else "classification"
    learner, twin = made(task=task), made(task=task)
    learner.absorb(X[:at], y[:at])
    twin.restore(learner.state())
    for one in (learner, twin):
        one.absorb(X[at:], y[at:])
    states = learner.state(), twin.state()
    assert states[0].keys() == states[1].keys()
    for name, array in states[0].items():
        np.testing.assert_array_equal(array, states[1][name], err_msg=name)


def test_it_follows_a_change_and_loses_nothing_where_nothing_changes():
    X, y = clusters(5, 12_000, n_features=3)
    flipped = np.where(np.arange(len(y)) < 6000, y, 1 - y)

    def right(horizon, labels):
        learner = made(horizon, dimension=128, lam=1e-4)
        said = learner.absorb(X, labels).prediction
        return np.mean(said[6500:] == labels[6500:])

    assert right("auto", y) > right(None, y) - 0.005
    assert right("auto", flipped) > right(None, y) - 0.03
    assert right(None, flipped) < 0.6


def test_the_last_iterate_answers_where_labels_cling_together():
    random = np.random.default_rng(2)
    X, state = random.normal(size=(6000, 4)), np.zeros(6000)
    for i in range(1, 6000):
        state[i] = 0.98 * state[i - 1] + 0.2 * random.normal()
    y = in_order_of_appearance((state + 0.3 * random.normal(size=6000) > 0.0).tolist())
    learner = made()
    learner.absorb(X, y)
    assert not learner.run.rule.averages


def test_features_of_sparse_rows_are_met_by_every_run():
    X, y = clusters(4, 600, n_features=12)
    dense_rows, sparse_rows = made(features="identity"), made(features="identity")
    dense_rows.absorb(X, y)
    for part in blocks(600, 50):
        width = 1 + 11 * (part.start > 200)
        rows = X[part] * (np.arange(12) < width)
        sparse_rows.absorb(sparse(rows, 12), y[part])
    assert sparse_rows.view().dimension >= 12
    assert dense_rows.view().dimension == 12


def test_several_are_merged_run_by_run():
    X, y = clusters(6, 3000)
    parts = [made(), made()]
    for one, part in zip(parts, blocks(3000, 1500), strict=True):
        one.begin(X[:1], y[:1])
        one.meet_classes(2)
        one.absorb(X[part], y[part])
    merged = merge(parts)
    assert merged.steps == 3000
    said, _ = predict(merged.view(), X)
    assert np.mean(said == y) > np.mean(predict(parts[0].view(), X)[0] == y) - 0.01


@pytest.mark.parametrize(
    "parameters", [{"algorithm": "asset*"}, {"average": False}, {"average_from": 5}]
)
def test_it_is_for_averages(parameters):
    with pytest.raises(ValueError, match="chooses between averages"):
        made(**parameters)
