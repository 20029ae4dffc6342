"""Algorithm 1 as printed, and the solvers of others, as contenders of `make bench-solvers`."""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from benchmarks.datasets import Rows
from benchmarks.fitted import Clock, Codes, Fitted, Learning
from benchmarks.papers import SEED, Parameters

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
