"""Learners of parts of a stream become one model."""

import numpy as np
import pytest

from tests.solver.streams import clusters, sparse, thin_clusters
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.merge import copy_of, merge, sibling_of
from wolfstream.solver.asset.view import predict
from wolfstream.solver.kernels.functions import Kernel

RBF, LINEAR = Kernel("rbf", 0.1), Kernel("linear")
MAPS = {
    "fourier": {"kernel": RBF, "features": "fourier"},
    "nystrom": {"kernel": RBF, "features": "nystrom"},
    "identity": {"kernel": LINEAR, "features": "identity"},
}
for_each_map = pytest.mark.parametrize("features", MAPS.values(), ids=MAPS)
for_each_task = pytest.mark.parametrize("task", ["classification", "regression"])
for_both = pytest.mark.parametrize("rows", [np.asarray, sparse], ids=["dense", "sparse"])
PARTS = [slice(0, 150), slice(150, 400), slice(400, 900)]


def made(features=MAPS["nystrom"], **parameters):
    return Asset(**features, **({"dimension": 32, "lam": 1e-3} | parameters))


def samples(task="classification", rows=np.asarray):
    X, codes = thin_clusters(701, 900, n_classes=3)
    return rows(X), codes if task == "classification" else 100.0 + 5.0 * X[:, 0]


def learners(task="classification", rows=np.asarray, features=MAPS["nystrom"], **parameters):
    """One for each part, begun with the same rows."""
    X, y = samples(task)
    result = []
    for part in PARTS:
        learner = made(features, task=task, **parameters)
        learner.begin(rows(X[:32]), y[:128])
        learner.absorb(rows(X[part]), y[part])
        result.append(learner)
    return result


@for_both
@for_each_map
@for_each_task
def test_averages_are_those_of_all_averaged_iterates(features, task, rows):
    parts = learners(task, rows, features)
    merged = merge(parts)
    weight = [learner.run.iterates.weight.sum() for learner in parts]
    X, _ = samples(rows=rows)
    expected = np.average(
        [predict(learner.view(), X)[1] for learner in parts], axis=0, weights=weight
    )
    np.testing.assert_allclose(predict(merged.view(), X)[1], expected, rtol=1e-7, atol=1e-7)
    assert merged.steps == 900


@for_each_map
@for_each_task
def test_without_averages_the_last_iterates_count_by_their_steps(features, task):
    parts = learners(task, features=features, algorithm="asset*")
    X, _ = samples()
    expected = np.average(
        [predict(learner.view(), X)[1] for learner in parts], axis=0, weights=[150, 250, 500]
    )
    np.testing.assert_allclose(predict(merge(parts).view(), X)[1], expected, rtol=1e-7, atol=1e-7)


def test_one_learner_is_merged_with_itself_alone():
    (learner, *_) = learners()
    merged, view = merge([learner]), learner.view()
    np.testing.assert_allclose(merged.view().gamma, view.gamma, rtol=1e-12, atol=1e-12)


@for_each_task
@pytest.mark.parametrize("algorithm", ["asset", "asset*"])
def test_a_merged_learner_goes_on(task, algorithm):
    X, y = samples(task)
    merged = merge(learners(task, algorithm=algorithm))
    steps = merged.steps
    merged.absorb(X, y)
    assert merged.steps == steps + 900
    gamma = merged.run.iterates.scale[:, None] * merged.run.iterates.direction
    np.testing.assert_allclose(merged.run.iterates.square_norm, (gamma**2).sum(axis=1), rtol=1e-8)
    restored = made(task=task, algorithm=algorithm)
    restored.restore(merged.state())
    np.testing.assert_array_equal(predict(restored.view(), X)[1], predict(merged.view(), X)[1])


def test_leaves_the_learners_as_they_were():
    parts = learners()
    before = [learner.state() for learner in parts]
    merged = merge(parts)
    merged.absorb(*samples())
    for learner, state in zip(parts, before, strict=True):
        for name, array in learner.state().items():
            np.testing.assert_array_equal(array, state[name])


@pytest.mark.parametrize(
    "features", [MAPS["fourier"], MAPS["identity"]], ids=["fourier", "identity"]
)
def test_learners_that_met_different_features(features):
    """The map of sparse rows is as wide as the features that a learner has met."""
    X, y = samples()
    narrow, wide = made(features), made(features)
    narrow.absorb(sparse(X[:450, :5]), y[:450])
    wide.absorb(sparse(X[450:]), y[450:])
    narrow.absorb(sparse(X[:3, :5]), np.arange(3))
    wide.absorb(sparse(X[:3]), np.arange(3))
    weight = [learner.run.iterates.weight.sum() for learner in (narrow, wide)]
    for order in ([narrow, wide], [wide, narrow]):
        merged = merge(order)
        ours = predict(merged.view(), sparse(X))[1]
        met = predict(narrow.view(), sparse(X[:, :5]))[1], predict(wide.view(), sparse(X))[1]
        if features["features"] == "identity":
            np.testing.assert_allclose(ours, np.average(met, axis=0, weights=weight), rtol=1e-7)
        assert np.all(np.isfinite(ours))


def test_is_better_than_its_parts():
    X, y = clusters(702, 6000)
    parts = []
    for k in range(6):
        learner = Asset(RBF, dimension=64, lam=1e-4)
        learner.begin(X[:1], y[:1])
        learner.absorb(X[1000 * k : 1000 * k + 1000], y[1000 * k : 1000 * k + 1000])
        parts.append(learner)
    hits = [np.mean(predict(learner.view(), X)[0] == y) for learner in [*parts, merge(parts)]]
    assert hits[-1] > np.mean(hits[:-1])


def test_fourier_features_are_the_same_from_whatever_row_on():
    X, y = samples()

    def merged(*first_rows):
        parts = [made(MAPS["fourier"]) for _ in first_rows]
        for learner, part, row in zip(parts, np.split(np.arange(900), 2), first_rows, strict=True):
            learner.begin(X[row : row + 1], y[:128])
            learner.absorb(X[part], y[part])
        return predict(merge(parts).view(), X)[1]

    np.testing.assert_allclose(merged(3, 700), merged(3, 3), atol=1e-9)


class TestReasons:
    def test_nothing_to_merge(self):
        with pytest.raises(ValueError, match="no learner"):
            merge([])

    @pytest.mark.parametrize(
        ("parameters", "reason"),
        [
            ({"lam": 1e-2}, "lam differs: 0.001 and 0.01"),
            ({"task": "regression"}, "task differs"),
            ({"algorithm": "asset*"}, "algorithm differs"),
            ({"horizon": 10}, "horizon differs: None and 10"),
            ({"dimension": 31}, "dimension differs"),
            ({"features": MAPS["fourier"]}, "features differs|kernel differs"),
        ],
    )
    def test_other_parameters(self, parameters, reason):
        with pytest.raises(ValueError, match=reason):
            merge([learners()[0], learners(**({"task": "classification"} | parameters))[0]])

    def test_other_landmarks(self):
        X, y = samples()
        parts = [made(), made()]
        parts[0].absorb(X[:400], y[:400])
        parts[1].absorb(X[400:], np.r_[[0, 1, 2], y[403:]])
        with pytest.raises(ValueError, match="feature maps differ: begin all learners"):
            merge(parts)

    def test_other_widths_and_kinds_of_rows(self):
        X, y = samples()
        narrow, wide, thin = (made(MAPS["identity"]) for _ in range(3))
        narrow.absorb(X[:, :5].copy(), y)
        wide.absorb(X, y)
        thin.absorb(sparse(X), y)
        for pair in ([narrow, wide], [wide, thin]):
            with pytest.raises(ValueError, match="feature maps differ"):
                merge(pair)

    def test_other_classes(self):
        X, _ = samples()
        parts = learners()
        parts[1].absorb(X[:1], np.array([3]))
        with pytest.raises(ValueError, match=r"knows \d classes, another \d"):
            merge(parts)

    def test_targets_scaled_differently(self):
        X, y = samples("regression")
        parts = [made(MAPS["identity"], task="regression") for _ in range(2)]
        parts[0].absorb(X[:400], y[:400])
        parts[1].absorb(X[400:], y[400:])
        with pytest.raises(ValueError, match="targets are scaled differently"):
            merge(parts)

    def test_a_learner_that_is_still_warming_up(self):
        X, y = samples()
        learner = made()
        learner.absorb(X[:20], y[:20])
        for parts in ([made()], [learner], [learners()[0], learner]):
            with pytest.raises(ValueError, match="still choosing its features"):
                merge(parts)


def test_classes_that_came_in_another_order_make_no_difference():
    X, codes = samples()
    first, second = made(), made()
    for one in (first, second):
        one.begin(X[:32], codes[:128])
    first.absorb(X[:450], codes[:450])
    as_it_is = copy_of(second)
    as_it_is.meet_classes(3)
    as_it_is.absorb(X[450:], codes[450:])
    order = np.array([1, 2, 0])  # class j of the other learner is number order[j]
    second.meet_classes(3)
    second.absorb(X[450:], np.argsort(order)[codes[450:]])
    known = np.arange(3)
    found = [
        predict(merge([first, one], [known, places]).view(), X)[1]
        for one, places in ((as_it_is, known), (second, order))
    ]
    np.testing.assert_allclose(*found, rtol=1e-7, atol=1e-9)


def test_unmet_class_counts_as_absent():
    X, codes = samples()
    few = codes < 2
    first, second = made(), made()
    for one in (first, second):
        one.begin(X[:32], codes[:128])
    first.absorb(X, codes)
    second.absorb(X[few], codes[few])
    merged = merge([second, first], [np.arange(2), np.arange(3)])
    second.meet_classes(3)
    for of_one, of_other in zip(
        merged.view()[1:5], merge([second, first]).view()[1:5], strict=True
    ):
        if isinstance(of_one, np.ndarray):
            np.testing.assert_allclose(of_one, of_other, rtol=1e-12)


def test_a_sibling_has_the_features_and_nothing_else():
    learner = learners()[0]
    sibling = sibling_of(learner)
    X, codes = samples()
    sibling.meet_classes(3)
    sibling.absorb(X[300:], codes[300:])
    merged = merge([learner, sibling], [np.arange(3), np.arange(3)])
    assert merged.steps == learner.steps + 600
    with pytest.raises(ValueError, match="still choosing"):
        sibling_of(made())
