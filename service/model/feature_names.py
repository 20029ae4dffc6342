"""The names of features in views, as bytes to which new names are appended.

A model's table of names only grows, and its views of different sequences share it. Its bytes only
grow, too: with a hundred thousand names, only the new ones are written, sent and read.
"""

import msgpack
import numpy as np
from numpy.typing import NDArray

from wolfstream.service.model.published import ModelView
from wolfstream.solver.prepare.named_rows import NameTable

Written = NDArray[np.uint8]


class NamesWriter:
    """Takes the names out of the views of one model."""

    def __init__(self) -> None:
        self._table: NameTable | None = None
        self._n_names = 0  # how many names of the table are in `_written`
        self._written = bytearray()

    def take(self, published: ModelView) -> tuple[ModelView, Written | None]:
        """Return a view without its names, and the names; None if its rows have none."""
        table, n_names = published.rows.names, published.rows.dimension or 0
        if table is None:
            return published, None
        if table is not self._table or n_names < self._n_names:
            self._table, self._n_names, self._written = table, 0, bytearray()
        if n_names > self._n_names:
            new = table.names()[self._n_names : n_names]
            self._written += b"".join(map(msgpack.packb, new))
            self._n_names = n_names
        return _with_names(published, None), np.frombuffer(bytes(self._written), np.uint8)


class NamesReader:
    """Puts the names back into the views of one model."""

    def __init__(self) -> None:
        self._table = NameTable()
        self._read = b""  # the bytes of the names in the table

    def give(self, published: ModelView, written: Written) -> ModelView:
        """Return a view with its names. Views share a table if one's names begin the other's.

        Raises ValueError for bytes that are no names.
        """
        content = written.tobytes()
        if not content.startswith(self._read):
            self._table, self._read = NameTable(), b""
        unpacker = msgpack.Unpacker(max_buffer_size=len(content) + 1)
        unpacker.feed(content[len(self._read) :])
        names = list(unpacker)
        if not all(isinstance(name, str) for name in names):
            raise ValueError("names of features are texts")
        self._table.add(names)
        self._read = content
        return _with_names(published, self._table)


def _with_names(published: ModelView, names: NameTable | None) -> ModelView:
    return published._replace(rows=published.rows._replace(names=names))
