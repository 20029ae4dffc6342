"""The cost of a prediction in multiplications, which decides whether the event loop computes it.

The costs of everything else, below, were measured as multiples of a multiplication.
"""

from wolfstream.solver.rows.matrix import Matrix, SparseRows, n_nonzeros, n_rows

# The costs of a row; of each of its decisions, as a number to send; of a cosine or an exponential;
# of a text, a code or a pair of them whose weights are looked up; of finding a number of a sparse
# row.
COST_OF_ROW, COST_OF_DECISION = 1000, 400
COST_OF_FUNCTION, COST_OF_CROSSED, _COST_OF_LOOKUP = 50, 4000, 30


def cost_of_expansion(stored: Matrix, rows: int, entries: int) -> int:
    """Return the multiplications of a kernel expansion over stored rows; see `HeadView.cost`."""
    return rows * COST_OF_ROW + cost_of_products(stored, rows, entries)


def cost_of_products(stored: Matrix, rows: int, entries: int) -> int:
    """Return the multiplications of all products of rows with stored rows."""
    if isinstance(stored, SparseRows):
        # Each stored number is looked up once, and multiplied with each row at most.
        lookups = _COST_OF_LOOKUP * n_nonzeros(stored)
        return lookups + rows * (n_rows(stored) + n_nonzeros(stored))
    return entries * n_rows(stored)
