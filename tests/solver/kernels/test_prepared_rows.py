"""Which prepared rows are far: those whose kernel values float32 would round too much."""

import numpy as np
import pytest

from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import precision_for
from wolfstream.solver.kernels.prepared_rows import prepare_rows, prepare_weighted

RBF = Kernel("rbf", 1.0, 0.0, 1)
PRECISION = precision_for(RBF, 0.05)
# gamma ||x||^2 at which the rounding of an exponent reaches the tolerance of rows that count once.
LIMIT = PRECISION.tolerance / (2.0 * float(np.finfo(PRECISION.dtype).eps))


def far(share_of_limit: float, inverse_weight: list[float]) -> list[bool]:
    """Whether rows are far whose gamma ||x||^2 is such a share of the limit."""
    X = np.full((len(inverse_weight), 1), np.sqrt(share_of_limit * LIMIT))
    rows = prepare_rows(RBF, X, np.zeros(1), PRECISION.dtype, PRECISION.tolerance)
    return prepare_weighted(RBF, rows, PRECISION, np.array(inverse_weight)).far.tolist()


def test_the_precision_is_one_that_has_far_rows():
    assert PRECISION.dtype == np.float32


@pytest.mark.parametrize(("share", "expected"), [(0.9, False), (1.1, True)])
def test_rows_beyond_the_limit_are_far(share: float, expected: bool):
    assert far(share, [1.0, 1.0]) == [expected, expected]


def test_heavier_row_alone_is_far_sooner():
    """Its ridge is smaller; that of a row that counts less is larger, and changes nothing."""
    assert far(0.5, [0.25, 1.0, 4.0]) == [True, False, False]
    assert far(0.5, [0.75, 1.0, 4.0]) == [False, False, False]
    assert far(1.1, [0.25, 1.0, 4.0]) == [True, True, True]
