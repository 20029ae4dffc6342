"""Stored samples as plain arrays, from which a working set continues bit for bit.

The arrays have no kernel values: they are computed again. In blocks of other shapes they may round
differently, so the set that continues must compute them again too (`WorkingSet.restore`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import Precision
from wolfstream.solver.kernels.prepared_rows import prepare_rows, prepare_weighted
from wolfstream.solver.rows.matrix import n_rows, rows_from_arrays, rows_to_arrays
from wolfstream.solver.working_set.store import Bounds, SampleStore


def store_to_arrays(store: SampleStore) -> dict[str, NDArray[Any]]:
    """Return copies of the rows, class numbers, `entered` and sample numbers of all slots."""
    inverse = store.inverse_weight[: store.used]
    weights = {"inverse_weight": inverse.copy()} if np.any(inverse != 1.0) else {}
    return {
        **rows_to_arrays("rows", store.used_rows().exact),
        "codes": store.code[: store.used].copy(),
        "entered": store.entered[: store.used].copy(),
        "numbers": store.number[: store.used].copy(),
        **weights,
    }


def store_from_arrays(
    arrays: Mapping[str, NDArray[Any]],
    kernel: Kernel,
    origin: Float64Array,
    precision: Precision,
    bounds: Bounds,
    added: int,
) -> SampleStore:
    """Return the store of which `store_to_arrays` made the arrays, still without kernel values.

    kernel, origin, precision, bounds: as of `SampleStore`.
    added: how many samples were ever stored.
    """
    exact = rows_from_arrays("rows", arrays)
    assert exact is not None
    inverse_weight = np.array(arrays.get("inverse_weight", np.ones(n_rows(exact))))
    rows = prepare_rows(kernel, exact, origin, *precision)
    rows = prepare_weighted(kernel, rows, precision, inverse_weight)
    store = SampleStore(kernel, origin, precision, rows, bounds)
    codes, entered = np.array(arrays["codes"]), np.array(arrays["entered"])
    numbers = np.array(arrays["numbers"])
    store.restore(rows, codes, entered, inverse_weight, numbers, added)
    return store
