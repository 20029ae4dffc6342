"""A run of the batch methods' code, which compiles it for `wolfstream train`."""

import numpy as np

from wolfstream.service.heads.exercises import rows_of_kind
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.frank_wolfe.methods import METHODS
from wolfstream.solver.frank_wolfe.one_versus_one import solve_pairs
from wolfstream.solver.frank_wolfe.solve_dual import Settings
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import n_rows


def exercise_batch(_: ModelSpec, sparse: bool) -> None:
    """Solve a small problem with each batch method."""
    X = rows_of_kind(sparse)
    codes = np.arange(n_rows(X)) % 2
    ridge = np.full(len(codes), 0.5)
    for method in METHODS:
        settings = Settings(method, start_size=8)  # type: ignore[arg-type]
        list(solve_pairs(Kernel("rbf"), X, codes, ridge, settings, np.random.default_rng(0)))
