"""The rows that the heads of a model learn and predict."""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.matrix import Matrix


class RawRows(NamedTuple):
    """n rows before they are scaled."""

    # (n, d) numbers and codes of categories, NaN where a value is missing.
    X: Float64Array
    # The columns that are codes.
    categories: tuple[int, ...] = ()
    # (n, k) codes of words, padded with NaN; None if the table has no words.
    words: Float64Array | None = None

    def part(self, rows: slice) -> "RawRows":
        """Return some of the rows."""
        words = None if self.words is None else self.words[rows]
        return RawRows(self.X[rows], self.categories, words)

    @property
    def word_codes(self) -> Float64Array:
        """The codes of words, (n, k), where k = 0 if there are none."""
        return np.empty((len(self.X), 0)) if self.words is None else self.words


class HeadRows(NamedTuple):
    """n rows in the forms that heads need."""

    # (n, d) in the form that all heads learn.
    X: Matrix
    # (n, texts) float64 codes of a table's texts, NaN where one is missing, for the bank; None if
    # there are no texts, or if texts are not crossed.
    codes: Float64Array | None = None
    # The rows before they are scaled, for the bank; None for sparse rows.
    raw: RawRows | None = None
    # Of a row to predict, whether the labels just before it are known.
    in_turn: bool = False

    def row(self, i: int, *, in_turn: bool) -> "HeadRows":
        """Return row i of dense rows."""
        assert isinstance(self.X, np.ndarray)
        part = slice(i, i + 1)
        codes = None if self.codes is None else self.codes[part]
        raw = None if self.raw is None else self.raw.part(part)
        return HeadRows(self.X[part], codes, raw, in_turn)


class Hints(NamedTuple):
    """What the learner of a head gets beside n rows; fields are those of `HeadRows`."""

    scores: Float64Array | None = None  # (n, voters, K), or values (n, voters); None without votes
    codes: Float64Array | None = None
    raw: RawRows | None = None
    in_turn: bool = False

    def part(self, rows: slice) -> "Hints":
        """Return the hints for some of the rows."""
        return Hints(
            None if self.scores is None else self.scores[rows],
            None if self.codes is None else self.codes[rows],
            None if self.raw is None else self.raw.part(rows),
            self.in_turn,
        )


NO_HINTS = Hints()
