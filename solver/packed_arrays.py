"""Tuples of arrays that compiled code reads without their being unboxed at each call.

numba unboxes each array of a tuple each time that Python calls a function with it: a quarter of a
microsecond, and a model that predicts a row has fifty. `pack` writes what compiled code knows of
them, addresses and shapes, as words of one array; `unpack` reads a tuple of a known type from
these.

It does not keep the arrays alive, and does not notice when one is replaced: who packs a tuple keeps
it, and packs it again.
"""

import zlib
from collections.abc import Callable
from operator import is_
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import extending, types
from numba.core import cgutils
from numpy.typing import NDArray

# Most of numba carries no types.
_extending: Any = extending
_types: Any = types
_cgutils: Any = cgutils
_ir: Any = ir
_typeof: Any = numba.typeof

Words = NDArray[np.int64]
# Tuples of arrays have fewer words: seven for an array with one dimension, two for each more.
_MOST_WORDS = 2048
_WORD = _ir.IntType(64)


def type_key(kind: Any) -> int:
    """Return the first word of packed tuples of a numba type."""
    return zlib.crc32(str(kind).encode())


def empty_words() -> Words:
    """Return an array for the words of one tuple."""
    return np.zeros(_MOST_WORDS, np.int64)


class PackedTuple:
    """The words of one tuple of arrays for compiled code, written again when these are others.

    kind: the numba type of the tuple.
    write: `pack`, compiled.
    """

    __slots__ = "_kind", "_parts", "_value", "_words", "_write"

    def __init__(self, kind: Any, write: Callable[[Words, Any], None]) -> None:
        self._kind, self._write = kind, write
        self._words = np.zeros(1 + _count(kind), np.int64)
        # The tuple, which keeps its arrays alive, and what tells whether it is the present one.
        self._value: Any = None
        self._parts: tuple[Any, ...] = ()

    def words(self, parts: tuple[Any, ...], value: Callable[[], Any]) -> Words:
        """Return the words of the present tuple.

        parts: objects of which at least one is another one where an array of the tuple is. value:
        returns the tuple. Raises TypeError for one of another type.
        """
        if len(parts) != len(self._parts) or not all(map(is_, parts, self._parts)):
            self._value = value()
            if _typeof(self._value) != self._kind:
                raise TypeError(f"{_typeof(self._value)} in the place of {self._kind}")
            self._write(self._words, self._value)
            self._parts = parts
        return self._words


@_extending.intrinsic  # type: ignore[untyped-decorator]
def pack(_context: Any, words: Any, value: Any) -> Any:
    """Write a tuple to `words`, in compiled code."""
    if 1 + _count(value) > _MOST_WORDS:
        raise TypeError(f"a tuple of {_count(value)} words cannot be packed")

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _Place(builder, _data(context, builder, signature, args))
        place.store(_ir.Constant(_WORD, type_key(value)))
        place.write(context, value, args[1])
        return context.get_dummy_value()

    return _types.void(words, value), build


@_extending.intrinsic  # type: ignore[untyped-decorator]
def unpack(_context: Any, words: Any, kind: Any) -> Any:
    """Return the tuple that was packed in `words`, of the numba type `kind`, in compiled code.

    Whoever calls the function has compared the first word with `type_key` this type.
    """
    of_type = kind.instance_type

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _Place(builder, _data(context, builder, signature, args))
        place.load(_WORD)
        return place.read(context, of_type)

    return of_type(words, kind), build


def _data(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return context.make_array(signature.args[0])(context, builder, args[0]).data


def _count(kind: Any) -> int:
    """Return the words of a type's values."""
    if isinstance(kind, _types.BaseTuple):
        return sum(map(_count, kind))
    return 5 + 2 * kind.ndim if isinstance(kind, _types.Array) else 1


class _Place:
    """Where the next word is read or written."""

    def __init__(self, builder: Any, words: Any) -> None:
        self._builder, self._words, self._next = builder, words, 0

    def _pointer(self, kind: Any) -> Any:
        at = self._builder.gep(self._words, [_ir.Constant(_WORD, self._next)])
        self._next += 1
        return self._builder.bitcast(at, kind.as_pointer())

    def load(self, kind: Any) -> Any:
        """Read a value that fits into one word."""
        return self._builder.load(self._pointer(kind))

    def store(self, value: Any) -> None:
        """Write a value that fits into one word."""
        self._builder.store(value, self._pointer(value.type))

    def read(self, context: Any, kind: Any) -> Any:
        """Read a value of a numba type."""
        if isinstance(kind, _types.BaseTuple):
            parts = [self.read(context, each) for each in kind]
            return context.make_tuple(self._builder, kind, parts)
        return self._read(context.get_value_type(kind))

    def _read(self, kind: Any) -> Any:
        parts = _parts(kind)
        if parts is None:
            return self.load(kind)
        value = _cgutils.get_null_value(kind)
        for i, part in enumerate(parts):
            value = self._builder.insert_value(value, self._read(part), i)
        return value

    def write(self, context: Any, kind: Any, value: Any) -> None:
        """Write a value of a numba type."""
        if isinstance(kind, _types.BaseTuple):
            for i, each in enumerate(kind):
                self.write(context, each, self._builder.extract_value(value, i))
        else:
            self._write(value)

    def _write(self, value: Any) -> None:
        parts = _parts(value.type)
        if parts is None:
            self.store(value)
        for i in range(len(parts or ())):
            self._write(self._builder.extract_value(value, i))


def _parts(kind: Any) -> Any:
    """Return the types of what a type of LLVM consists of; None if it is one word."""
    if isinstance(kind, _ir.ArrayType):
        return [kind.element] * kind.count
    return kind.elements if isinstance(kind, _ir.BaseStructType) else None
