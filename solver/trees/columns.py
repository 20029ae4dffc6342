"""The columns that trees split at: those of the rows, and numbers that replace many codes.

A category with too many codes for a bin each, and the words of each text, add a numeric column for
each target (`code_values`).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.words import columns_of
from wolfstream.solver.trees.binning import without_own_bin
from wolfstream.solver.trees.code_values import (
    MOST_CODES,
    MOST_GROUPS,
    MOST_VALUES,
    NO_CODE,
    Codes,
    CodeValues,
    fit_code_values,
    values_of_codes,
)


class Encoding(NamedTuple):
    """The texts and categories whose codes become numbers, texts first."""

    texts: Float64Array  # numbers of texts, as `columns_of` returns them of words
    columns: NDArray[np.int64]  # columns of categories
    values: CodeValues  # the numbers of their codes

    @property
    def width(self) -> int:
        """The number of added columns."""
        return int(self.values.start.size)

    def encoded(self, X: Float64Array, words: Float64Array) -> Float64Array:
        """Return the columns (n, d + width) that trees split at.

        X: (n, d) rows.
        words: (n, k) codes of their words.
        """
        if not self.width:
            return X
        targets, d = self.values.start.shape[1], X.shape[1]
        out = np.empty((len(X), d + self.width))
        out[:, :d] = X
        for g, codes in enumerate(_codes_of(self.texts, self.columns, X, words)):
            start = d + g * targets
            out[:, start : start + targets] = values_of_codes(self.values, g, codes)
        return out


def encoding_bytes(targets: int) -> int:
    """Return the most bytes that an encoding for `targets` targets takes."""
    return MOST_CODES * 8 * (1 + targets)


def fit_encoding(
    X: Float64Array,
    words: Float64Array,
    categories: NDArray[np.bool_],
    targets: Float64Array,
    weight: Float64Array,
) -> tuple[Encoding, Float64Array]:
    """Fit an encoding; return it, and the columns (n, d + width) to which trees are fitted.

    X: (n, d) rows.
    words: (n, k) codes of their words.
    categories: (d,) which columns are codes.
    targets: (n, c).
    weight: (n,) weights of the rows.
    """
    most = min(MOST_GROUPS, MOST_VALUES // targets.shape[1])
    texts = _texts_of(words)[:most]
    wide = [j for j in np.flatnonzero(categories).tolist() if without_own_bin(X[:, j])]
    columns = np.array(wide[: most - len(texts)], np.int64)
    groups = [_present(codes) for codes in _codes_of(texts, columns, X, words)]
    values, added = fit_code_values(groups, targets, weight)
    return Encoding(texts, columns, values), np.concatenate([X, added], axis=1)


def _texts_of(words: Float64Array) -> Float64Array:
    """Return the texts that the words belong to, those with the most words first."""
    texts, counts = np.unique(columns_of(words[~np.isnan(words)]), return_counts=True)
    return np.asarray(texts[np.argsort(-counts, kind="stable")])


def _codes_of(
    texts: Float64Array, columns: NDArray[np.int64], X: Float64Array, words: Float64Array
) -> list[Float64Array]:
    """Return the codes (n, k) of each text and category, NO_CODE where there is none."""
    text_of_word = columns_of(words) if len(texts) else words
    text_codes = [np.where(text_of_word == text, words, NO_CODE) for text in texts.tolist()]
    column_codes = np.where(np.isnan(X[:, columns]), NO_CODE, X[:, columns])
    return text_codes + [column_codes[:, g : g + 1] for g in range(len(columns))]


def _present(codes: Float64Array) -> Codes:
    rows, columns = np.nonzero(codes != NO_CODE)
    return Codes(rows, codes[rows, columns])
