"""Values within values of named rows: objects become columns, lists of texts one text.

    {"user": {"age": 3, "plan": "free"}, "tags": ["new", "paid"]}
    {"user.age": 3, "user.plan": "free", "tags": "new, paid"}

It refuses nothing: other lists, objects that are too deep, and objects whose names are taken stay
as they are, and who checks the values says so.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

DEEPEST = 8
"""The most objects within each other that become columns."""

MOST_VALUES = 1000
"""The most values in an object that becomes columns."""

# The most names that are made for the rows of one request, and the most characters of one.
_MOST_NAMES, _LONGEST_NAME = 10_000, 256
_NESTED = (dict, list, tuple)


def is_nested(values: Iterable[Any]) -> bool:
    """Return whether a value is an object or a list."""
    return any(issubclass(kind, _NESTED) for kind in set(map(type, values)))


def flat_rows(rows: Sequence[Mapping[Any, Any]]) -> Sequence[Mapping[Any, Any]]:
    """Return rows without values in values; the same object if there are none."""
    if not any(is_nested(row.values()) for row in rows):
        return rows
    known: dict[str, str] = {}
    return [_flat(row, known) for row in rows]


def _flat(row: Mapping[Any, Any], known: dict[str, str]) -> dict[Any, Any]:
    """Return a row without values in values. known: names that were made, which rows share."""
    flat: dict[Any, Any] = {}
    for name, value in row.items():
        if not isinstance(value, dict):
            flat[name] = _text(value)
            continue
        parts = list(islice(_parts(str(name), value), MOST_VALUES + 1))
        named = dict(parts)
        taken = any(key in flat or (key in row and key != name) for key in named)
        if taken or len(named) < len(parts) or not _are_few(named, known):
            flat[name] = value
        else:
            flat |= {known.setdefault(key, key): inner for key, inner in parts}
    return flat


def _are_few(named: Mapping[str, Any], known: Mapping[str, str]) -> bool:
    """Return whether so many names may be made. Others are not kept: rows may have many."""
    if len(named) > MOST_VALUES or max(map(len, named), default=0) > _LONGEST_NAME:
        return False
    if len(known) + len(named) <= _MOST_NAMES:
        return True
    return len(known) + sum(name not in known for name in named) <= _MOST_NAMES


def _parts(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the values in a value, each with the names that lead to it."""
    if isinstance(value, dict) and depth < DEEPEST and len(name) <= _LONGEST_NAME:
        for key, inner in value.items():
            yield from _parts(f"{name}.{key}", inner, depth + 1)
    else:
        yield name, _text(value)


def _text(value: Any) -> Any:
    """Return a list of texts as one text, None if it is empty, and any other value as it is."""
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        return value
    return ", ".join(value) or None


def path_in(row: Any, name: str) -> tuple[str, ...]:
    """Return the names that lead to a value in a row, given the name that `flat_rows` gave it."""
    if isinstance(row, dict) and name not in row:
        for key, value in row.items():
            if isinstance(value, dict) and name.startswith(f"{key}."):
                for path in _paths((str(key),), value):
                    if ".".join(path) == name:
                        return path
    return (name,)


def shared_paths(rows: Iterable[Mapping[Any, Any]]) -> dict[str, tuple[str, ...] | None]:
    """Return name with a dot -> the names that lead to its values; None if rows differ in it.

    rows: as they were sent.
    """
    shared: dict[str, tuple[str, ...] | None] = {}
    for row in rows:
        for key, value in row.items():
            paths: Iterable[tuple[str, ...]] = ()
            if not isinstance(value, dict):
                paths = [(key,)] if isinstance(key, str) and "." in key else ()
            elif len(shared) < _MOST_NAMES:
                paths = _paths((str(key),), value)
            for path in paths:
                name = ".".join(path)
                if shared.setdefault(name, path) != path:
                    shared[name] = None
    return shared


def _paths(path: tuple[str, ...], value: Any) -> Iterator[tuple[str, ...]]:
    """Yield the names that lead to each value in a value, as many as become columns."""
    return islice(_all_paths(path, value), MOST_VALUES)


def _all_paths(path: tuple[str, ...], value: Any) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict) and len(path) <= DEEPEST:
        for key, inner in value.items():
            yield from _all_paths((*path, str(key)), inner)
    else:
        yield path


def what_stays(value: Any) -> str:
    """Return the end of a sentence about a value that `flat_rows` has left as it is."""
    if isinstance(value, dict):
        return (
            f"not an object: objects of at most {MOST_VALUES:,} values become columns, such as "
            f"user.age, to a depth of {DEEPEST}, where no other column has the name; give each "
            "value in it a column of its own"
        )
    return (
        "not an array: only arrays of texts are read, as one text; give each value in it a column "
        "of its own"
    )
