"""Samples as the journal holds them: one record for each request."""

from collections.abc import Sequence

import msgpack
import numpy as np

from service.samples.named_rows import NamedRows, joined
from service.samples.targets import Targets
from service.samples.validation import Samples

# Types of named rows in a record: lengths, places, values.
_COLUMNS = ("<u4", "<u4", "<f8")


def as_recorded(samples: Samples) -> Samples:
    """The same as `from_record(to_record(samples))`, bit for bit, without encoding.

    Arrays that have their type and layout already are not copied.
    """
    X, y = samples
    if not isinstance(y, list):
        y = np.ascontiguousarray(y, "<f8")
    if not isinstance(X, NamedRows):
        return Samples(np.ascontiguousarray(X, "<f8"), y)
    names, *columns = X
    return Samples(NamedRows(names, *map(np.ascontiguousarray, columns, _COLUMNS)), y)


def to_record(samples: Samples) -> bytes:
    """The samples as one journal entry's payload.

    Arrays: [shape, numbers, y]. Named rows: [names, lengths, places, numbers, y]. y is the
    labels, or the targets' bytes.
    """
    packed: bytes
    y = samples.y if isinstance(samples.y, list) else samples.y.astype("<f8", copy=False).tobytes()
    if isinstance(samples.X, NamedRows):
        names, *columns = samples.X
        as_bytes = [
            c.astype(t, copy=False).tobytes() for c, t in zip(columns, _COLUMNS, strict=True)
        ]
        packed = msgpack.packb([names, *as_bytes, y])
    else:
        shape = list(samples.X.shape)
        packed = msgpack.packb([shape, samples.X.astype("<f8", copy=False).tobytes(), y])
    return packed


def from_record(record: bytes) -> Samples:
    """Inverse of `to_record`."""
    head, *columns, y = msgpack.unpackb(record)
    # Copied, because compiled code takes a read-only array for another type.
    if isinstance(y, bytes):
        y = np.frombuffer(y, "<f8").copy()
    if len(columns) == 1:
        return Samples(np.frombuffer(columns[0], "<f8").reshape(head).copy(), y)
    return Samples(NamedRows(head, *map(np.frombuffer, columns, _COLUMNS)), y)


def one_after_another(parts: Sequence[Samples]) -> Samples:
    """The samples of all parts, which have one kind of rows and are for one task."""
    targets = [part.y for part in parts if not isinstance(part.y, list)]
    y: Targets = np.concatenate(targets) if targets else [y for part in parts for y in part.y]
    arrays = [part.X for part in parts if not isinstance(part.X, NamedRows)]
    if arrays:
        return Samples(np.concatenate(arrays), y)
    return Samples(joined([part.X for part in parts if isinstance(part.X, NamedRows)]), y)
