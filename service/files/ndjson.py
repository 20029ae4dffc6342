"""NDJSON files: a row per line, as flat rows or as samples, read as the columns of a table.

    {"amount": 12.5, "shop": "north", "Outcome": "ok"}     a flat row, whose roles are columns
    {"x": {"amount": 12.5}, "y": "ok", "weight": 2}        a sample; x may be an array of values

The first line decides which of the two all lines are. A name that a row lacks is a missing value.
Blank lines are skipped.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.files.arrow import Columns
from wolfstream.service.files.roles import NO_ROLES, Roles
from wolfstream.service.files.text import DataFileError, Watch

NDJSON_SUFFIXES = {".ndjson", ".jsonl"}
# Bound on the values of all rows, including missing ones.
_MOST_VALUES = 1 << 28
_ROLES = {"y": "label", "weight": "weight"}
_SHOWN = 40
_LARGEST = int(np.finfo(np.float64).max)


class NdjsonTable(NamedTuple):
    """The content of a file."""

    columns: Columns  # including labels and weights
    roles: Roles | None  # the columns of samples that are not features; None for flat rows
    named: bool  # whether columns have names; otherwise numbers from 1


def is_ndjson(path: Path) -> bool:
    """Return whether a file is NDJSON, by its suffix or its first line."""
    if path.suffix in NDJSON_SUFFIXES:
        return True
    with path.open("rb") as file:
        return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def read_ndjson(path: Path, watch: Watch | None = None) -> NdjsonTable:
    """Return the table of a file. Raises DataFileError, UnicodeDecodeError."""
    rows, lines = list[Mapping[str, Any]](), list[int]()
    for line, row in _objects(path, watch):
        rows.append(row)
        lines.append(line)
    if not rows:
        raise DataFileError("has no samples")
    if not isinstance(rows[0].get("x"), dict | list):
        return NdjsonTable(_columns(rows, lines), None, True)
    named = isinstance(rows[0]["x"], dict)
    flat = [_flat(row, line, named) for row, line in zip(rows, lines, strict=True)]
    present = {name for row in flat for name in _ROLES if name in row}
    roles = NO_ROLES._replace(**{_ROLES[name]: name for name in present})
    return NdjsonTable(_columns(flat, lines), roles, named)


def _objects(path: Path, watch: Watch | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line, object) for each object of a file."""
    done = 0
    with path.open("rb") as file:
        for line, content in enumerate(file, 1):
            done += len(content)
            if watch is not None:
                watch(done)
            text = content.decode("utf-8-sig" if line == 1 else "utf-8").strip()
            if text:
                yield line, _object(text, line)


def _object(text: str, line: int) -> dict[str, Any]:
    try:
        read = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise DataFileError(f"is not JSON: {error}", line) from None
    if not isinstance(read, dict):
        raise DataFileError("must be an object of named values", line)
    return read


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("an object has a name twice")
    return read


def _flat(row: Mapping[str, Any], line: int, named: bool) -> dict[str, Any]:
    """Return a sample as a flat row."""
    x = row.get("x")
    if not isinstance(x, dict if named else list):
        what = "an object of named values" if named else "an array of values"
        raise DataFileError(f"x must be {what}, as in the first line", line)
    beside = {name: value for name, value in row.items() if name != "x"}
    if unknown := beside.keys() - _ROLES.keys():
        raise DataFileError(f"{min(unknown)[:_SHOWN]!r} is not one of x, y, weight", line)
    features = x if isinstance(x, dict) else {str(j): value for j, value in enumerate(x, 1)}
    if taken := features.keys() & beside.keys():
        raise DataFileError(f"{min(taken)!r} is in x and beside it", line)
    return {**features, **beside}


def _columns(rows: Sequence[Mapping[str, Any]], lines: Sequence[int]) -> Columns:
    names = list(dict.fromkeys(name for row in rows for name in row))
    if len(names) * len(rows) > _MOST_VALUES:
        raise DataFileError(
            f"has {len(rows):,} rows of {len(names):,} different names, too many for a table; "
            "write sparse rows as svmlight"
        )
    for row, line in zip(rows, lines, strict=True):
        for name, value in row.items():
            _check(name, value, line)
    columns = [_column([row.get(name) for row in rows]) for name in names]
    return Columns(names, columns, len(rows))


def _check(name: str, value: Any, line: int) -> None:
    if isinstance(value, dict | list):
        detail = (
            f"{name[:_SHOWN]!r} must be a number, a text, true, false or null: give each value in "
            "it a column of its own"
        )
        raise DataFileError(detail, line)
    if isinstance(value, float) and math.isinf(value):
        raise DataFileError(f"{name[:_SHOWN]!r} is not a finite number", line)
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise DataFileError(f"{name[:_SHOWN]!r} is beyond float64", line)


def _column(values: list[Any]) -> Any:
    """Return numbers as an array, other values as a list, with None for a missing value."""
    if set(map(type, values)) <= {int, float} and not any(x != x or abs(x) > 2**53 for x in values):
        return np.array(values, np.float64)
    return [None if value != value else value for value in values]
