"""The first samples of a model are in its snapshots while the form of its rows may change."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from service.samples.record import from_record, to_record
from service.samples.validation import Samples
from solver.stream.rows import Part

_NAME = "first"


def packed(parts: Sequence[Part]) -> dict[str, NDArray[Any]]:
    """Return all parts as one array of bytes; nothing if there are none."""
    if not parts:
        return {}
    records = [[part.head, to_record(Samples(*part[1:]))] for part in parts]
    return {_NAME: np.frombuffer(msgpack.packb(records), np.uint8)}


def unpacked(arrays: Mapping[str, NDArray[Any]]) -> list[Part]:
    """Return the parts in an array of bytes; the inverse of `packed`."""
    if _NAME not in arrays:
        return []
    records = msgpack.unpackb(arrays[_NAME].tobytes())
    return [Part(head, *from_record(record)) for head, record in records]
