"""What trees say of rows; a row has the same bits alone and among others."""

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled
from wolfstream.solver.trees.boosting import Trees
from wolfstream.solver.trees.growing import leaf_of


def outputs(trees: Trees, rows: NDArray[np.uint8]) -> Float64Array:
    """Return the outputs (n, outputs) of trees for rows (n, d) of bins."""
    out = np.empty((len(rows), len(trees.start)))
    _add_leaves(trees, rows, out)
    return out


@compiled
def _add_leaves(trees: Trees, rows: NDArray[np.uint8], out: Float64Array) -> None:
    for i in range(len(rows)):
        for k in range(out.shape[1]):
            out[i, k] = trees.start[k]
        for t in range(len(trees.feature)):
            leaf = trees.leaf[t, leaf_of(trees.feature[t], trees.right[t], rows[i])]
            for k in range(out.shape[1]):
                out[i, k] += leaf[k]
