"""Samples as records of the log, one record for each request.

A replay decodes what live learning had encoded, so both must be equal to the bit.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgpack
import numpy as np

from wolfstream.service.samples.tasks import task_of, unpack
from wolfstream.service.samples.validation import Samples
from wolfstream.solver.prepare.cells import Cells
from wolfstream.solver.prepare.named_rows import NamedRows, Rows, joined, with_own_words
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
