"""Rows as the heads of a model see them."""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.matrix import Matrix


class RawRows(NamedTuple):
    """n rows before they are scaled.

    X: (n, d) float64 of numbers and of codes of categories, NaN where one is missing. categories:
    the columns that are codes. words: (n, k) codes of words, NaN where there are no more; None of
    rows without.
    """

    X: Float64Array
    categories: tuple[int, ...] = ()
    words: Float64Array | None = None

    def part(self, rows: slice) -> "RawRows":
        """Return some of them."""
        words = None if self.words is None else self.words[rows]
        return RawRows(self.X[rows], self.categories, words)

    @property
    def word_codes(self) -> Float64Array:
        """Codes of words (n, k), k = 0 of rows without."""
        return np.empty((len(self.X), 0)) if self.words is None else self.words


class Seen(NamedTuple):
    """n rows.

    X: in the form that all heads learn. codes: (n, texts) float64 of a table's texts, NaN where one
    is missing, for heads that listen; None where there are none, or texts are not crossed.
    raw: the rows before they are scaled, for heads that listen; None of sparse ones. in_turn: of a
    row to predict, whether the labels just before it are known.
    """

    X: Matrix
    codes: Float64Array | None = None
    raw: RawRows | None = None
    in_turn: bool = False

    def row(self, i: int, *, in_turn: bool) -> "Seen":
        """Return one of several dense rows."""
        assert isinstance(self.X, np.ndarray)
        part = slice(i, i + 1)
        codes = None if self.codes is None else self.codes[part]
        raw = None if self.raw is None else self.raw.part(part)
        return Seen(self.X[part], codes, raw, in_turn)
