"""Records of the log: of samples, of predicted rows, and of predicted rows joined with labels.

A replay decodes what live learning had encoded, so both must be equal to the bit.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgpack
import numpy as np
from numpy.typing import NDArray

from wolfstream.service.samples.ids import RowId
from wolfstream.service.samples.tasks import task_of, unpack
from wolfstream.service.samples.validation import Samples
from wolfstream.service.samples.values import name_problem, value_problem
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.cells import NO_TEXT, Cells
from wolfstream.solver.prepare.named_rows import NamedRows, Rows, joined, n_rows, with_own_words
from wolfstream.solver.rows.sample_weights import Weights, joined_weights


def as_recorded(samples: Samples) -> Samples:
    """Return `from_record(to_record(samples))`, bit for bit, without encoding.

    Arrays of the right type and layout are not copied.
    """
    X, y, weight = samples
    if weight is not None:
        weight = np.ascontiguousarray(weight, "<f8")
    return Samples(_recorded_rows(X), task_of(y).recorded(y), weight)


def _recorded_rows(X: Rows) -> Rows:
    if isinstance(X, NamedRows):
        names, lengths, place, value, texts, text = X
        lengths, place = (np.ascontiguousarray(part, "<u4") for part in (lengths, place))
        value, text = np.ascontiguousarray(value, "<f8"), np.ascontiguousarray(text, "<i4")
        return NamedRows(names, lengths, place, value, list(texts), text)
    if isinstance(X, Cells):
        numbers, text = np.ascontiguousarray(X.numbers, "<f8"), np.ascontiguousarray(X.text, "<i4")
        return X._replace(numbers=numbers, text=text)
    return np.ascontiguousarray(X, "<f8")


def to_record(samples: Samples) -> bytes:
    """Return samples as the record of an entry, in MessagePack.

        arrays        [shape, numbers, y]
        rows by name  [names, lengths, places, numbers, y]
        with texts    [names, lengths, places, numbers, texts, places of texts, y]
        tables        [names, shape, numbers, texts, places of texts, y]

    y is packed by its task: the labels, or the bytes of the numbers. With weights it is
    {"y": packed y, "weight": bytes of the weights}.
    """
    return with_record(samples)[1]


def with_record(samples: Samples) -> tuple[Samples, bytes]:
    """Return `as_recorded` and `to_record` of samples."""
    recorded = as_recorded(samples)
    return recorded, record_of(recorded)


def record_of(recorded: Samples) -> bytes:
    """Return `to_record` of samples that are as `as_recorded` returns them."""
    return msgpack.packb(_plain(recorded))  # type: ignore[no-any-return]


def records_of(recorded: Sequence[Samples]) -> list[bytes]:
    """Return `record_of` each of several samples; they share the memory of one packer."""
    pack = msgpack.Packer().pack
    return [pack(_plain(samples)) for samples in recorded]


def _plain(recorded: Samples) -> list[Any]:
    X, y, weight = recorded
    last = task_of(y).pack(y)
    if weight is not None:
        last = {"y": last, "weight": weight.tobytes()}
    return [*_parts_of(X), last]


def _parts_of(X: Rows) -> list[Any]:
    if isinstance(X, np.ndarray):
        return [X.shape, X.tobytes()]
    if isinstance(X, Cells):
        shape = list(X.numbers.shape)
        return [X.names, shape, X.numbers.tobytes(), list(X.texts), X.text.tobytes()]
    parts = [X.names, X.lengths.tobytes(), X.place.tobytes(), X.value.tobytes()]
    return [*parts, list(X.texts), X.text.tobytes()] if len(X.texts) else parts


def from_record(record: bytes) -> Samples:
    """Invert `to_record`."""
    *parts, y = msgpack.unpackb(record)
    weight: Weights = None
    if isinstance(y, dict):
        # Copied, because compiled code would be compiled again for read-only arrays.
        weight, y = np.frombuffer(y["weight"], "<f8").copy(), y["y"]
    decoders: dict[int, Callable[..., Rows]] = {2: _arrays, 4: _named, 5: _table, 6: _named}
    return Samples(decoders[len(parts)](*parts), unpack(y), weight)


def _arrays(shape: list[int], numbers: bytes) -> Rows:
    return np.frombuffer(numbers, "<f8").reshape(shape).copy()


def _table(
    names: list[str] | None, shape: list[int], numbers: bytes, texts: list[str], text: bytes
) -> Rows:
    return Cells(
        None if names is None else tuple(names),
        np.frombuffer(numbers, "<f8").reshape(shape),
        tuple(texts),
        np.frombuffer(text, "<i4").reshape(shape),
        np.ones(shape, np.bool_),
    )


def _named(
    names: list[str],
    lengths: bytes,
    place: bytes,
    numbers: bytes,
    texts: Sequence[str] = (),
    text: bytes = b"",
) -> Rows:
    return NamedRows(
        names,
        np.frombuffer(lengths, "<u4"),
        np.frombuffer(place, "<u4"),
        np.frombuffer(numbers, "<f8"),
        list(texts),
        np.frombuffer(text, "<i4"),
    )


def concatenate_samples(parts: Sequence[Samples]) -> Samples:
    """Concatenate samples whose rows have one form, and whose y is of one task."""
    y = task_of(parts[0].y).join([part.y for part in parts])
    weight = joined_weights([(part.weight, len(part.y)) for part in parts])
    return Samples(joined([part.X for part in parts]), y, weight)


def slice_samples(samples: Samples, start: int, stop: int) -> Samples:
    """Return the samples from one index to another, as a request with only these would be read."""
    X, y, weight = samples.part(start, stop)
    return Samples(with_own_words(X), y, weight)


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
        raise ValueError("arrays of stored rows do not fit each other, or have infinite numbers")


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
