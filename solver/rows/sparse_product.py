"""Inner products of a block of sparse rows with many other sparse rows.

The block is indexed by feature once. A frequent feature becomes a dense line as long as the block,
and a nonzero of another row adds a multiple of that line in vector registers. A rare feature
becomes a list of its rows. The lines of the frequent features fit into the second-level cache, and
rare features, of which texts have many, cost no more than their nonzeros.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import FloatArray
from wolfstream.solver.compiled import compiled_allocating, inner, inner_allocating, larger, smaller
from wolfstream.solver.rows.matrix import SparseRows

# An entry of a list costs about as much as this many entries of a line.
_LINE_ENTRIES_PER_LIST_ENTRY = 32
_FEWEST_FOR_A_LINE = 4
_NONE = -1
# The number of rows whose products are transposed together: one cache line.
_ROWS_AT_ONCE = 16


class BlockIndex(NamedTuple):
    """A block of B rows, indexed by feature."""

    # Feature f has the number place[page[f >> bits] + f mod 2^bits], -1 if no row has it. The last
    # page is empty and is used for all larger features. Both tables have about
    # sqrt(largest feature * nonzeros) entries, so that a lookup is fast with any number of features
    # or nonzeros.
    page: NDArray[np.uint32]
    place: NDArray[np.int32]
    bits: int
    # (F, B) the values of the features with the numbers 0, ..., F - 1.
    line: FloatArray
    # Feature F + r has the entries [first[r], first[r + 1]) of `row` and `value`.
    first: NDArray[np.int64]
    # Numbers of the block's rows, and their values.
    row: NDArray[np.uint32]
    value: FloatArray


@compiled_allocating
def index_block(
    X: SparseRows, omitted: NDArray[np.bool_], scale: float, like: FloatArray
) -> BlockIndex:
    """Return an index of scale * X.

    X: B rows.
    omitted: (B,) rows that count as zero.
    scale: a factor.
    like: an array of the index's precision.
    """
    B = len(X.start)
    page, place, bits = _pages(X, omitted)
    count, features = _number_features(X, omitted, page, place, bits)
    enough = larger(_FEWEST_FOR_A_LINE, B // _LINE_ENTRIES_PER_LIST_ENTRY)
    frequent = 0
    for f in range(features):
        frequent += 1 if count[f] >= enough else 0
    number = np.empty(features, np.int32)
    first = np.empty(features - frequent + 1, np.int64)
    first[0] = 0
    lines, lists = 0, 0
    for f in range(features):
        if count[f] >= enough:
            number[f] = lines
            lines += 1
        else:
            number[f] = frequent + lists
            first[lists + 1] = first[lists] + count[f]
            lists += 1
    for at in range(len(place)):
        if place[at] != _NONE:
            place[at] = number[place[at]]
    line = np.empty((frequent, B), like.dtype)
    for f in range(frequent):
        for i in range(B):
            line[f, i] = 0.0
    entries = first[lists]
    row, value = np.empty(entries, np.uint32), np.empty(entries, like.dtype)
    index = BlockIndex(page, place, bits, line, first, row, value)
    _fill(index, X, omitted, scale)
    return index


@inner_allocating
def _pages(
    X: SparseRows, omitted: NDArray[np.bool_]
) -> tuple[NDArray[np.uint32], NDArray[np.int32], int]:
    """Return tables without numbers, with a page wherever the rows have a feature."""
    nonzeros, largest = 0, 0
    for i in range(len(X.start)):
        if X.stop[i] > X.start[i] and not omitted[i]:
            nonzeros += X.stop[i] - X.start[i]
            largest = larger(largest, np.int64(X.indices[X.stop[i] - 1]))
    bits = 0
    while (largest >> bits) > (nonzeros << bits):
        bits += 1
    page = np.empty((largest >> bits) + 2, np.uint32)
    for p in range(len(page)):
        page[p] = 0
    used = 0
    for i in range(len(X.start)):
        if not omitted[i]:
            for t in range(X.start[i], X.stop[i]):
                number = X.indices[t] >> bits
                if page[number] == 0:
                    used += 1
                    page[number] = used << bits
    place = np.empty((used + 1) << bits, np.int32)
    for at in range(len(place)):
        place[at] = _NONE
    return page, place, bits


@inner_allocating
def _number_features(
    X: SparseRows,
    omitted: NDArray[np.bool_],
    page: NDArray[np.uint32],
    place: NDArray[np.int32],
    bits: int,
) -> tuple[NDArray[np.int64], int]:
    """Number the features by appearance; returns the rows of each feature, and their number."""
    count = np.empty(len(place), np.int64)
    for number in range(len(place)):
        count[number] = 0
    features = 0
    for i in range(len(X.start)):
        if not omitted[i]:
            for t in range(X.start[i], X.stop[i]):
                at = _place(page, bits, X.indices[t])
                if place[at] == _NONE:
                    place[at] = features
                    features += 1
                count[place[at]] += 1
    return count, features


@inner_allocating
def _fill(index: BlockIndex, X: SparseRows, omitted: NDArray[np.bool_], scale: float) -> None:
    frequent = len(index.line)
    filled = np.empty(len(index.first), np.int64)
    for f in range(len(filled)):
        filled[f] = index.first[f]
    for i in range(len(X.start)):
        if omitted[i]:
            continue
        for t in range(X.start[i], X.stop[i]):
            f = index.place[_place(index.page, index.bits, X.indices[t])]
            if f < frequent:
                index.line[f, i] = scale * X.values[t]
            else:
                entry = filled[f - frequent]
                index.row[entry], index.value[entry] = i, scale * X.values[t]
                filled[f - frequent] = entry + 1


@inner
def _place(page: NDArray[np.uint32], bits: int, feature: int) -> np.uint64:
    """Return the index of the feature's number; unsigned, because -1 would count from the end."""
    p = smaller(np.uint64(feature) >> np.uint64(bits), np.uint64(len(page) - 1))
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    return np.uint64(page[p]) + (np.uint64(feature) & mask)


@compiled_allocating
def sparse_product(
    index: BlockIndex,
    left_term: FloatArray,
    right: SparseRows,
    omitted: NDArray[np.bool_],
    scale: float,
    right_term: FloatArray,
    out: FloatArray,
) -> None:
    """out[i, j] = (indexed row i)'(scale * right row j) + left_term[i] + right_term[j].

    Sums are computed in the precision of `out`.

    index: of B rows.
    left_term: (B,).
    right: n rows.
    omitted: (n,) right rows that count as zero.
    scale: a factor.
    right_term: (n,).
    out: (B, n), the result.
    """
    B, n = out.shape
    longest = 0
    for j in range(n):
        longest = larger(longest, right.stop[j] - right.start[j])
    number, factor = np.empty(longest, np.uint32), np.empty(longest, out.dtype)
    total = np.empty((_ROWS_AT_ONCE, B), out.dtype)
    for j in range(0, n, _ROWS_AT_ONCE):
        together = smaller(_ROWS_AT_ONCE, n - j)
        for a in range(together):
            for i in range(B):
                total[a, i] = left_term[i]
            if not omitted[j + a]:
                lines = _add_rare(index, right, j + a, scale, total, a, number, factor)
                _add_lines(index.line, number, factor, lines, total, a)
        for i in range(B):
            for a in range(together):
                out[i, j + a] = total[a, i] + right_term[j + a]


@inner
def _add_rare(
    index: BlockIndex,
    right: SparseRows,
    j: int,
    scale: float,
    total: FloatArray,
    a: int,
    number: NDArray[np.uint32],
    factor: FloatArray,
) -> int:
    """Add the terms of row j's rare features; write the frequent ones and their factors."""
    frequent = len(index.line)
    lines = 0
    for t in range(right.start[j], right.stop[j]):
        f = index.place[_place(index.page, index.bits, right.indices[t])]
        if f == _NONE:
            continue
        factor[lines] = scale * right.values[t]
        if f < frequent:
            number[lines] = f
            lines += 1
        else:
            for entry in range(index.first[f - frequent], index.first[f - frequent + 1]):
                total[a, index.row[entry]] += factor[lines] * index.value[entry]
    return lines


@inner
def _add_lines(
    line: FloatArray,
    number: NDArray[np.uint32],
    factor: FloatArray,
    lines: int,
    total: FloatArray,
    a: int,
) -> None:
    """Add lines four at a time, which reads and writes the sums a quarter as often."""
    B = total.shape[1]
    fours = lines // 4 * 4
    for t in range(0, fours, 4):
        f, g, h, k = number[t], number[t + 1], number[t + 2], number[t + 3]
        factor_f, factor_g, factor_h, factor_k = (
            factor[t],
            factor[t + 1],
            factor[t + 2],
            factor[t + 3],
        )
        for i in range(B):
            two = factor_f * line[f, i] + factor_g * line[g, i]
            total[a, i] += two + factor_h * line[h, i] + factor_k * line[k, i]
    for t in range(fours, lines):
        f, factor_f = number[t], factor[t]
        for i in range(B):
            total[a, i] += factor_f * line[f, i]


@inner
def square_distance(X: SparseRows, i: int, Z: SparseRows, j: int, root: float) -> float:
    """sum_k (root (x_ik - z_jk))^2, from differences: one merge of the two rows."""
    s, t = X.start[i], Z.start[j]
    total = 0.0
    while s < X.stop[i] or t < Z.stop[j]:
        if t == Z.stop[j] or (s < X.stop[i] and X.indices[s] < Z.indices[t]):
            difference = root * X.values[s]
            s += 1
        elif s == X.stop[i] or Z.indices[t] < X.indices[s]:
            difference = root * Z.values[t]
            t += 1
        else:
            difference = root * (X.values[s] - Z.values[t])
            s += 1
            t += 1
        total += difference * difference
    return total
