"""The form and preparation of a model's rows: as its spec sets them, and in its snapshots.

While the form of the rows may still change, the first samples are saved as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from wolfstream.service.errors import InvalidSamples, pointer_to
from wolfstream.service.samples.record import from_record, to_record
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.prepare import PrepareSpec
from wolfstream.solver.prepare.bends import is_bend
from wolfstream.solver.prepare.cells import Cells
from wolfstream.solver.prepare.named_rows import NameTable, Rows, cells, rows_between
from wolfstream.solver.prepare.repeats import MOST
from wolfstream.solver.prepare.row_form import AnotherKind, PreparationParameters, RowForm
from wolfstream.solver.prepare.schema import SETTLING, Misfit, schema_from_plain
from wolfstream.solver.stream.rows import StreamRows, StreamSamples


def preparing(prepare: PrepareSpec | None) -> PreparationParameters | None:
    """Return a spec's settings of preparation in the form of the numerics."""
    if prepare is None:
        return None
    tuples = {"timestamps": tuple(prepare.timestamps), "columns": tuple(prepare.columns.items())}
    return PreparationParameters(**{**prepare.model_dump(), **tuples})


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


_FIRST = "first"


def saved_rows(rows: StreamRows) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return plain data and arrays, from which `restored_rows` continues."""
    plain: dict[str, Any] = {"dimension": rows.dimension}
    arrays: dict[str, NDArray[Any]] = {}
    if rows.names is not None:
        plain["names"] = rows.names.names()
    form = rows.form
    if form.schema is not None:
        plain["schema"] = form.schema.plain()
        plain["columns"] = rows.facts.plain()
        arrays |= rows.facts.arrays()
    if form.samples:
        plain["first_samples"] = form.samples
    if form.coded:
        plain["coded"] = list(form.coded)
    if form.bent:
        plain["bent"] = [list(pair) for pair in form.bent]
    arrays |= _packed(rows.first)
    if rows.preparation is not None:
        arrays |= rows.preparation.state()
    return plain, arrays


def restored_rows(
    prepare: PrepareSpec | None, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> StreamRows:
    """Return the rows that `saved_rows` has saved, for a spec with these settings."""
    rows = StreamRows(preparing(prepare))
    if "names" in plain:
        rows.names = NameTable(plain["names"])
    rows.first = _unpacked(arrays)
    if "schema" in plain:
        schema = schema_from_plain(plain["schema"], _one_by_one(rows.first))
        rows.form = rows.form._replace(schema=schema)
        rows.facts.restore(plain["columns"], arrays)
    elif rows.names is not None:
        rows.form = rows.form._replace(sparse=True)
    else:
        rows.form = rows.form._replace(width=plain["dimension"])
    rows.form = with_saved_codes(rows.form, plain)
    rows.restore_preparation(arrays)
    return rows


def with_saved_codes(form: RowForm, plain: Mapping[str, Any]) -> RowForm:
    """Return the form with the saved codes and logarithms. Raises ValueError for wrong ones."""
    samples, coded = plain.get("first_samples", 0), tuple(plain.get("coded", ()))
    if type(samples) is not int or not 0 <= samples <= SETTLING or not _are_numbers(coded, form):
        raise ValueError("the saved rows have codes that no rows make")
    bent = tuple((j, bend) for j, bend in plain.get("bent", ()))
    if not _are_bent(bent, form):
        raise ValueError("the saved rows have logarithms that no rows make")
    return form._replace(samples=samples, coded=coded, bent=bent)


def _are_bent(bent: tuple[tuple[Any, Any], ...], form: RowForm) -> bool:
    """Return whether the columns of logarithms are distinct columns of numbers, in order."""
    columns = [j for j, _ in bent]
    if not bent:
        return True
    if form.schema is None or not all(type(j) is int for j in columns):
        return False
    assert form.layout is not None
    are_numbers = set(columns).issubset(form.layout.numbers)
    in_order = columns == sorted(set(columns))
    return (
        are_numbers and in_order and all(type(bend) is float and is_bend(bend) for _, bend in bent)
    )


def _are_numbers(coded: tuple[Any, ...], form: RowForm) -> bool:
    """Return whether the columns of codes are distinct columns of numbers, in order."""
    if not all(type(j) is int for j in coded) or len(coded) > MOST:
        return False
    if form.schema is not None:
        assert form.layout is not None
        are_numbers = set(coded).issubset(form.layout.numbers)
    else:
        are_numbers = all(0 <= j < (form.width or 0) for j in coded)
    return are_numbers and list(coded) == sorted(set(coded))


def _one_by_one(parts: Sequence[StreamSamples]) -> Iterator[Cells]:
    """Yield each row of parts by itself, as a row of a table."""
    for part in parts:
        for i in range(len(part.y)):
            yield cells(rows_between(part.X, i, i + 1))


def _packed(parts: Sequence[StreamSamples]) -> dict[str, NDArray[Any]]:
    """Return all parts as one array of bytes; nothing if there are none."""
    if not parts:
        return {}
    records = [[part.head, to_record(Samples(*part[1:]))] for part in parts]
    return {_FIRST: np.frombuffer(msgpack.packb(records), np.uint8)}


def _unpacked(arrays: Mapping[str, NDArray[Any]]) -> list[StreamSamples]:
    """Return the parts in an array of bytes; the inverse of `_packed`."""
    if _FIRST not in arrays:
        return []
    records = msgpack.unpackb(arrays[_FIRST].tobytes())
    return [StreamSamples(head, *from_record(record)) for head, record in records]
