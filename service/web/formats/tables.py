"""Decodes Arrow IPC streams and Parquet files to the plain data of JSON bodies.

application/vnd.apache.arrow.stream    an IPC stream, without compressed buffers
application/vnd.apache.parquet         a Parquet file
"""

from typing import Any

import numpy as np

from wolfstream.service.errors import InvalidSamples, Refusal, UnsupportedFormat
from wolfstream.service.files.arrow import (
    ReaderMissing,
    TableBounds,
    read_arrow,
    read_parquet,
    unpacked_parquet,
)
from wolfstream.service.files.roles import NO_ROLES, Roles
from wolfstream.service.files.tables import TableRows, rows_of_columns
from wolfstream.service.files.text import DataFileError
from wolfstream.service.web.formats.bounds import Bounds
from wolfstream.service.web.formats.flat_rows import (
    MAX_WARNINGS,
    Fields,
    Origin,
    unnamed_column_warning,
)

ARROW, PARQUET = "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"


TABLE_DECODERS = {ARROW: read_arrow, PARQUET: read_parquet}


def decode_table(
    media_type: str, body: bytes, labelled: bool, bounds: Bounds, roles: Roles = NO_ROLES
) -> Fields:
    """Decode a table to fields. Raises InvalidSamples, UnsupportedFormat."""
    try:
        columns = TABLE_DECODERS[media_type](body, _table_bounds(bounds))
        table = rows_of_columns(columns, roles, labelled)
    except DataFileError as error:
        raise _refusal(error) from None
    fields: dict[str, Any] = {"x": _as_raw_or_lists(table), "names": table.names}
    other_columns = {"y": table.labels, "weight": table.weights} if labelled else {"ids": table.ids}
    fields |= {field: values for field, values in other_columns.items() if values is not None}
    return Fields(
        fields, Origin(), tuple(map(unnamed_column_warning, table.unnamed[:MAX_WARNINGS]))
    )


def unpacked_bytes(media_type: str, body: bytes, bounds: Bounds) -> int:
    """Return the decompressed size of a table. Raises InvalidSamples, UnsupportedFormat."""
    if media_type == ARROW:
        return len(body)
    try:
        return len(body) + unpacked_parquet(body, _table_bounds(bounds))
    except DataFileError as error:
        raise _refusal(error) from None


def _refusal(error: DataFileError) -> Refusal:
    if isinstance(error, ReaderMissing):
        return UnsupportedFormat(str(error))
    return InvalidSamples(f"the table cannot be learned or predicted: {error}")


def _table_bounds(bounds: Bounds) -> TableBounds:
    return TableBounds(bounds.rows, bounds.columns, bounds.values, bounds.n_bytes)


def _as_raw_or_lists(table: TableRows) -> Any:
    if isinstance(table.X, list):
        return table.X
    X = np.ascontiguousarray(table.X, "<f8")
    return {"dtype": "<f8", "shape": list(X.shape), "data": X.tobytes()} if len(X) else []
