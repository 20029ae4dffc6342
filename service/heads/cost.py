"""The cost of a prediction in multiplications, which decides whether the event loop computes it.

The constants below were measured, as multiples of a multiplication.
"""

from wolfstream.solver.rows.matrix import Matrix, SparseRows, n_nonzeros, n_rows

COST_OF_ROW = 1000
COST_OF_DECISION = 400  # of a row, including its text in the response
COST_OF_FUNCTION = 50  # a cosine or an exponential
COST_OF_CROSSED = 4000  # looking up the weights of a text, a code or a pair of them
_COST_OF_LOOKUP = 30  # finding a number of a sparse row


def cost_of_expansion(stored: Matrix, rows: int, entries: int) -> int:
    """Return the multiplications of a kernel expansion over stored rows; see `HeadView.cost`."""
    return rows * COST_OF_ROW + cost_of_products(stored, rows, entries)


def cost_of_products(stored: Matrix, rows: int, entries: int) -> int:
    """Return the multiplications of all products of rows with stored rows."""
    if isinstance(stored, SparseRows):
        # Each stored number is looked up once, and multiplied with each row at most once.
        lookups = _COST_OF_LOOKUP * n_nonzeros(stored)
        return lookups + rows * (n_rows(stored) + n_nonzeros(stored))
    return entries * n_rows(stored)
