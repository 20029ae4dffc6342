"""The contenders of `make bench-solvers`, each in a process of its own, on one thread.

    python -m benchmarks.contenders SET NAME --data FOLDER

Prints what it measured as a line of JSON after learning and again after predicting, so that
the first is there where the second takes too long. What comes before is not measured:
loading, and a first run on 200 rows, which compiles and imports. Input that a contender wants
in a form of its own is made with the clock stopped, and its seconds are reported apart.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks import baselines, memory
from benchmarks.datasets import Dataset, Rows
from benchmarks.fitted import Clock, Codes, Fitted, Learning
from benchmarks.papers import SEED, Parameters, load_problem
from solver.frank_wolfe.driver import Method

WARM_ROWS = 200
# The service's default, and what suits sets with more support vectors than that.
MAX_SIZE, LARGER_MAX_SIZE = 5_000, 10_000
# Of all of covtype: 3.6 GB of kernel values.
LARGEST_MAX_SIZE = 30_000
# Of kernel values, of those who keep as many as fit.
LARGE_CACHE = 4 << 30
# Vowpal Wabbit's examples exist only so many at a time, so that they hardly count as memory,
# and so do the features of test rows.
EXAMPLES = 1000
PREDICTED_ROWS = 10_000


class Outcome(NamedTuple):
    """What was measured. None: not yet, or not at all.

    input_seconds: making the contender's own form of the training rows, not in fit_seconds.
    support: support vectors, or features.
    peak_bytes: above what was resident when learning began.
    """

    fit_seconds: float
    input_seconds: float
    peak_bytes: int
    predict_seconds: float | None = None
    accuracy: float | None = None
    support: int | None = None


def online(max_size: int | None) -> Learning:
    """wolfstream: one pass of MSFW with the service's defaults, but for the bound on the set."""

    def fit(X: Rows, y: Codes, parameters: Parameters, clock: Clock) -> Fitted:
        from solver.kernels.functions import Kernel
        from solver.working_set.learner import GRAM_BYTES, WorkingSet

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
        from solver.frank_wolfe.one_versus_one import solve_pairs, support_of
        from solver.frank_wolfe.solve_dual import Settings
        from solver.kernels.functions import Kernel
        from solver.kernels.precision import precision_for
        from solver.rows.matrix import take_rows
        from solver.working_set.view import expansion

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
    from solver.rows.matrix import sparse_from_csr

    if isinstance(X, csr_array):
        return sparse_from_csr(X.data, X.indices, X.indptr, X.shape[1])
    return X


def expanded(view: Any) -> Fitted:
    """Predictions of a view of ours."""
    from solver.working_set.view import predict

    def classes(Z: Rows, clock: Clock) -> Codes:
        rows = matrix(Z)
        with clock.running():
            return predict(view, rows)[0]

    return Fitted(classes, lambda: len(view.support))


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

        def classes(Z: Rows, clock: Clock) -> Codes:
            with clock.running():
                codes: Codes = model.predict(Z)
                return codes

        return Fitted(classes, lambda: len(model.support_))

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

    def classes(Z: Rows, clock: Clock) -> Codes:
        with clock.running():
            codes: Codes = model.predict(Z)
            return codes

    return Fitted(classes, lambda: features.n_components)


class Contender(NamedTuple):
    """Its title, its function, and what it can take."""

    title: str
    fit: Learning
    many_classes: bool
    sparse: bool


LIBSVM = "libsvm"
CONTENDERS = {
    "online": Contender("wolfstream, online", online(MAX_SIZE), True, True),
    "larger": Contender(
        f"wolfstream, online, max_size {LARGER_MAX_SIZE:,}", online(LARGER_MAX_SIZE), True, True
    ),
    "largest": Contender(
        f"wolfstream, online, max_size {LARGEST_MAX_SIZE:,}", online(LARGEST_MAX_SIZE), True, True
    ),
    "swap": Contender("wolfstream, SWAP", batch("swap"), True, True),
    "plain": Contender("plain Algorithm 1", plain, False, False),
    LIBSVM: Contender("LIBSVM", libsvm(200 << 20), True, True),
    "vowpal_wabbit": Contender("Vowpal Wabbit --ksvm", vowpal_wabbit, False, True),
    "nystroem": Contender("Nystroem + SGD", nystroem, True, True),
    "squared": Contender(
        "LIBSVM, squared hinge, precomputed", baselines.squared_hinge_smo, False, False
    ),
    "kernel_sgd": Contender("kernel SGD (Pegasos)", baselines.kernel_sgd, False, False),
    "linear_sgd": Contender("linear SGD", baselines.linear_sgd, True, True),
    "pegasos": Contender("Pegasos, linear, 5 passes", baselines.pegasos, True, True),
}
# Those of `benchmarks.batch_solvers`, beside LIBSVM.
BATCH = {
    "fw": Contender("wolfstream, FW", batch("fw"), True, True),
    "mfw": Contender("wolfstream, MFW", batch("mfw"), True, True),
    "swap": CONTENDERS["swap"],
    "partan": Contender("wolfstream, PARTAN", batch("partan"), True, True),
    "smo": Contender("wolfstream, SMO", batch("smo"), True, True),
}
# Those of `benchmarks.growing`.
GROWING = {
    "unbounded": Contender("one pass, no bound on the set", online(None), True, True),
    "libsvm_cached": Contender("LIBSVM, a cache of 4 GB", libsvm(LARGE_CACHE), True, True),
}
ENTERED = CONTENDERS | BATCH | GROWING
# What learns a set that is too large for the others.
LARGEST = "largest"


def warm_rows(y: Codes) -> NDArray[np.int64]:
    """Return some 200 rows, of every class alike and the first of each, in their order."""
    n_classes = int(y.max()) + 1
    chosen = [np.flatnonzero(y == code)[: WARM_ROWS // n_classes] for code in range(n_classes)]
    return np.sort(np.concatenate(chosen))


def measure(contender: Contender, data: Dataset, parameters: Parameters) -> Iterator[Outcome]:
    """Yield what is known after learning, then after predicting."""
    few = warm_rows(data.y)
    warm = contender.fit(data.X[few], data.y[few], parameters, Clock())
    warm.predict(data.X_test[:WARM_ROWS], Clock())
    warm.support()
    del warm
    resident = memory.begin()
    learning, predicting = Clock(), Clock()
    start = time.process_time()
    fitted = contender.fit(data.X, data.y, parameters, learning)
    rest = time.process_time() - start - learning.seconds
    outcome = Outcome(learning.seconds, rest, memory.peak() - resident)
    yield outcome
    parts = range(0, len(data.y_test), PREDICTED_ROWS)
    predicted = np.concatenate(
        [fitted.predict(data.X_test[i : i + PREDICTED_ROWS], predicting) for i in parts]
    )
    yield outcome._replace(
        peak_bytes=memory.peak() - resident,
        predict_seconds=predicting.seconds,
        accuracy=float((predicted == data.y_test).mean()),
        support=fitted.support(),
    )


def main() -> None:
    """Measure one contender on one set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set")
    parser.add_argument("name", choices=ENTERED)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments = parser.parse_args()
    contender = ENTERED[arguments.name]
    data, parameters = load_problem(arguments.data, arguments.set, contender.sparse)
    with threadpoolctl.threadpool_limits(1):
        for outcome in measure(contender, data, parameters):
            print(json.dumps(outcome._asdict()), flush=True)


if __name__ == "__main__":
    main()
