"""A symmetric matrix of numbers in [0, 1], one byte each: the lower triangle, in square cells.

A code is the nearest multiple of 1/255, which is off by at most 1/510; 1 is exact. Cells follow
each other row after row, and each is a cache line, eight words of eight codes:

    cell (i, j), j <= i, begins at word 8 (i (i + 1) / 2 + j); row p has a word in each cell of
    row p // 8, and byte p % 8 of all words in the cells of column p // 8 below

A further row changes no earlier word but in its own cells, so that the matrix grows at its end. The
cells on the diagonal have both halves.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types
from numpy.typing import NDArray

from wolfstream.solver.compiled import inner, larger, smaller

Words = NDArray[np.uint64]

# The rows and columns of a cell, the words of one, and the bits of a code.
CELL = 8
_WORD, _ONE = np.uint64(8), np.uint64(1)
_LEVELS, _CODE = 255.0, np.uint64(255)


def cell_words(rows: int) -> int:
    """Return the number of words of a matrix with this many rows."""
    cells = -(-rows // CELL)
    return cells * (cells + 1) // 2 * CELL


@inner
def decode_row(words: Words, p: int, used: int, row: NDArray[np.float32]) -> None:
    """Write row p of a matrix with `used` rows, and whatever follows in the last cell.

    row: (n,), n >= `used` a multiple of CELL.
    """
    i, a = np.uint64(p) // _WORD, np.uint64(p) % _WORD
    at = i * (i + _ONE) // np.uint64(2) * _WORD + a
    for j in range(i + _ONE):
        _write_word(words, at + j * _WORD, row, j * _WORD)
    for j in range(i + _ONE, (np.uint64(used) + _WORD - _ONE) // _WORD):
        at = (j * (j + _ONE) // np.uint64(2) + i) * _WORD
        _write_column(words, at, a * _WORD, row, j * _WORD)


@inner
def decode_value(words: Words, p: int, m: int) -> np.float32:
    """Return the entry in row p and column m."""
    first, last = np.uint64(larger(p, m)), np.uint64(smaller(p, m))
    code = (words[_word_of(first, last)] >> (last % _WORD * _WORD)) & _CODE
    return np.float32(code) * np.float32(1.0 / _LEVELS)


@inner
def encode_row(words: Words, p: int, values: NDArray[np.float32], count: int) -> None:
    """Write the codes of row p with the first `count` rows."""
    i, whole = np.uint64(p) // _WORD, np.uint64(count) // _WORD
    first, shift = _word_of(np.uint64(p), np.uint64(0)), np.uint64(p) % _WORD * _WORD
    for j in range(smaller(i, whole)):
        words[first + j * _WORD] = _codes_of(values, j * _WORD)
    for j in range(i + _ONE, whole):
        codes, at = _codes_of(values, j * _WORD), (j * (j + _ONE) // np.uint64(2) + i) * _WORD
        for b in range(_WORD):
            others = words[at + b] & ~(_CODE << shift)
            words[at + b] = others | ((codes >> (b * _WORD)) & _CODE) << shift
    for m in range(i * _WORD, (i + _ONE if i < whole else i) * _WORD):
        encode(words, p, m, values[m])
    for m in range(whole * _WORD, np.uint64(count)):
        encode(words, p, m, values[m])


@inner
def encode(words: Words, p: int, m: int, value: float) -> None:
    """Write the code of rows p and m."""
    code = np.uint64(np.float32(value) * np.float32(_LEVELS) + np.float32(0.5))
    first, last = np.uint64(larger(p, m)), np.uint64(smaller(p, m))
    _put(words, first, last, code)
    if first // _WORD == last // _WORD:
        _put(words, last, first, code)


@inner
def _word_of(p: np.uint64, m: np.uint64) -> np.uint64:
    """Return the number of the word that has the code of row p, column m."""
    i, j = p // _WORD, m // _WORD
    return (i * (i + _ONE) // np.uint64(2) + j) * _WORD + p % _WORD


@inner
def _put(words: Words, p: np.uint64, m: np.uint64, code: np.uint64) -> None:
    at, shift = _word_of(p, m), m % _WORD * _WORD
    words[at] = (words[at] & ~(_CODE << shift)) | (code << shift)


# The functions below are written as vector instructions, because compilers do not vectorise loops
# of eight. Most of numba and llvmlite carry no types.
_intrinsic: Any = extending.intrinsic
_types: Any = types
_ir: Any = ir
_LONG, _LANE = _ir.IntType(64), _ir.IntType(32)
_BYTES, _LONGS, _FLOATS = (
    _ir.VectorType(kind, 8) for kind in (_ir.IntType(8), _LONG, _ir.FloatType())
)


def _address(context: Any, builder: Any, kind: Any, element: Any, vector: Any) -> Any:
    """Return the address of an element, an array and an index, as that of a vector."""
    array, index = element
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def _splat(builder: Any, vector: Any, number: Any) -> Any:
    """Return a vector of one number."""
    undefined = _ir.Constant(vector, _ir.Undefined)
    first = builder.insert_element(undefined, number, _ir.Constant(_LANE, 0))
    lanes = _ir.Constant(_ir.VectorType(_LANE, 8), [0] * 8)
    return builder.shuffle_vector(first, undefined, lanes)


def _constant(number: float) -> Any:
    return _ir.Constant(_FLOATS, [float(np.float32(number))] * 8)


def _store_numbers(builder: Any, codes: Any, address: Any) -> None:
    numbers = builder.fmul(builder.uitofp(codes, _FLOATS), _constant(1.0 / _LEVELS))
    builder.store(numbers, address, align=4)


@_intrinsic  # type: ignore[untyped-decorator]
def _write_word(_context: Any, words: Any, at: Any, row: Any, to: Any) -> Any:
    """Write the numbers of a word's codes to row[to : to + 8]."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        codes = builder.load(_address(context, builder, signature.args[0], args[:2], _BYTES))
        _store_numbers(
            builder, codes, _address(context, builder, signature.args[2], args[2:], _FLOATS)
        )
        return context.get_dummy_value()

    return _types.void(words, at, row, to), build


@_intrinsic  # type: ignore[untyped-decorator]
def _write_column(_context: Any, words: Any, at: Any, shift: Any, row: Any, to: Any) -> Any:
    """Write the numbers of a cell's column, `shift` bits into its words, to row[to : to + 8]."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        cell = _address(context, builder, signature.args[0], args[:2], _LONGS)
        shifted = builder.lshr(builder.load(cell, align=8), _splat(builder, _LONGS, args[2]))
        codes = builder.trunc(shifted, _BYTES)
        _store_numbers(
            builder, codes, _address(context, builder, signature.args[3], args[3:], _FLOATS)
        )
        return context.get_dummy_value()

    return _types.void(words, at, shift, row, to), build


@_intrinsic  # type: ignore[untyped-decorator]
def _codes_of(_context: Any, values: Any, at: Any) -> Any:
    """Return the word of the codes of values[at : at + 8]."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], args, _FLOATS)
        scaled = builder.fmul(builder.load(address, align=4), _constant(_LEVELS))
        codes = builder.fptoui(builder.fadd(scaled, _constant(0.5)), _BYTES)
        return builder.bitcast(codes, _LONG)

    return _types.uint64(values, at), build
