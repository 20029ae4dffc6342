"""A published view is taken apart into plain data and arrays, and put together again.

A view is a tree of named tuples, a few objects that are their attributes, and arrays. It is
written node by node as lists that MessagePack can hold; arrays are written apart, by the path of
their node, and the tree has their type and shape. What occurs in several places is written once,
so that it is one object again. Classes are named by module, and only those of the packages that
views are made of are ever looked up: nothing that is read can name another one.
"""

import importlib
import math
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.views.differences import Bytes

_PACKAGES = ("wolfstream.service.model.", "wolfstream.service.heads.", "solver.")
_PLAIN = (bool, int, float, str, type(None))
# The bound on a tree's depth; no view is deeper.
_MOST_DEPTH = 64


class WrongTree(ValueError):
    """The plain data is not a tree that this version can read."""


class _Tag(IntEnum):
    """The first element of a list, which says what the list represents."""

    TUPLE = 0
    LIST = 1
    DICT = 2
    SET = 3
    RECORD = 4
    OBJECT = 5
    ARRAY = 6
    AGAIN = 7


class TreeWriter:
    """Takes one view apart.

    arrays: the bytes of its arrays by their paths; they share memory with the view.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, Bytes] = {}
        self._places: dict[int, int] = {}

    def write(self, value: Any, path: str = "") -> Any:
        """Return a value as plain data. Raises TypeError for a type that no view has."""
        if isinstance(value, _PLAIN):
            return value
        if id(value) in self._places:
            return [_Tag.AGAIN, self._places[id(value)]]
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
        return [_Tag.OBJECT, _name_of(type(value)), *self._fields(attributes, path)]

    def _tuple(self, value: tuple[Any, ...], path: str) -> list[Any]:
        fields = getattr(value, "_fields", None)
        if fields is None:
            return [_Tag.TUPLE, *self._items(value, path)]
        self._number(value)
        named = dict(zip(fields, value, strict=True))
        return [_Tag.RECORD, _name_of(type(value)), *self._fields(named, path)]

    def _items(self, values: Any, path: str) -> list[Any]:
        return [self.write(value, f"{path}/{k}") for k, value in enumerate(values)]

    def _fields(self, fields: Mapping[str, Any], path: str) -> list[Any]:
        return [list(fields), *(self.write(fields[name], f"{path}/{name}") for name in fields)]

    def _array(self, array: NDArray[Any], path: str) -> list[Any]:
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{path}: arrays of {array.dtype} are not written")
        order = "C" if array.flags.c_contiguous or not array.flags.f_contiguous else "F"
        flat = np.ascontiguousarray(array if order == "C" else array.T).reshape(-1)
        self.arrays[path] = flat.view(np.uint8)
        return [_Tag.ARRAY, array.dtype.str, list(array.shape), order]

    def _number(self, value: Any) -> None:
        """Number a value that may occur again."""
        self._places[id(value)] = len(self._places)


class TreeReader:
    """Puts one view together. arrays: the bytes by path. used: the paths that the view uses."""

    def __init__(self, arrays: Mapping[str, Bytes]) -> None:
        self.used: set[str] = set()
        self._arrays = arrays
        self._values: list[Any] = []

    def read(self, node: Any, path: str = "", depth: int = 0) -> Any:
        """Return the value in plain data; the inverse of `TreeWriter.write`. Raises WrongTree."""
        if isinstance(node, _PLAIN):
            return node
        if depth > _MOST_DEPTH or not isinstance(node, list) or not node:
            raise WrongTree(f"{path}: it is no node of a tree")
        tag, *parts = node
        try:
            return self._of_tag(tag, parts, path, depth + 1)
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, WrongTree):
                raise
            raise WrongTree(f"{path}: {error}") from None

    def _of_tag(self, tag: int, parts: list[Any], path: str, depth: int) -> Any:
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
        place = len(self._values)
        self._values.append(None)
        self._values[place] = value = self._numbered(tag, parts, path, depth)
        return value

    def _numbered(self, tag: int, parts: list[Any], path: str, depth: int) -> Any:
        """Keep a value that may occur again, under the next number."""
        match tag:
            case _Tag.ARRAY:
                of_type, shape, order = parts
                return self._array(of_type, shape, order, path)
            case _Tag.RECORD:
                fields = self._fields(parts[1:], path, depth)
                return _class_of(parts[0], record=True)(**fields)
            case _Tag.OBJECT:
                kind = _class_of(parts[0], record=False)
                value: object = object.__new__(kind)
                vars(value).update(self._fields(parts[1:], path, depth))
                return value
        raise WrongTree(f"{path}: there is no tag {tag}")

    def _items(self, nodes: list[Any], path: str, depth: int) -> list[Any]:
        return [self.read(node, f"{path}/{k}", depth) for k, node in enumerate(nodes)]

    def _fields(self, parts: list[Any], path: str, depth: int) -> dict[str, Any]:
        names, *nodes = parts
        return {
            name: self.read(node, f"{path}/{name}", depth)
            for name, node in zip(names, nodes, strict=True)
        }

    def _array(self, of_type: str, shape: list[int], order: str, path: str) -> NDArray[Any]:
        dtype, flat = np.dtype(of_type), self._bytes(path)
        if dtype.kind not in "biuf" or any(type(n) is not int or n < 0 for n in shape):
            raise WrongTree(f"{path}: it has no arrays of {of_type} and {shape}")
        if math.prod(shape) * dtype.itemsize != len(flat):
            raise WrongTree(f"{path}: {len(flat)} bytes are no array of {of_type} and {shape}")
        values = flat.view(dtype)
        return values.reshape(shape) if order == "C" else values.reshape(shape[::-1]).T

    def _bytes(self, path: str) -> Bytes:
        if path not in self._arrays:
            raise WrongTree(f"{path}: its bytes are missing")
        self.used.add(path)
        return self._arrays[path]


def _name_of(kind: type[Any]) -> str:
    if not kind.__module__.startswith(_PACKAGES):
        raise TypeError(f"{kind.__module__}.{kind.__qualname__} is no part of a view")
    return f"{kind.__module__}:{kind.__qualname__}"


def _class_of(name: str, record: bool) -> type[Any]:
    """Return the class of a name: a named tuple, or a class that holds only attributes."""
    module, _, qualname = name.partition(":")
    if not module.startswith(_PACKAGES) or not qualname.isidentifier():
        raise WrongTree(f"{name[:100]!r} is no part of a view")
    try:
        kind = getattr(importlib.import_module(module), qualname)
    except (ImportError, AttributeError):
        raise WrongTree(f"{name[:100]!r} is no part of a view of this version") from None
    is_record = isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")
    if not isinstance(kind, type) or is_record is not record:
        raise WrongTree(f"{name[:100]!r} is no part of a view")
    return kind
