"""wolfstream's solvers as contenders of `make bench-solvers`."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from benchmarks.datasets import Rows
from benchmarks.fitted import Clock, Codes, Fitted, Learning
from benchmarks.papers import Parameters
from wolfstream.solver.frank_wolfe.driver import Method

# Of kernel values, of those who keep as many as fit.
LARGE_CACHE = 4 << 30


def online(max_size: int | None) -> Learning:
    """wolfstream: one pass of MSFW with the service's defaults, but for the bound on the set."""

    def fit(X: Rows, y: Codes, parameters: Parameters, clock: Clock) -> Fitted:
        from wolfstream.solver.kernels.functions import Kernel
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
        from wolfstream.solver.kernels.functions import Kernel
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
