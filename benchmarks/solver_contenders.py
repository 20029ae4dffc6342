"""Solvers of ours, peers and the papers' baselines, which learn a split set and predict the rest.

What comes before is not measured: loading, and a first run on 200 rows, which compiles and imports.
Input that a contender wants in a form of its own is made with the clock stopped, and its seconds
are apart. Vowpal Wabbit's --ksvm is one pass of LASVM without a bias.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks import memory
from benchmarks.datasets import Dataset, Rows
from benchmarks.papers import SEED, Parameters
from benchmarks.results import Figures
from wolfstream.solver.frank_wolfe.driver import Method
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import prepare_rows, take

WARM_ROWS = 200
# So many test rows at a time, so that their features hardly count as memory.
PREDICTED_ROWS = 10_000

Codes = NDArray[np.int64]


class Clock:
    """Seconds spent inside `running`."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count what happens within."""
        start = time.process_time()
        yield
        self.seconds += time.process_time() - start


class Fitted(NamedTuple):
    """A model: class codes of rows, and how many support vectors or features it has.

    support: asked for after the predictions.
    """

    predict: Callable[[Rows, Clock], Codes]
    support: Callable[[], int]


Learning: TypeAlias = Callable[[Rows, Codes, Parameters, Clock], Fitted]


def estimator(model: Any, support: Callable[[], int]) -> Fitted:
    """Predictions of a fitted estimator."""

    def classes(Z: Rows, clock: Clock) -> Codes:
        with clock.running():
            codes: Codes = model.predict(Z)
            return codes

    return Fitted(classes, support)


# Of kernel values, of those who keep as many as fit.
LARGE_CACHE = 4 << 30


def online(max_size: int | None) -> Learning:
    """wolfstream: one pass of MSFW with the service's defaults, but for the bound on the set."""

    def fit(X: Rows, y: Codes, parameters: Parameters, clock: Clock) -> Fitted:
        from wolfstream.solver.working_set.learner import GRAM_BYTES, WorkingSet

        rows = matrix(X)
        with clock.running():
            learner = WorkingSet(
                Kernel("rbf", parameters.gamma),
                parameters.C,
                max_size=max_size,
                gram_bytes_max=GRAM_BYTES if max_size else LARGE_CACHE,
            )
            learner.absorb(rows, y)
            view = learner.view()
        return expanded(view)

    return fit


def batch(method: Method) -> Learning:
    """wolfstream: a batch solver with its defaults, to a gap of a tenth of the objective."""

    def fit(X: Rows, y: Codes, parameters: Parameters, clock: Clock) -> Fitted:
        from wolfstream.solver.frank_wolfe.one_versus_one import solve_pairs, support_of
        from wolfstream.solver.frank_wolfe.solve_dual import Settings
        from wolfstream.solver.kernels.precision import precision_for
        from wolfstream.solver.rows.matrix import take_rows
        from wolfstream.solver.working_set.view import expansion

        rows, kernel = matrix(X), Kernel("rbf", parameters.gamma)
        with clock.running():
            ridge = np.full(len(y), 0.5 / parameters.C)
            settings = Settings(method, cache_bytes=4 * 10**9)
            random = np.random.default_rng(0)
            pairs = list(solve_pairs(kernel, rows, y, ridge, settings, random))
            support, alpha = support_of(pairs, len(y))
            sign = np.array([np.where(y[support] == pair.pair[1], 1.0, -1.0) for pair in pairs])
            weights = alpha * sign
            q, gap = np.array([(-pair.solution.objective, pair.solution.gap) for pair in pairs]).T
            view = expansion(
                kernel,
                take_rows(rows, support),
                int(y.max()) + 1,
                weights,
                weights.sum(axis=1),
                q,
                gap,
                precision_for(kernel, ridge[0]),
            )
        return expanded(view)

    return fit


def matrix(X: Rows) -> Any:
    """Return what the solver takes: dense rows as they are, CSR in its own form."""
    from wolfstream.solver.rows.matrix import sparse_from_csr

    if isinstance(X, csr_array):
        return sparse_from_csr(X.data, X.indices, X.indptr, X.shape[1])
    return X


def expanded(view: Any) -> Fitted:
    """Predictions of a view of ours."""
    from wolfstream.solver.working_set.predictions import predict

    def classes(Z: Rows, clock: Clock) -> Codes:
        rows = matrix(Z)
        with clock.running():
            return predict(view, rows)[0]

    return Fitted(classes, lambda: len(view.support))


# Vowpal Wabbit's examples exist only so many at a time, so that they hardly count as memory.
EXAMPLES = 1000


def plain(X: Rows, y: Codes, parameters: Parameters, clock: Clock) -> Fitted:
    """P1's Algorithm 1 as printed, compiled: `benchmarks.plain_sfw`."""
    from benchmarks.plain_sfw import plain_decisions, plain_sfw

    sign = np.where(y == 1, 1.0, -1.0)
    with clock.running():
        admitted, alpha, _ = plain_sfw(X, sign, parameters.gamma, parameters.C)
    weighted = alpha > 0.0
    S, S_sign, alpha = X[admitted][weighted], sign[admitted][weighted], alpha[weighted]

    def classes(Z: Rows, clock: Clock) -> Codes:
        with clock.running():
            decision = plain_decisions(Z, S, S_sign, alpha, parameters.gamma)
        return (decision > 0.0).astype(np.int64)

    return Fitted(classes, lambda: len(alpha))


def libsvm(cache_bytes: int) -> Learning:
    """LIBSVM through scikit-learn, with its default tolerance."""

    def fit(X: Rows, y: Codes, parameters: Parameters, clock: Clock) -> Fitted:
        from sklearn.svm import SVC

        with clock.running():
            model = SVC(
                C=parameters.C_hinge, gamma=parameters.gamma, cache_size=cache_bytes >> 20
            ).fit(X, y)

        return estimator(model, lambda: len(model.support_))

    return fit


def vowpal_wabbit(X: Rows, y: Codes, parameters: Parameters, clock: Clock) -> Fitted:
    """Vowpal Wabbit's --ksvm: one pass of LASVM without a bias, one reprocess step a sample.

    Its kernel is exp(-bandwidth ||x - z||^2), so bandwidth is gamma. Its dual weights lie in
    [0, 1] and are divided by l2 in the decision, so C is 1 / l2. Its rows are float32.
    """
    from vowpalwabbit import Workspace

    vw = Workspace(
        f"--ksvm --kernel rbf --bandwidth {parameters.gamma:.9g} --l2 {1 / parameters.C_hinge:.9g}",
        enable_logging=True,
    )
    for start in range(0, len(y), EXAMPLES):
        part = slice(start, start + EXAMPLES)
        labels = np.where(y[part] == 1, "1", "-1")
        lines = [f"{label} {row}" for label, row in zip(labels, _vw_rows(X[part]), strict=True)]
        examples = [vw.parse(line) for line in lines]
        with clock.running():
            for example in examples:
                vw.learn(example)
        for example in examples:
            vw.finish_example(example)

    def classes(Z: Rows, clock: Clock) -> Codes:
        decisions = []
        for start in range(0, Z.shape[0], EXAMPLES):
            examples = [vw.parse(row) for row in _vw_rows(Z[start : start + EXAMPLES])]
            with clock.running():
                decisions += [vw.predict(example) for example in examples]
            for example in examples:
                vw.finish_example(example)
        return (np.array(decisions) > 0.0).astype(np.int64)

    def support() -> int:
        vw.finish()
        last = next(line for line in reversed(vw.get_log()) if line.startswith("Num support"))
        return int(last.partition("=")[2])

    return Fitted(classes, support)


def _vw_rows(X: Rows) -> Iterator[str]:
    """Yield rows as Vowpal Wabbit's text, zeros left out."""
    rows = csr_array(X)
    for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        pairs = zip(rows.indices[start:stop], rows.data[start:stop], strict=True)
        yield "|x " + " ".join(f"{i}:{value:.9g}" for i, value in pairs)


def nystroem(X: Rows, y: Codes, parameters: Parameters, clock: Clock) -> Fitted:
    """scikit-learn's Nystroem features, 1000 of them, and linear SGD on the hinge."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline

    n = len(y)
    features = Nystroem(gamma=parameters.gamma, n_components=min(1000, n), random_state=SEED)
    sgd = SGDClassifier(loss="hinge", alpha=1.0 / (parameters.C_hinge * n), random_state=SEED)
    model = make_pipeline(features, sgd)
    with clock.running():
        model.fit(X, y)

    return estimator(model, lambda: features.n_components)


BLOCK, EPOCHS = 256, 5
# A matrix of this many kernel values in float64 takes 1.2 GB.
MOST_PRECOMPUTED = 12_000


def kernel_sgd(X: Rows, y: Codes, parameters: Parameters, clock: Clock) -> Fitted:
    """Pegasos in the feature space of the rbf kernel: one pass over the hinge, without a bias.

    w <- (1 - 1/t) w + y_t phi(x_t) / (lambda t) where y_t w'phi(x_t) < 1, lambda = 1/(C n): each
    such sample has the same weight in the end. Kernel values of 256 samples are one product.
    """
    n, kernel = len(y), Kernel("rbf", parameters.gamma)
    sign = np.where(y == 1, 1.0, -1.0)
    with clock.running():
        rows = prepare_rows(kernel, X, X[0].copy(), np.dtype(np.float32))
        kept = np.empty(0, np.int64)
        scale = parameters.C_hinge * n
        for start in range(0, n, BLOCK):
            block = np.arange(start, min(start + BLOCK, n))
            former = kernel_block(kernel, take(rows, block), take(rows, kept)) @ sign[kept]
            own = kernel_block(kernel, take(rows, block), take(rows, block))
            weight = np.zeros(len(block))
            for k, t in enumerate(block):
                decision = scale / (t + 1) * (former[k] + own[k] @ weight)
                if sign[t] * decision < 1.0:
                    weight[k] = sign[t]
            kept = np.concatenate([kept, block[weight != 0.0]])
        support = take(rows, kept)

    def classes(Z: Rows, clock: Clock) -> Codes:
        with clock.running():
            others = prepare_rows(kernel, Z, X[0].copy(), np.dtype(np.float32))
            parts = [slice(i, i + BLOCK) for i in range(0, len(Z), BLOCK)]
            decisions = [kernel_block(kernel, take(others, p), support) @ sign[kept] for p in parts]
            return (np.concatenate(decisions) > 0.0).astype(np.int64)

    return Fitted(classes, lambda: len(kept))


def linear_sgd(X: Rows, y: Codes, parameters: Parameters, clock: Clock) -> Fitted:
    """scikit-learn's linear SGD on the hinge, with its defaults."""
    from sklearn.linear_model import SGDClassifier

    with clock.running():
        alpha = 1.0 / (parameters.C_hinge * len(y))
        model = SGDClassifier(loss="hinge", alpha=alpha, random_state=SEED).fit(X, y)

    return estimator(model, lambda: X.shape[1])


def pegasos(X: Rows, y: Codes, parameters: Parameters, clock: Clock) -> Fitted:
    """ASSET* on the rows themselves, which is Pegasos: five passes of linear steps."""
    from wolfstream import AssetClassifier

    with clock.running():
        lam = 1.0 / (parameters.C_hinge * len(y))
        model = AssetClassifier(
            "asset*", kernel="linear", features="identity", lam=lam, epochs=EPOCHS, random_state=0
        ).fit(X, y)

    return estimator(model, lambda: X.shape[1])


def squared_hinge_smo(X: Rows, y: Codes, parameters: Parameters, clock: Clock) -> Fitted:
    """LIBSVM's SMO of our own problem: C-SVC with no slack on K + I / (2 C), precomputed."""
    from sklearn.svm import SVC

    if len(y) > MOST_PRECOMPUTED:
        raise SystemExit(f"a precomputed kernel of {len(y):,} rows takes too much memory")
    kernel = Kernel("rbf", parameters.gamma)
    origin, dtype = X[0].copy(), np.dtype(np.float64)
    with clock.running():
        rows = prepare_rows(kernel, X, origin, dtype)
        K = kernel_block(kernel, rows, rows)
        K[np.diag_indices(len(y))] += 0.5 / parameters.C
        model = SVC(C=1e9, kernel="precomputed", cache_size=200).fit(K, y)
        support = take(rows, model.support_)

    def classes(Z: Rows, clock: Clock) -> Codes:
        with clock.running():
            values = kernel_block(kernel, prepare_rows(kernel, Z, origin, dtype), support)
            # Decisions of pairs of classes are votes; of two classes the sum decides alone.
            decision = np.asarray(values @ model.dual_coef_[0] + model.intercept_[0], np.float64)
            return (decision > 0.0).astype(np.int64)

    return Fitted(classes, lambda: len(model.support_))


def warm_rows(y: Codes) -> NDArray[np.int64]:
    """Return some 200 rows, of every class alike and the first of each, in their order."""
    n_classes = int(y.max()) + 1
    chosen = [np.flatnonzero(y == code)[: WARM_ROWS // n_classes] for code in range(n_classes)]
    return np.sort(np.concatenate(chosen))


def measure(fit: Learning, data: Dataset, parameters: Parameters) -> Iterator[Figures]:
    """Yield what is known after learning, then after predicting.

    seconds: to learn. input_seconds: making the contender's own form of the training rows, not in
    `seconds`. support: support vectors, or features. peak_bytes: above what was resident when
    learning began. rate: predictions a second.
    """
    few = warm_rows(data.y)
    warm = fit(data.X[few], data.y[few], parameters, Clock())
    warm.predict(data.X_test[:WARM_ROWS], Clock())
    warm.support()
    del warm
    resident = memory.begin()
    learning, predicting = Clock(), Clock()
    start = time.process_time()
    fitted = fit(data.X, data.y, parameters, learning)
    rest = time.process_time() - start - learning.seconds
    figures: Figures = {"seconds": learning.seconds, "input_seconds": rest}
    yield figures | {"peak_bytes": memory.peak() - resident}
    parts = range(0, len(data.y_test), PREDICTED_ROWS)
    predicted = np.concatenate(
        [fitted.predict(data.X_test[i : i + PREDICTED_ROWS], predicting) for i in parts]
    )
    yield figures | {
        "peak_bytes": memory.peak() - resident,
        "rate": len(data.y_test) / max(predicting.seconds, 1e-9),
        "accuracy": 100.0 * float((predicted == data.y_test).mean()),
        "support": fitted.support(),
    }
