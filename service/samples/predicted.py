"""Records of the log for predicted rows, and for samples made of predicted rows and labels."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgpack
import numpy as np
from numpy.typing import NDArray

from wolfstream.service.samples.ids import RowId
from wolfstream.service.samples.record import from_record, to_record
from wolfstream.service.samples.validation import Samples
from wolfstream.service.samples.values import name_problem, value_problem
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.cells import NO_TEXT, Cells
from wolfstream.solver.prepare.named_rows import NamedRows, Rows, n_rows

_NO_TARGETS: Float64Array = np.empty(0)


class PredictedRows(NamedTuple):
    """Rows of one request that wait for labels.

    Attributes:
        first: how many rows of the model were predicted before them.
        time: of the prediction, in ms since 1970.
        ids: of the rows.
        rows: as a record.
        prediction: of the served head, for each row.
        sequence, epoch: of the model that predicted.
    """

    first: int
    time: int
    ids: list[RowId]
    rows: bytes
    prediction: list[Any]
    sequence: int
    epoch: str


class JoinedRows(NamedTuple):
    """Predicted rows whose labels have come.

    Attributes:
        time: when the labels were joined, in ms since 1970.
        ids: of the rows.
        prediction: that was made for each row.
    """

    time: int
    ids: list[RowId]
    prediction: list[Any]

    def part(self, start: int, stop: int) -> "JoinedRows":
        """Return some of the rows."""
        return JoinedRows(self.time, self.ids[start:stop], self.prediction[start:stop])


def rows_record(X: Rows) -> bytes:
    """Return rows as a part of a record."""
    return to_record(Samples(X, _NO_TARGETS))


def decode_rows(record: bytes) -> Rows:
    """Invert `rows_record`; the rows equal, to the bit, those of a record of samples."""
    return from_record(record).X


def checked_rows(record: bytes, missing: bool) -> int:
    """Return the number of rows in a record from outside, after checking it.

    missing: whether values may be missing.

    Raises ValueError.
    """
    X = decode_rows(record)
    check_whole(X, missing)
    return n_rows(X)


def check_whole(X: Rows, missing: bool) -> None:
    """Raise ValueError for rows whose arrays do not fit each other.

    missing: whether values may be missing.
    """
    numbers: Float64Array
    if isinstance(X, NamedRows):
        numbers, whole = X.value, _are_whole_names(X)
    elif isinstance(X, Cells):
        numbers = X.numbers
        whole = X.numbers.ndim == 2 and X.numbers.shape[1] > 0
        whole = whole and (X.names is None or len(X.names) == X.numbers.shape[1])
    else:
        numbers, whole = X, X.ndim == 2 and X.shape[1] > 0
    if not isinstance(X, np.ndarray):
        whole = whole and _are_names(X.names or ()) and _are_texts(X, numbers)
    if not whole or not (~np.isinf(numbers) if missing else np.isfinite(numbers)).all():
        raise ValueError("kept rows are not whole")


def _are_whole_names(X: NamedRows) -> bool:
    """Return whether rows by name have as many entries as they say, with different names."""
    entries, names = len(X.value), max(len(X.names), 1)
    if not int(X.lengths.sum()) == entries == len(X.place):
        return False
    row = np.repeat(np.arange(len(X.lengths)), X.lengths)
    return _below(X.place, len(X.names)) and len(np.unique(row * names + X.place)) == entries


def _are_names(names: Sequence[str]) -> bool:
    return not any(map(name_problem, names)) and len(set(names)) == len(names)


def _are_texts(X: NamedRows | Cells, numbers: Float64Array) -> bool:
    """Return whether texts are valid, and no value is both a text and a number."""
    if any(type(text) is not str or value_problem(text) for text in X.texts):
        return False
    if not len(X.texts) and not X.text.size:
        return True
    is_text = X.text != NO_TEXT
    whole = X.text.shape == numbers.shape and _below(X.text, len(X.texts))
    return whole and bool((X.text >= NO_TEXT).all() and np.isnan(numbers[is_text]).all())


def _below(indices: NDArray[np.integer[Any]], length: int) -> bool:
    """Return whether all indices are below a length."""
    return not indices.size or int(indices.max()) < length


def to_prediction_record(predicted: PredictedRows) -> bytes:
    """Return the record of an entry for predicted rows."""
    packed: bytes = msgpack.packb(predicted)
    return packed


def from_prediction_record(record: bytes) -> PredictedRows:
    """Invert `to_prediction_record`."""
    return PredictedRows._make(msgpack.unpackb(record))


def to_labels_record(samples: bytes, joined: JoinedRows) -> bytes:
    """Return the record of an entry for samples, which are a record, and their predicted rows."""
    packed: bytes = msgpack.packb([samples, *joined])
    return packed


def from_labels_record(record: bytes) -> tuple[Samples, JoinedRows]:
    """Invert `to_labels_record`."""
    samples, *joined = msgpack.unpackb(record)
    return from_record(samples), JoinedRows._make(joined)


def concatenate_joined_rows(parts: Sequence[JoinedRows]) -> JoinedRows:
    """Return the rows of all parts, in order, at the time of the last part."""
    ids = [row_id for part in parts for row_id in part.ids]
    return JoinedRows(parts[-1].time, ids, [value for part in parts for value in part.prediction])
