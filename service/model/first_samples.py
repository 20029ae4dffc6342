"""The first samples of a model, kept while it is not settled what the columns of its rows are."""

from collections.abc import Mapping
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from service.samples.named_rows import form_of
from service.samples.record import from_record, one_after_another, to_record
from service.samples.validation import Samples
from service.spec.heads import HeadName

_NAME = "first"


class FirstSamples:
    """Parts of the stream in their order, each with the head that it was posted for."""

    def __init__(self) -> None:
        self.parts: list[tuple[HeadName, Samples]] = []

    def added(self, head: HeadName, samples: Samples) -> Samples:
        """The samples, which are kept; those of one head and form become one part."""
        if self.parts:
            last, before = self.parts[-1]
            if last == head and form_of(before.X) == form_of(samples.X):
                self.parts[-1] = head, one_after_another([before, samples])
                return samples
        self.parts.append((head, samples))
        return samples

    def clear(self) -> None:
        """Keep nothing more."""
        self.parts = []

    def state(self) -> dict[str, NDArray[Any]]:
        """All parts as one array of bytes; nothing where there are none."""
        if not self.parts:
            return {}
        packed = msgpack.packb([[head, to_record(samples)] for head, samples in self.parts])
        return {_NAME: np.frombuffer(packed, np.uint8)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        packed = arrays[_NAME].tobytes() if _NAME in arrays else msgpack.packb([])
        self.parts = [(head, from_record(record)) for head, record in msgpack.unpackb(packed)]
