"""Outputs of trees for rows; a row gets the same bits alone and among others."""

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner
from wolfstream.solver.trees.boosting import Trees
from wolfstream.solver.trees.growing import leaf_of


def outputs(trees: Trees, rows: NDArray[np.uint8]) -> Float64Array:
    """Return the outputs (n, outputs) of trees; rows: (n, d) bins."""
    out = np.empty((len(rows), len(trees.start)))
    _write_outputs(trees, rows, out)
    return out


@compiled
def _write_outputs(trees: Trees, rows: NDArray[np.uint8], out: Float64Array) -> None:
    for i in range(len(rows)):
        write_outputs(trees, rows[i], out[i])


@inner
def write_outputs(trees: Trees, bins: NDArray[np.uint8], out: Float64Array) -> None:
    """Write the outputs of trees for one row.

    bins: (d,) of the row.
    out: (outputs,).
    """
    for k in range(len(out)):
        out[k] = trees.start[k]
    for t in range(len(trees.feature)):
        q = leaf_of(trees.feature[t], trees.right[t], trees.child[t], bins)
        leaf = trees.leaf[t, q]
        for k in range(len(out)):
            out[k] += leaf[k]
