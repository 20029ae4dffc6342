"""Inner products of a block of sparse rows with many other sparse rows.

The block is turned on its side once: for each of its features, which of its rows have it. A
feature that many rows have becomes a dense line as long as the block, and a nonzero of
another row adds a multiple of that line in vector registers; a feature that few rows have
becomes a list of those rows. The lines of the frequent features are few enough for the
second-level cache, and rare features, of which texts are full, cost what they hold.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.compiled import compiled
from solver.rows import FloatArray, SparseRows

# A list entry costs about as much as this many places of a line.
_LINE_PLACES_PER_ENTRY = 32
_FEWEST_FOR_A_LINE = 4
_NONE = -1
# So many rows' products stand side by side, one cache line, when they are transposed.
_ROWS_AT_ONCE = 16


class BlockIndex(NamedTuple):
    """A block of B rows by feature.

    page, place, bits: the number of feature f is place[page[f >> bits] + f mod 2^bits], -1 for
        none; pages beyond the last but one are the last one, which is empty. Both tables have
        about sqrt(largest feature * nonzeros) places, so that neither many features nor few
        nonzeros make a lookup dear.
    line: (F, B) values of the features with the numbers 0, ..., F - 1.
    first: feature F + r has the entries [first[r], first[r + 1]) of `row` and `value`.
    row, value: places in the block and values.
    """

    page: NDArray[np.uint32]
    place: NDArray[np.int32]
    bits: int
    line: FloatArray
    first: NDArray[np.int64]
    row: NDArray[np.uint32]
    value: FloatArray


@compiled
def index_block(
    X: SparseRows, omitted: NDArray[np.bool_], scale: float, like: FloatArray
) -> BlockIndex:
    """Index scale * X in the precision of `like`, the rows flagged in `omitted` as zero."""
    B = len(X.start)
    page, place, bits = _pages(X, omitted)
    count = _number_features(X, omitted, page, place, bits)
    enough = max(_FEWEST_FOR_A_LINE, B // _LINE_PLACES_PER_ENTRY)
    frequent = np.count_nonzero(count >= enough)
    number = np.empty(len(count), np.int32)
    first = np.zeros(len(count) - frequent + 1, np.int64)
    lines, lists = 0, 0
    for f in range(len(count)):
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
    index = BlockIndex(
        page,
        place,
        bits,
        np.zeros((frequent, B), like.dtype),
        first,
        np.empty(first[-1], np.uint32),
        np.empty(first[-1], like.dtype),
    )
    _fill(index, X, omitted, scale)
    return index


@compiled
def _pages(
    X: SparseRows, omitted: NDArray[np.bool_]
) -> tuple[NDArray[np.uint32], NDArray[np.int32], int]:
    """Empty tables with a page wherever the rows have a feature."""
    nonzeros, largest = 0, 0
    for i in range(len(X.start)):
        if X.stop[i] > X.start[i] and not omitted[i]:
            nonzeros += X.stop[i] - X.start[i]
            largest = max(largest, int(X.indices[X.stop[i] - 1]))
    bits = 0
    while (largest >> bits) > (nonzeros << bits):
        bits += 1
    page = np.zeros((largest >> bits) + 2, np.uint32)
    used = 0
    for i in range(len(X.start)):
        if not omitted[i]:
            for t in range(X.start[i], X.stop[i]):
                p = X.indices[t] >> bits
                if page[p] == 0:
                    used += 1
                    page[p] = used << bits
    return page, np.full((used + 1) << bits, _NONE, np.int32), bits


@compiled
def _number_features(
    X: SparseRows,
    omitted: NDArray[np.bool_],
    page: NDArray[np.uint32],
    place: NDArray[np.int32],
    bits: int,
) -> NDArray[np.int64]:
    """Number the features in order of appearance; returns how many rows have each."""
    count = np.zeros(len(place), np.int64)
    features = 0
    for i in range(len(X.start)):
        if not omitted[i]:
            for t in range(X.start[i], X.stop[i]):
                at = _place(page, bits, X.indices[t])
                if place[at] == _NONE:
                    place[at] = features
                    features += 1
                count[place[at]] += 1
    return count[:features]


@compiled
def _fill(index: BlockIndex, X: SparseRows, omitted: NDArray[np.bool_], scale: float) -> None:
    frequent = len(index.line)
    filled = index.first.copy()
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


@compiled
def _place(page: NDArray[np.uint32], bits: int, feature: int) -> Any:
    """Where the feature's number stands. Unsigned, so that no index could count from the end."""
    p = min(np.uint64(feature) >> np.uint64(bits), np.uint64(len(page) - 1))
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    return np.uint64(page[p]) + (np.uint64(feature) & mask)


@compiled
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

    Rows flagged in `omitted` count as zero. Sums are taken in the precision of `out`.
    """
    B, n = out.shape
    longest = 0
    for j in range(n):
        longest = max(longest, right.stop[j] - right.start[j])
    number, factor = np.empty(longest, np.uint32), np.empty(longest, out.dtype)
    total = np.empty((_ROWS_AT_ONCE, B), out.dtype)
    for j in range(0, n, _ROWS_AT_ONCE):
        together = min(_ROWS_AT_ONCE, n - j)
        for a in range(together):
            total[a] = left_term
            if not omitted[j + a]:
                lines = _add_rare(index, right, j + a, scale, total, a, number, factor)
                _add_lines(index.line, number, factor, lines, total, a)
        for i in range(B):
            for a in range(together):
                out[i, j + a] = total[a, i] + right_term[j + a]


@compiled
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
    """Add what rare features of row j contribute; list the frequent ones with their factors."""
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


@compiled
def _add_lines(
    line: FloatArray,
    number: NDArray[np.uint32],
    factor: FloatArray,
    lines: int,
    total: FloatArray,
    a: int,
) -> None:
    """Four lines in one sweep over the sums, which a single line would read and write as often."""
    B = total.shape[1]
    fours = lines // 4 * 4
    for t in range(0, fours, 4):
        f, g, h, k = number[t], number[t + 1], number[t + 2], number[t + 3]
        of_f, of_g, of_h, of_k = factor[t], factor[t + 1], factor[t + 2], factor[t + 3]
        for i in range(B):
            two = of_f * line[f, i] + of_g * line[g, i]
            total[a, i] += two + of_h * line[h, i] + of_k * line[k, i]
    for t in range(fours, lines):
        f, of_f = number[t], factor[t]
        for i in range(B):
            total[a, i] += of_f * line[f, i]


@compiled
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
