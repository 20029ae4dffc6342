"""The contenders of `benchmarks.asset`: ASSET, scikit-learn's features with SGD, and LIBSVM.

Rows come in the same order for all, pass after pass. Ten times a pass, later once, the clock stops
and the test error of the model is taken, from features of the test rows that are not measured
either. Seconds are CPU seconds, P5's measure: others on the machine hardly change them.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import memory
from benchmarks.asset_problems import SEED, P5Problem, Split
from wolfstream.solver.arrays import Float64Array

# Rows that are made into features at once.
CHUNK = 4096
TENTHS_FOR_PASSES = 3
# After so many passes only the best settings of a peer go on.
TRIAL_PASSES, KEPT_SETTINGS = 2, 2
WARM_ROWS = 2000


class Curve(NamedTuple):
    """Test error % against CPU seconds and passes; what the contender was given, in words."""

    setting: str
    seconds: list[float]
    passes: list[float]
    error: list[float]


class Result(NamedTuple):
    """The contender's curve, the best of its settings; dimension: columns of its features.

    near_seconds: the least seconds to P5's error + `P5Problem.near` of all settings tried.
    """

    curve: Curve
    peak_bytes: int
    dimension: int
    tried: int = 1
    near_seconds: float | None = None


Contender = Callable[[Split, P5Problem, int], Iterator[Result]]


def parts_of(n: int, passes: int) -> Iterator[tuple[float, slice]]:
    """Slices of rows to learn before the next look at the test error, and passes made then."""
    for made in range(passes):
        looks = 10 if made < TENTHS_FOR_PASSES else 1
        for look in range(looks):
            yield made + (look + 1) / looks, slice(n * look // looks, n * (look + 1) // looks)


def error_of(decision: Float64Array, split: Split) -> float:
    """Percent of the test rows on the wrong side."""
    return float(100.0 * ((decision > 0.0) != (split.y_test == 1)).mean())


def ours(
    features: Literal["fourier", "nystrom"], algorithm: Literal["asset", "asset*"]
) -> Contender:
    """wolfstream: ASSET or ASSET* with P5's lambda, features and precision as its estimators."""

    def run(split: Split, problem: P5Problem, s: int) -> Iterator[Result]:
        from sklearn.utils import check_random_state

        from wolfstream.solver.asset.features import transform
        from wolfstream.solver.asset.learner import Asset
        from wolfstream.solver.asset.nystrom import BATCH_EIGENVALUE_CUT
        from wolfstream.solver.kernels.functions import Kernel

        def learner() -> Any:
            return Asset(
                Kernel("rbf", problem.gamma),
                algorithm=algorithm,
                features=features,
                dimension=s,
                lam=problem.lam,
                seed=SEED,
            )

        warm = learner()
        warm.absorb(split.X[:WARM_ROWS], split.y[:WARM_ROWS])
        del warm
        resident = memory.begin()
        # Those that scikit-learn's Nystroem draws: test errors depend on them by some tenths.
        landmarks = check_random_state(SEED).permutation(len(split.y))[:s]
        asset, curve = learner(), Curve(f"lambda {problem.lam:.3g}", [], [], [])
        start = time.process_time()
        asset.begin(split.X[landmarks], split.y[landmarks], BATCH_EIGENVALUE_CUT)
        seconds = time.process_time() - start
        V: NDArray[Any] | None = None
        tested: NDArray[Any] | None = None
        for passes, part in parts_of(len(split.y), problem.epochs):
            start = time.process_time()
            for first in range(part.start, part.stop, CHUNK):
                chunk = slice(first, min(first + CHUNK, part.stop))
                if passes <= 1.0:
                    made = transform(asset.features, split.X[chunk])
                    if V is None:
                        V = np.empty((len(split.y), made.shape[1]), made.dtype)
                    V[chunk] = made
                assert V is not None  # the first pass comes first
                asset.step(V[chunk], None, split.y[chunk])
            view = asset.view()
            seconds += time.process_time() - start
            assert V is not None
            if tested is None:
                tested = in_chunks(partial(transform, view.features), split.X_test)
            look(curve, seconds, passes, error_of(tested @ view.gamma[1] + view.b[1], split))
            yield Result(curve, memory.peak() - resident, V.shape[1])

    return run


def in_chunks(transform: Callable[[Float64Array], Float64Array], X: Float64Array) -> Float64Array:
    """Features of many rows."""
    return np.concatenate([transform(X[i : i + CHUNK]) for i in range(0, len(X), CHUNK)])


def look(curve: Curve, seconds: float, passes: float, error: float) -> None:
    """Add a point."""
    curve.seconds.append(seconds)
    curve.passes.append(passes)
    curve.error.append(error)


def peer(kind: str, dtype: str) -> Contender:
    """scikit-learn's features and SGDClassifier on the hinge, the best of a grid.

    The features are made once, while the first pass comes to their rows, and kept. All settings
    learn from the same features and are charged the same seconds for them.
    """

    def run(split: Split, problem: P5Problem, s: int) -> Iterator[Result]:
        from sklearn.kernel_approximation import Nystroem, RBFSampler

        X, X_test = split.X.astype(dtype), split.X_test.astype(dtype)
        maps = {"nystroem": Nystroem, "rbf_sampler": RBFSampler}
        features = maps[kind](gamma=problem.gamma, n_components=s, random_state=SEED)
        features.fit(X[:WARM_ROWS]).transform(X[:CHUNK])
        resident = memory.begin()
        start = time.process_time()
        features.fit(X)
        fit_seconds = time.process_time() - start
        V, seconds_at = np.empty((len(X), s), dtype), np.zeros(len(X) + 1)
        for first in range(0, len(X), CHUNK):
            start = time.process_time()
            V[first : first + CHUNK] = features.transform(X[first : first + CHUNK])
            seconds_at[first + 1 : first + CHUNK + 1] = time.process_time() - start
        charged = fit_seconds + np.cumsum(seconds_at / row_share(len(X)))
        yield from tuned(
            split, problem, V, in_chunks(features.transform, X_test), charged, resident
        )

    return run


def row_share(n: int) -> Float64Array:
    """Return how many rows share the seconds of a row's chunk, for rows 0 (none), 1, ..., n."""
    share = np.full(n + 1, float(CHUNK))
    rest = n % CHUNK
    if rest:
        share[n - rest + 1 :] = rest
    return share


def settings(problem: P5Problem) -> dict[str, dict[str, Any]]:
    """Return the grid: P5's lambda and larger ones with 'optimal', P5's with eta0 / sqrt(t)."""
    late = {"average": problem.n_train}
    grid: dict[str, dict[str, Any]] = {
        f"optimal, alpha {problem.lam:.3g}, all steps averaged": {
            "alpha": problem.lam, "average": 1,
        },
    }  # fmt: skip
    for alpha in (problem.lam, 1e-6, 1e-5):
        grid[f"optimal, alpha {alpha:.3g}, averaged from the second pass on"] = {
            "alpha": alpha
        } | late
    for eta0 in (10.0, 100.0):
        grid[
            f"{eta0:.0f} / sqrt(t), alpha {problem.lam:.3g}, averaged from the second pass on"
        ] = {
            "alpha": problem.lam, "learning_rate": "invscaling", "eta0": eta0, "power_t": 0.5,
        } | late  # fmt: skip
    return grid


def tuned(
    split: Split,
    problem: P5Problem,
    V: Float64Array,
    V_test: Float64Array,
    charged: Float64Array,
    resident: int,
) -> Iterator[Result]:
    """Yield the best setting after all passes; before, only the best go on."""
    from sklearn.linear_model import SGDClassifier

    def learner(given: dict[str, Any]) -> Any:
        return SGDClassifier(loss="hinge", random_state=SEED, **given)

    grid = settings(problem)
    learner({}).partial_fit(V[:WARM_ROWS], split.y[:WARM_ROWS], classes=[0, 1])
    models = {name: learner(given) for name, given in grid.items()}
    target = problem.paper.error[V.shape[1]]
    curves = {name: Curve(name, [], [], []) for name in grid}
    spent = dict.fromkeys(grid, 0.0)
    for passes, part in parts_of(len(V), problem.epochs):
        for name, model in models.items():
            start = time.process_time()
            model.partial_fit(V[part], split.y[part], classes=[0, 1])
            spent[name] += time.process_time() - start
            featured = charged[part.stop] if passes <= 1.0 else charged[-1]
            error = error_of(model.decision_function(V_test), split)
            look(curves[name], spent[name] + featured, passes, error)
        best = sorted(models, key=lambda name: rank(curves[name], target))
        if passes >= TRIAL_PASSES:
            models = {name: models[name] for name in best[:KEPT_SETTINGS]}
        near = [seconds_to(curve, target + problem.near) for curve in curves.values()]
        soonest = min((seconds for seconds in near if seconds), default=None)
        peak = memory.peak() - resident
        yield Result(curves[best[0]], peak, V.shape[1], len(grid), soonest)


def rank(curve: Curve, target: float) -> tuple[float, float]:
    """Sorts by the seconds to the target, then by the error now."""
    return seconds_to(curve, target) or np.inf, curve.error[-1]


def seconds_to(curve: Curve, target: float) -> float | None:
    """CPU seconds until the test error, rounded as P5's to a tenth of a percent, is no larger."""
    for seconds, error in zip(curve.seconds, curve.error, strict=True):
        if error < target + 0.05:
            return seconds
    return None


def libsvm(split: Split, problem: P5Problem, s: int) -> Iterator[Result]:  # noqa: ARG001
    """LIBSVM through scikit-learn, C = 1 / (lambda m), its default tolerance and cache."""
    from sklearn.svm import SVC

    C = 1.0 / (problem.lam * len(split.y))
    model = SVC(C=C, gamma=problem.gamma, cache_size=200)
    model.fit(split.X[:WARM_ROWS], split.y[:WARM_ROWS])
    resident = memory.begin()
    start = time.process_time()
    model.fit(split.X, split.y)
    seconds = time.process_time() - start
    peak = memory.peak() - resident
    curve = Curve(f"C {C:.4g}", [seconds], [1.0], [float("nan")])
    yield Result(curve, peak, len(model.support_))
    error = float(100.0 * (model.predict(split.X_test) != split.y_test).mean())
    yield Result(curve._replace(error=[error]), peak, len(model.support_))


CONTENDERS: dict[str, Contender] = {
    "ASSET, Nystrom": ours("nystrom", "asset"),
    "ASSET*, Nystrom": ours("nystrom", "asset*"),
    "ASSET, Fourier": ours("fourier", "asset"),
    "Nystroem + SGD": peer("nystroem", "float64"),
    "Nystroem + SGD, float32": peer("nystroem", "float32"),
    "RBFSampler + SGD": peer("rbf_sampler", "float64"),
    "LIBSVM": libsvm,
}
