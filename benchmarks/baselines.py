"""The papers' baselines as contenders: SGD with a kernel and without, Pegasos, SMO of our dual."""

import numpy as np

from benchmarks.datasets import Rows
from benchmarks.fitted import Clock, Codes, Fitted
from benchmarks.papers import SEED, Parameters
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import prepare_rows, take

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

    def classes(Z: Rows, clock: Clock) -> Codes:
        with clock.running():
            codes: Codes = model.predict(Z)
            return codes

    return Fitted(classes, lambda: X.shape[1])


def pegasos(X: Rows, y: Codes, parameters: Parameters, clock: Clock) -> Fitted:
    """ASSET* on the rows themselves, which is Pegasos: five passes of linear steps."""
    from wolfstream import AssetClassifier

    with clock.running():
        lam = 1.0 / (parameters.C_hinge * len(y))
        model = AssetClassifier(
            "asset*", kernel="linear", features="identity", lam=lam, epochs=EPOCHS, random_state=0
        ).fit(X, y)

    def classes(Z: Rows, clock: Clock) -> Codes:
        with clock.running():
            return model.predict(Z)

    return Fitted(classes, lambda: X.shape[1])


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
