"""A published view as plain data and arrays, and back, and the difference of two of its arrays.

A view is a tree of tuples, a few objects with attributes, and arrays. Each node is written as a
list that MessagePack can encode. The bytes of an array are stored apart, under the path of its
node; the tree has its type and shape. A value that occurs several times is written once, and
becomes one object again when it is read.

Classes are written by name. A reader only looks up classes in the packages of which views consist,
so data cannot name any other class.

Stored rows keep their slots while others come and go, and a ring buffer overwrites its oldest
column, so most bytes of an array are the same in the next version. Arrays are compared as bytes,
whatever they mean, so the result is identical to the bit.
"""

import importlib
import math
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]

# Bytes compared, and sent, at a time.
_BLOCK = 256
_WORD = 8
# If a larger share of the blocks has changed, the whole array is sent.
_MAX_CHANGED_SHARE = 0.75


class WrongDifference(ValueError):
    """A difference was applied to bytes that it was not made from."""


def difference(old: Bytes | None, new: Bytes) -> list[Any] | None:
    """Return the difference of two arrays as plain data; None if they are equal.

    Args:
        old: bytes of the earlier version; None if there is none.
        new: bytes of the later version.

    The result is [bytes] with all bytes of the new version, or [length, starts, stops, bytes] with
    its length and the ranges that differ from the old one.
    """
    if old is None:
        return [new.tobytes()]
    common = min(len(old), len(new)) // _BLOCK * _BLOCK
    words = [array[:common].view(np.uint64).reshape(-1, _BLOCK // _WORD) for array in (old, new)]
    changed = (words[0] != words[1]).any(axis=1)
    if changed.sum() > _MAX_CHANGED_SHARE * len(changed):
        return [new.tobytes()]
    edges = np.flatnonzero(np.diff(changed, prepend=False, append=False)) * _BLOCK
    starts, stops = edges[0::2].tolist(), edges[1::2].tolist()
    if not np.array_equal(old[common:], new[common:]):
        starts.append(common)
        stops.append(len(new))
    if not starts:
        return None
    ranges = [new[start:stop] for start, stop in zip(starts, stops, strict=True)]
    return [len(new), starts, stops, np.concatenate(ranges).tobytes()]


def apply_difference(old: Bytes | None, plain: Any) -> Bytes:
    """Return the new bytes, given the old ones and a difference. Raises WrongDifference."""
    match plain:
        case [bytes() as whole]:
            return np.frombuffer(whole, np.uint8).copy()
        case [int() as length, list() as starts, list() as stops, bytes() as data] if length >= 0:
            return _patch(old, length, starts, stops, data)
    raise WrongDifference("it is not a difference of arrays")


def _patch(
    old: Bytes | None, length: int, starts: list[Any], stops: list[Any], data: bytes
) -> Bytes:
    """Return the old bytes at a new length, with ranges replaced by consecutive parts of data."""
    # The bound on the length comes first: a forged one must not allocate memory.
    if old is None or len(starts) != len(stops) or length > len(old) + len(data):
        raise WrongDifference("it does not fit the present bytes")
    new = np.zeros(length, np.uint8)
    common = min(length, len(old))
    new[:common] = old[:common]
    position = 0  # in `data`
    for start, stop in zip(starts, stops, strict=True):
        if not 0 <= start <= stop <= length:
            raise WrongDifference("a range lies outside the array")
        part = np.frombuffer(data, np.uint8)[position : position + stop - start]
        if len(part) != stop - start:
            raise WrongDifference("its ranges are longer than its bytes")
        new[start:stop] = part
        position += stop - start
    return new


_PACKAGES = ("wolfstream.service.model.", "wolfstream.service.heads.", "wolfstream.solver.")
_PLAIN = (bool, int, float, str, type(None))
_MAX_DEPTH = 64  # views are less deep


class WrongTree(ValueError):
    """Plain data is not a tree that this version can read."""


class _Tag(IntEnum):
    """The first element of a node: the kind of value that the node represents."""

    TUPLE = 0
    LIST = 1
    DICT = 2
    SET = 3
    RECORD = 4
    OBJECT = 5
    ARRAY = 6
    AGAIN = 7
    SEQUENCE = 8  # an instance of a subclass of tuple without named fields


class TreeWriter:
    """Writes one view.

    Attributes:
        arrays: path -> bytes of an array. They may share memory with the view.
    """

    def __init__(self) -> None:
        """Start at the root."""
        self.arrays: dict[str, Bytes] = {}
        self._numbers: dict[int, int] = {}  # id of a value -> its number, for Tag.AGAIN

    def write(self, value: Any, path: str = "") -> Any:
        """Return a value as plain data, and add its arrays to `arrays`.

        Raises TypeError for types that do not occur in views.
        """
        if isinstance(value, _PLAIN):
            return value
        if id(value) in self._numbers:
            return [_Tag.AGAIN, self._numbers[id(value)]]
        if isinstance(value, np.ndarray):
            self._number(value)
            return self._array(value, path)
        if isinstance(value, tuple):
            return self._tuple(value, path)
        if isinstance(value, list):
            return [_Tag.LIST, *self._items(value, path)]
        if isinstance(value, frozenset):
            return [_Tag.SET, *self._items(sorted(value), path)]
        if isinstance(value, dict):
            return [_Tag.DICT, list(value), *self._items(list(value.values()), path)]
        self._number(value)
        attributes = vars(value)
        return [_Tag.OBJECT, _class_name(type(value)), *self._fields(attributes, path)]

    def _tuple(self, value: tuple[Any, ...], path: str) -> list[Any]:
        if type(value) is tuple:
            return [_Tag.TUPLE, *self._items(value, path)]
        self._number(value)
        fields = getattr(value, "_fields", None)
        if fields is None:
            return [_Tag.SEQUENCE, _class_name(type(value)), *self._items(value, path)]
        named = dict(zip(fields, value, strict=True))
        return [_Tag.RECORD, _class_name(type(value)), *self._fields(named, path)]

    def _items(self, values: Any, path: str) -> list[Any]:
        return [self.write(value, f"{path}/{k}") for k, value in enumerate(values)]

    def _fields(self, fields: Mapping[str, Any], path: str) -> list[Any]:
        return [list(fields), *(self.write(fields[name], f"{path}/{name}") for name in fields)]

    def _array(self, array: NDArray[Any], path: str) -> list[Any]:
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{path}: arrays of {array.dtype} cannot be written")
        order = "C" if array.flags.c_contiguous or not array.flags.f_contiguous else "F"
        flat = np.ascontiguousarray(array if order == "C" else array.T).reshape(-1)
        self.arrays[path] = flat.view(np.uint8)
        return [_Tag.ARRAY, array.dtype.str, list(array.shape), order]

    def _number(self, value: Any) -> None:
        """Give the next number to a value that may occur again."""
        self._numbers[id(value)] = len(self._numbers)


class TreeReader:
    """Reads one view.

    Attributes:
        used: paths of the arrays in the view.
    """

    def __init__(self, arrays: Mapping[str, Bytes]) -> None:
        """Start at the root.

        Args:
            arrays: path -> bytes of an array.
        """
        self.used: set[str] = set()
        self._arrays = arrays
        self._values: list[Any] = []  # by number, for Tag.AGAIN

    def read(self, node: Any, path: str = "", depth: int = 0) -> Any:
        """Return the value that a node represents. Raises WrongTree."""
        if isinstance(node, _PLAIN):
            return node
        if depth > _MAX_DEPTH or not isinstance(node, list) or not node:
            raise WrongTree(f"{path}: it is not a node")
        tag, *parts = node
        try:
            return self._read_tagged(tag, parts, path, depth + 1)
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, WrongTree):
                raise
            raise WrongTree(f"{path}: {error}") from None

    def _read_tagged(self, tag: int, parts: list[Any], path: str, depth: int) -> Any:
        match tag:
            case _Tag.TUPLE:
                return tuple(self._items(parts, path, depth))
            case _Tag.LIST:
                return self._items(parts, path, depth)
            case _Tag.SET:
                return frozenset(self._items(parts, path, depth))
            case _Tag.DICT:
                return dict(zip(parts[0], self._items(parts[1:], path, depth), strict=True))
            case _Tag.AGAIN:
                return self._values[parts[0]]
        number = len(self._values)
        self._values.append(None)  # parts of the value get later numbers
        self._values[number] = value = self._read_numbered(tag, parts, path, depth)
        return value

    def _read_numbered(self, tag: int, parts: list[Any], path: str, depth: int) -> Any:
        """Return a value that may occur again; the caller stores it under its number."""
        match tag:
            case _Tag.ARRAY:
                type_name, shape, order = parts
                return self._array(type_name, shape, order, path)
            case _Tag.RECORD:
                fields = self._fields(parts[1:], path, depth)
                return _find_class(parts[0], _Tag.RECORD)(**fields)
            case _Tag.SEQUENCE:
                items = self._items(parts[1:], path, depth)
                return _find_class(parts[0], _Tag.SEQUENCE)(items)
            case _Tag.OBJECT:
                kind = _find_class(parts[0], _Tag.OBJECT)
                value: object = object.__new__(kind)
                vars(value).update(self._fields(parts[1:], path, depth))
                return value
        raise WrongTree(f"{path}: unknown tag {tag}")

    def _items(self, nodes: list[Any], path: str, depth: int) -> list[Any]:
        return [self.read(node, f"{path}/{k}", depth) for k, node in enumerate(nodes)]

    def _fields(self, parts: list[Any], path: str, depth: int) -> dict[str, Any]:
        names, *nodes = parts
        return {
            name: self.read(node, f"{path}/{name}", depth)
            for name, node in zip(names, nodes, strict=True)
        }

    def _array(self, type_name: str, shape: list[int], order: str, path: str) -> NDArray[Any]:
        dtype, flat = np.dtype(type_name), self._bytes(path)
        if dtype.kind not in "biuf" or any(type(n) is not int or n < 0 for n in shape):
            raise WrongTree(f"{path}: an array of type {type_name} and shape {shape} is impossible")
        if math.prod(shape) * dtype.itemsize != len(flat):
            raise WrongTree(f"{path}: {len(flat)} bytes are no array of {type_name} and {shape}")
        values = flat.view(dtype)
        return values.reshape(shape) if order == "C" else values.reshape(shape[::-1]).T

    def _bytes(self, path: str) -> Bytes:
        if path not in self._arrays:
            raise WrongTree(f"{path}: its bytes are missing")
        self.used.add(path)
        return self._arrays[path]


def _class_name(kind: type[Any]) -> str:
    if not kind.__module__.startswith(_PACKAGES):
        raise TypeError(f"{kind.__module__}.{kind.__qualname__} cannot be part of a view")
    return f"{kind.__module__}:{kind.__qualname__}"


def _find_class(name: str, tag: _Tag) -> type[Any]:
    """Return a class by name. Raises WrongTree for a class that cannot be part of a view.

    Args:
        name: `module:class`.
        tag: the tag of the node, which must suit the class.
    """
    module, _, qualname = name.partition(":")
    if not module.startswith(_PACKAGES) or not qualname.isidentifier():
        raise WrongTree(f"{name[:100]!r} cannot be part of a view")
    try:
        kind = getattr(importlib.import_module(module), qualname)
    except (ImportError, AttributeError):
        raise WrongTree(f"{name[:100]!r} is unknown to this version") from None
    if not isinstance(kind, type) or _tag_of(kind) is not tag:
        raise WrongTree(f"{name[:100]!r} cannot be part of a view")
    return kind


def _tag_of(kind: type[Any]) -> _Tag:
    if not issubclass(kind, tuple):
        return _Tag.OBJECT
    return _Tag.RECORD if hasattr(kind, "_fields") else _Tag.SEQUENCE
