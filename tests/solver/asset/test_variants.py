"""ASSET and ASSET* in all their variants, step by step against the oracle of P5 Algorithm 1."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.solver import oracle_asset
from tests.solver.streams import blocks, clusters, small_streams, sparse, thin_clusters
from wolfstream.solver.asset.features import transform
from wolfstream.solver.asset.iterates import averaged
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.view import predict
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import take_rows

RBF, LINEAR = Kernel("rbf", 0.2), Kernel("linear")
CUBIC = Kernel("polynomial", 0.2, 3, 0.5)
MAPS = {
    "fourier": {"kernel": RBF, "features": "fourier"},
    "nystrom": {"kernel": RBF, "features": "nystrom"},
    "nystrom of a polynomial": {"kernel": CUBIC, "features": "nystrom"},
    "identity": {"kernel": LINEAR, "features": "identity"},
}
for_each_map = pytest.mark.parametrize("features", MAPS.values(), ids=MAPS)
for_each_algorithm = pytest.mark.parametrize("algorithm", ["asset", "asset*"])
for_each_task = pytest.mark.parametrize("task", ["classification", "regression"])


def made(features, **parameters):
    return Asset(**features, **({"dimension": 16, "lam": 1e-3} | parameters))


def samples(task, seed=401, n=300, n_classes=3):
    X, codes = clusters(seed, n, n_classes=n_classes)
    return X, codes if task == "classification" else 50.0 + 9.0 * X[:, 0] * X[:, 1]


def begun(X, y, features, **parameters):
    """A learner that takes its map and scale from the whole stream, and so warms nothing up."""
    learner = made(features, **parameters)
    learner.begin(X[:16], y)
    return learner


def oracle_for(learner, n_classes=3):
    parameters = learner.parameters
    regression = parameters["task"] == "regression"
    return oracle_asset.Asset(
        learner.run.iterates.direction.shape[1],
        1 if regression else n_classes,
        parameters["lam"],
        star=parameters["algorithm"] == "asset*",
        epsilon=parameters["epsilon"] if regression else None,
        horizon=parameters["horizon"],
    )


def assert_close_to_oracle(learner, oracle, average_from=None):
    gamma = learner.run.iterates.scale[:, None] * learner.run.iterates.direction
    known = learner.n_classes or 1
    size = np.abs(oracle.gamma[-1]).max() + oracle.radius
    close = {"rtol": 1e-9, "atol": 1e-9 * size}
    np.testing.assert_allclose(gamma[:known], oracle.gamma[-1][:known], **close)
    np.testing.assert_allclose(learner.run.iterates.b[:known], oracle.b[-1][:known], **close)
    ours, theirs = averaged(learner.run.iterates), oracle.averaged(average_from)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a[:known], b[:known], **close)


class TestEveryIterate:
    @pytest.mark.sweep
    @for_each_map
    @for_each_algorithm
    @for_each_task
    @pytest.mark.parametrize("horizon", [None, 40])
    def test_is_the_papers(self, features, algorithm, task, horizon):
        X, y = samples(task)
        learner = begun(X, y, features, algorithm=algorithm, task=task, horizon=horizon)
        oracle = oracle_for(learner)
        target = (y - learner.scale.centre) / learner.scale.unit if task == "regression" else y
        for i, V in enumerate(transform(learner.features, X)):
            learner.absorb(X[i : i + 1], y[i : i + 1])
            oracle.learn(V, target[i])
            assert_close_to_oracle(learner, oracle)

    @pytest.mark.sweep
    @for_each_task
    @pytest.mark.parametrize("average_from", [1, 30, 90, 1000])
    def test_is_averaged_from_the_given_one(self, task, average_from):
        X, y = samples(task)
        parameters = {"task": task, "average_from": average_from, "horizon": 70}
        learner = begun(X, y, MAPS["fourier"], **parameters)
        oracle = oracle_for(learner)
        target = (y - learner.scale.centre) / learner.scale.unit if task == "regression" else y
        for i, V in enumerate(transform(learner.features, X)):
            learner.absorb(X[i : i + 1], y[i : i + 1])
            oracle.learn(V, target[i])
            assert_close_to_oracle(learner, oracle, average_from)

    @for_each_algorithm
    @pytest.mark.parametrize("lam", [1e-8, 1.0, 1e4])
    def test_is_the_papers_for_any_lambda(self, algorithm, lam):
        for task in ("classification", "regression"):
            X, y = samples(task)
            learner = begun(X, y, MAPS["nystrom"], algorithm=algorithm, task=task, lam=lam)
            oracle = oracle_for(learner)
            target = (y - learner.scale.centre) / learner.scale.unit if task == "regression" else y
            learner.absorb(X, y)
            for V, of_sample in zip(transform(learner.features, X), target, strict=True):
                oracle.learn(V, of_sample)
            assert_close_to_oracle(learner, oracle)

    @for_each_algorithm
    @for_each_task
    def test_is_the_papers_after_many_steps(self, algorithm, task):
        """Norms, scales and sums that are carried along for thousands of steps do not drift."""
        X, y = samples(task, n=5000)
        learner = begun(X, y, MAPS["fourier"], algorithm=algorithm, task=task, lam=1e-2)
        oracle = oracle_for(learner)
        target = (y - learner.scale.centre) / learner.scale.unit if task == "regression" else y
        learner.absorb(X, y)
        for V, of_sample in zip(transform(learner.features, X), target, strict=True):
            oracle.learn(V, of_sample)
        assert_close_to_oracle(learner, oracle)

    @pytest.mark.parametrize("rows", [np.asarray, sparse], ids=["dense", "sparse"])
    @for_each_algorithm
    def test_of_rows_out_of_all_proportion_stays_exact(self, rows, algorithm):
        """One long row shrinks the iterate's scale a thousandfold in a single projection.

        Of sparse rows, each block of which has a few columns, all others must follow.
        """
        X, y = samples("classification", n_classes=2)
        X = np.hstack([X * (np.arange(300)[:, None] % 4 == k) for k in range(4)])
        X[150::7] *= 1e6
        learner = made(MAPS["identity"], lam=1e-2, algorithm=algorithm)
        learner.begin(rows(X), y)
        learner.widen(rows(X))
        oracle = oracle_for(learner, 2)
        for part in blocks(300, 3):
            learner.absorb(rows(X[part]), y[part])
        for V, code in zip(X, y, strict=True):
            oracle.learn(V, code)
        assert oracle.projections > 20
        assert_close_to_oracle(learner, oracle)


class TestPegasos:
    """ASSET* with identity features is Pegasos with a batch of one."""

    def test_its_steps(self):
        X, codes = clusters(402, 500)
        lam, w = 0.01, np.zeros(4)
        learner = made(MAPS["identity"], algorithm="asset*", lam=lam)
        for t, (x, code) in enumerate(zip(X, codes, strict=True), start=1):
            y = 1.0 if code == 1 else -1.0
            active = y * (w @ x) < 1.0
            w = (1.0 - 1.0 / t) * w + (y / (lam * t) * x if active else 0.0)
            w *= min(1.0, 1.0 / np.sqrt(lam) / np.linalg.norm(w)) if w.any() else 1.0
            learner.absorb(x[None], np.array([code]))
            if learner.n_classes == 2:
                view = learner.view()
                np.testing.assert_allclose(view.gamma[1], w, rtol=1e-9, atol=1e-12)
                assert not view.b.any()

    def test_comes_to_the_optimum(self):
        X, codes = clusters(403, 2000, apart=1.0)
        sign, lam = 2.0 * codes - 1.0, 0.1
        learner = made(MAPS["identity"], algorithm="asset*", lam=lam)

        def objective(w):
            return 0.5 * lam * w @ w + np.maximum(1.0 - sign * (X @ w), 0.0).mean()

        for _ in range(20):
            learner.absorb(X, codes)
        w = learner.view().gamma[1]
        # By convexity a subgradient bounds the distance: f(w) - f* <= ||g||^2 / (2 lambda).
        nearby = [objective(w + step) for step in 0.1 * np.vstack([np.eye(4), -np.eye(4)])]
        assert objective(w) < 1.01 * min(nearby)


class TestHorizon:
    @pytest.mark.parametrize(("algorithm", "lam"), [("asset", 1e-3), ("asset*", 0.1)])
    def test_a_model_follows_a_stream_that_turns_round(self, algorithm, lam):
        """After 4000 samples every label changes its side."""
        X, codes = clusters(404, 4400, noise=0.0)
        codes[4000:] = 1 - codes[4000:]
        hits = {}
        for horizon in (None, 100):
            parameters = {"algorithm": algorithm, "lam": lam, "dimension": 50}
            learner = made(MAPS["fourier"], horizon=horizon, **parameters)
            learner.absorb(X[:4300], codes[:4300])
            hits[horizon] = np.mean(predict(learner.view(), X[4300:])[0] == codes[4300:])
        assert hits[100] > 0.75
        assert hits[None] < 0.6

    @for_each_task
    def test_a_regime_that_lasts_is_forgotten_within_two_windows(self, task):
        """Whatever came before, the average is of the last 2 N steps at most."""
        X, y = samples(task, n=400)
        learner = begun(X, y, MAPS["fourier"], task=task, horizon=50)
        learner.absorb(X[:399], y[:399])
        assert learner.run.iterates.weight[0] == 0.0
        eta = learner.run.iterates.weight[1] / 50
        learner.absorb(X[399:], y[399:])
        assert learner.run.iterates.weight[0] == pytest.approx(eta, rel=0.05)


class TestBlocks:
    @for_each_map
    @for_each_algorithm
    @for_each_task
    def test_any_length_gives_the_model_of_one_at_a_time(self, features, algorithm, task):
        X, y = samples(task)
        parameters = {"algorithm": algorithm, "task": task}
        singly = made(features, **parameters)
        said = [singly.absorb(X[part], y[part]) for part in blocks(300, 1)]
        expected = np.concatenate([answer.prediction for answer in said])
        for length in (7, 64, 300):
            learner = made(features, **parameters)
            answers = [learner.absorb(X[part], y[part]) for part in blocks(300, length)]
            predicted = np.concatenate([answer.prediction for answer in answers])
            if task == "classification":
                assert np.mean(predicted == expected) > 0.99
            else:
                np.testing.assert_allclose(predicted, expected, rtol=1e-5)
            view, other = learner.view(), singly.view()
            size = np.abs(other.gamma).max()
            np.testing.assert_allclose(
                transform(view.features, X) @ view.gamma.T,
                transform(other.features, X) @ other.gamma.T,
                rtol=0,
                atol=1e-5 * size,
            )

    @for_each_map
    def test_the_same_calls_give_the_same_bits(self, features):
        X, y = samples("classification")
        views = []
        for _ in range(2):
            learner = made(features)
            for part in blocks(300, 37):
                learner.absorb(X[part], y[part])
            views.append(learner.view())
        np.testing.assert_array_equal(views[0].gamma, views[1].gamma)

    @settings(deadline=None)
    @given(
        stream=small_streams(),
        features=st.sampled_from(list(MAPS.values())),
        algorithm=st.sampled_from(["asset", "asset*"]),
        regression=st.booleans(),
        horizon=st.sampled_from([None, 1, 3, 10]),
        lam=st.floats(1e-6, 1e3),
        dimension=st.integers(1, 9),
    )
    def test_any_stream_leaves_a_finite_feasible_model(
        self, stream, features, algorithm, regression, horizon, lam, dimension
    ):
        X, codes = stream
        task = "regression" if regression else "classification"
        y = X[:, 0] ** 3 if regression else codes
        parameters = {"lam": lam, "dimension": dimension, "horizon": horizon}
        learner = made(features, algorithm=algorithm, task=task, **parameters)
        answer = learner.absorb(X, y)
        radius = np.sqrt((learner.run.progress.loss[0] if regression else 1.0) / lam)
        gamma = learner.run.iterates.scale[:, None] * learner.run.iterates.direction
        norms = np.linalg.norm(gamma, axis=1)
        assert norms.max() <= radius * (1 + 1e-9)
        np.testing.assert_allclose(
            learner.run.iterates.square_norm,
            norms**2,
            rtol=1e-6,
            atol=1e-9 * max(radius, 1.0) ** 2,
        )
        if regression:
            assert np.isnan(answer.prediction).tolist() == [True] + [False] * (len(y) - 1)
            assert np.all(np.isfinite(predict(learner.view(), X)[1]))


class TestSparse:
    @for_each_map
    @for_each_algorithm
    @for_each_task
    def test_rows_give_the_model_of_dense_ones(self, features, algorithm, task):
        X, codes = thin_clusters(405, 300, n_classes=3)
        X[0] = 0.0  # Fourier's origin of dense rows
        y = codes if task == "classification" else X[:, 1] - 2.0 * X[:, 2]
        models = []
        for rows in (X, sparse(X)):
            learner = made(features, algorithm=algorithm, task=task)
            for part in blocks(300, 90):
                learner.absorb(take_rows(rows, part), y[part])
            models.append(predict(learner.view(), rows)[1])
        size = np.abs(models[0]).max()
        np.testing.assert_allclose(models[1], models[0], rtol=0, atol=1e-5 * size)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lam": 0.0}, "lam is 0.0; it must be a finite number above zero"),
        ({"lam": 0.0, "algorithm": "asset*"}, "the steps of asset* are 1 / (lam j)"),
        ({"lam": np.inf}, "lam is inf"),
        ({"lam": np.nan}, "lam is nan"),
        ({"epsilon": -1.0}, "epsilon is -1.0"),
        ({"epsilon": np.nan}, "epsilon is nan"),
        ({"dimension": 0}, "dimension is 0; it must be at least 1"),
        ({"average_from": 0}, "average_from is 0"),
        ({"horizon": 0}, "horizon is 0"),
        ({"task": "ranking"}, "it must be classification or regression"),
        ({"algorithm": "pegasos"}, "it must be asset or asset*"),
        ({"algorithm": "asset*", "average_from": 5}, "nothing is averaged"),
        ({"features": "identity"}, "identity features exist for the linear kernel"),
    ],
    ids=str,
)
def test_parameters_that_are_none(parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Asset(RBF, **parameters)


class TestLastIterate:
    @for_each_map
    @for_each_task
    def test_is_the_model_without_averaging(self, features, task):
        X, y = samples(task)
        learner = begun(X, y, features, average=False)
        averaging = begun(X, y, features)
        for part in blocks(len(y), 50):
            for each in (learner, averaging):
                each.absorb(X[part], y[part])
            iterates = averaging.run.iterates
            gamma = iterates.scale[:, None] * iterates.direction
            known = learner.n_classes or 1
            close = {"rtol": 1e-9, "atol": 1e-9 * np.abs(gamma).max()}
            np.testing.assert_allclose(learner.view().gamma, gamma[:known], **close)
            np.testing.assert_allclose(learner.view().b, iterates.b[:known], **close)

    @for_each_task
    def test_is_what_answers_before_learning(self, task):
        X, y = samples(task, n_classes=2)
        learner = begun(X, y, MAPS["fourier"], average=False)
        learner.absorb(X[:100], y[:100])
        for i in range(100, 130):
            expected = predict(learner.view(), X[i : i + 1])
            said = learner.absorb(X[i : i + 1], y[i : i + 1])
            np.testing.assert_allclose(said.decision, expected[1], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(said.prediction, expected[0], rtol=1e-9)
