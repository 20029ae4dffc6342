"""A spec's settings for a model's rows, and the refusal of rows that do not fit the model."""

import numpy as np

from wolfstream.service.errors import InvalidSamples, pointer_to
from wolfstream.service.spec.prepare import PrepareSpec
from wolfstream.solver.prepare.cells import Cells
from wolfstream.solver.prepare.named_rows import Rows
from wolfstream.solver.prepare.row_form import AnotherKind, Preparing
from wolfstream.solver.prepare.schema import Misfit


def preparing(prepare: PrepareSpec | None) -> Preparing | None:
    """Return a spec's settings of preparation in the form of the numerics."""
    if prepare is None:
        return None
    tuples = {"timestamps": tuple(prepare.timestamps), "columns": tuple(prepare.columns.items())}
    return Preparing(**{**prepare.model_dump(), **tuples})


def not_fitting(rows: Rows, error: Misfit | AnotherKind, *, suggest: bool = True) -> InvalidSamples:
    """Return the refusal of rows that do not fit.

    Args:
        rows: of the request.
        error: that the numerics raised.
        suggest: whether to suggest a name for an unknown one.
    """
    if isinstance(error, AnotherKind):
        return InvalidSamples(str(error), [{"pointer": "/x", "detail": error.must}])
    pointer = _pointer(rows, error.row, error.name)
    what = error.detail if error.name is None else "does not fit the model's columns"
    # The name of an unnamed column is its index, which reads like a value.
    detail = error.full_detail(named=not _is_index(rows, error.name), suggest=suggest)
    return InvalidSamples(
        f"row {error.row} of x {what}",
        [{"row": error.row, "pointer": pointer, "detail": detail}],
    )


def _is_index(rows: Rows, name: str | None) -> bool:
    """Return whether the name of a column is its index, because the rows have no names."""
    unnamed = isinstance(rows, np.ndarray) or rows.names is None
    return unnamed and name is not None and name.isdecimal()


def _pointer(rows: Rows, row: int, name: str | None) -> str:
    if name is not None and _is_index(rows, name):
        return pointer_to("x", row, name)
    if name is None or isinstance(rows, np.ndarray) or rows.names is None:
        return pointer_to("x", row)
    if name not in rows.names:
        return pointer_to("x", row)
    if isinstance(rows, Cells):
        return pointer_to("x", row, list(rows.names).index(name))
    return pointer_to("x", row, name)
