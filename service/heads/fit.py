"""Fits, the results of refits on a window of samples, and their records in the log."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgpack
import numpy as np
from numpy.typing import NDArray

from wolfstream.service.spec.heads import HeadName
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.sample_weights import Weights


class Window(NamedTuple):
    """Samples to be fitted, oldest first.

    Attributes:
        head: the head that the fit is for.
        sequence: the model's sequence when these were its most recent samples.
        X: rows, (n, d).
        y: targets, (n,).
        spec: the model's spec.
        epoch: the model's epoch at that sequence.
        weight: the weight of each sample, (n,); None if all are 1.
    """

    head: HeadName
    sequence: int
    X: Float64Array
    y: Float64Array
    spec: ModelSpec
    epoch: str = ""
    weight: Weights = None


class Progress(NamedTuple):
    """The progress of a solver, which stops once the violation is at most `tol`."""

    iteration: int
    kkt_violation: float
    tol: float


Observe = Callable[[Progress], None]


class Fit(NamedTuple):
    """The result of a refit.

    Attributes:
        plain: its description for clients.
        model, arrays: the fitted function, as plain data and arrays.
    """

    plain: dict[str, Any]
    model: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def fit_to_record(fit: Fit) -> bytes:
    """Return a log record: [plain, model, [name, dtype, shape, bytes] of each array]."""
    arrays = [
        [name, array.dtype.str, list(array.shape), array.tobytes()]
        for name, array in fit.arrays.items()
    ]
    packed: bytes = msgpack.packb([fit.plain, fit.model, arrays])
    return packed


def fit_from_record(record: bytes) -> Fit:
    """Invert `fit_to_record`."""
    plain, model, arrays = msgpack.unpackb(record)
    # Copied, because numba would compile its functions again for read-only arrays.
    return Fit(
        plain,
        model,
        {
            name: np.frombuffer(data, dtype).reshape(shape).copy()
            for name, dtype, shape, data in arrays
        },
    )
