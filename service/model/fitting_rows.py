"""What a spec says of a model's rows, and the refusal of a request whose rows do not fit."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.errors import InvalidSamples, pointer_to
from service.spec.prepare import PrepareSpec
from solver.prepare.cells import Cells
from solver.prepare.named_rows import Rows
from solver.prepare.row_form import AnotherKind, Preparing
from solver.prepare.schema import Misfit


def preparing(prepare: PrepareSpec | None) -> Preparing | None:
    """A spec's part about preparation, as numerics take it."""
    if prepare is None:
        return None
    return Preparing(prepare.missing, prepare.named, tuple(prepare.timestamps))


@contextmanager
def fitting(rows: Rows) -> Iterator[None]:
    """Refuse the rows, with InvalidSamples, if they turn out not to fit."""
    try:
        yield
    except Misfit as misfit:
        pointer = _pointer(rows, misfit.row, misfit.name)
        of_row = misfit.detail if misfit.name is None else "does not fit the model's columns"
        raise InvalidSamples(
            f"row {misfit.row} of x {of_row}",
            [{"row": misfit.row, "pointer": pointer, "detail": misfit.named_detail}],
        ) from None
    except AnotherKind as kind:
        raise InvalidSamples(str(kind), [{"pointer": "/x", "detail": kind.must}]) from None


def _pointer(rows: Rows, row: int, name: str | None) -> str:
    if name is None or isinstance(rows, np.ndarray) or rows.names is None:
        column = [name] if name is not None and name.isdecimal() else []
        return pointer_to("x", row, *column)
    if name not in rows.names:
        return pointer_to("x", row)
    if isinstance(rows, Cells):
        return pointer_to("x", row, list(rows.names).index(name))
    return pointer_to("x", row, name)
