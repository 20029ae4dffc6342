"""Labelled data files: CSV, svmlight and npz, checked as a whole, then read batch by batch.

A text file is read twice: once to check every line before the first sample leaves, to count the
samples and to learn what the labels are; then again for the batches. So its size does not
matter. An npz file is held in memory.
"""

import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.textfiles import (
    MAX_FEATURES,
    CsvText,
    DataFileError,
    Float64Array,
    SvmlightText,
    looks_like_svmlight,
    number_in,
)

__all__ = ["MAX_FEATURES", "Batch", "DataFileError", "Label", "LabelledFile", "open_data"]

Label = str | int | float | bool
Batch = tuple[Float64Array, list[Label]]

_SVMLIGHT_SUFFIXES = {".svm", ".svmlight", ".libsvm"}


@dataclass(frozen=True)
class LabelledFile:
    """A checked file: `samples` rows of `features` numbers, each with a label."""

    samples: int
    features: int
    _read: Callable[[int, int, int], Iterator[Batch]]

    def batches(self, size: int, skip: int = 0, limit: int | None = None) -> Iterator[Batch]:
        """Float64 rows and their labels, `size` at a time: at most `limit` after `skip`."""
        return self._read(size, skip, self.samples if limit is None else skip + limit)


def open_data(
    path: Path, label_column: str | None = None, features: int | None = None
) -> LabelledFile:
    """Check a file from end to end; its suffix, or else its content, says what it is.

    label_column: name or number (from 1) of a CSV file's label column. By default the column
    headed y, label, class or target, else the last one.
    features: width of svmlight rows, by default the largest index in the file.
    Raises DataFileError.
    """
    try:
        if _is_npz(path):
            return _open_npz(path)
        if path.suffix in _SVMLIGHT_SUFFIXES or (
            path.suffix != ".csv" and looks_like_svmlight(path)
        ):
            return _open_text(SvmlightText(path, features))
        return _open_text(CsvText(path, label_column))
    except OSError as error:
        raise DataFileError(f"cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise DataFileError("is neither text in UTF-8 nor an npz file") from None


def _is_npz(path: Path) -> bool:
    with path.open("rb") as file:
        return path.suffix == ".npz" or file.read(4) == b"PK\x03\x04"


def _open_text(lines: CsvText | SvmlightText) -> LabelledFile:
    samples = widest = 0
    kinds: set[type] = set()
    for row, text in lines:
        samples += 1
        widest = max(widest, len(row))
        kinds.add(_kind_of(text))
    if not samples:
        raise DataFileError("has no samples")
    features = lines.features(widest)
    label = _label_reader(kinds)

    def read(size: int, skip: int, stop: int) -> Iterator[Batch]:
        wanted = islice(lines, skip, stop)
        while batch := list(islice(wanted, size)):
            X = np.zeros((len(batch), features.stop))
            for i, (row, _) in enumerate(batch):
                X[i, : len(row)] = row
            yield X[:, features], [label(text) for _, text in batch]

    return LabelledFile(samples, features.stop - features.start, read)


def _kind_of(text: str) -> type:
    """What a label alone looks like; a number with an integer's value, 2.0, is an integer."""
    value = number_in(text)
    if value is None or not value.is_integer():
        return str if value is None else float
    if _is_integer(text):
        return int if -(2**63) <= int(text) < 2**63 else str
    return int if abs(value) <= 2**53 else float


def _label_reader(kinds: set[type]) -> Callable[[str], Label]:
    """All labels of a file are of one kind: integers, else numbers, else strings."""
    if kinds == {int}:
        # A float has no room for all integers of 64 bits, so only 2.0 goes through one.
        return lambda text: int(text) if _is_integer(text) else int(float(text))
    return str if str in kinds else float


def _is_integer(text: str) -> bool:
    return text.lstrip("+-").isdecimal()


def _open_npz(path: Path) -> LabelledFile:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files if not name.endswith("_test")}
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataFileError(f"cannot be read as npz: {error}") from None
    if "y" not in arrays:
        raise DataFileError(f"has no array y; its arrays are {', '.join(arrays) or 'none'}")
    labels = _labels(arrays["y"])
    X: NDArray[Any] | CsrRows
    X = _dense(arrays["X"]) if "X" in arrays else CsrRows(arrays)
    if len(X) != len(labels) or not labels:
        raise DataFileError(f"has {len(X)} rows and {len(labels)} labels")

    def read(size: int, skip: int, stop: int) -> Iterator[Batch]:
        for start in range(skip, min(stop, len(labels)), size):
            end = min(start + size, stop)
            yield np.asarray(X[start:end], np.float64), labels[start:end]

    return LabelledFile(len(labels), X.shape[1], read)


def _dense(X: NDArray[Any]) -> NDArray[Any]:
    if X.ndim != 2 or X.shape[1] == 0 or X.dtype.kind not in "biuf":
        raise DataFileError(f"X must be two-dimensional and numeric, not {X.dtype} {X.shape}")
    wrong = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if len(wrong):
        raise DataFileError(f"row {wrong[0]} of X (counted from 0) has NaN or infinity")
    return X


def _labels(y: NDArray[Any]) -> list[Label]:
    if y.ndim != 1 or y.dtype.kind not in "biufSU":
        raise DataFileError(f"y must be one-dimensional labels, not {y.dtype} {y.shape}")
    if y.dtype.kind == "S":
        y = np.char.decode(y, "utf-8")
    if y.dtype.kind == "f":
        wrong = np.flatnonzero(~np.isfinite(y))
        if len(wrong):
            raise DataFileError(f"label {wrong[0]} (counted from 0) is {y[wrong[0]]}")
        if (y == np.trunc(y)).all() and (np.abs(y) <= 2**53).all():
            y = y.astype(np.int64)
    labels: list[Label] = y.tolist()
    return labels


class CsrRows:
    """Rows of the CSR arrays data, indices, indptr, shape; a slice of them is dense."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        missing = [name for name in ("data", "indices", "indptr", "shape") if name not in arrays]
        if missing:
            raise DataFileError(f"has neither X nor the CSR array {missing[0]}")
        self.data = _dense(arrays["data"].reshape(-1, 1))[:, 0]
        self.indices, self.indptr = arrays["indices"], arrays["indptr"]
        rows, columns = arrays["shape"].tolist()
        self.shape = (int(rows), int(columns))
        ends = np.concatenate([self.indptr[:1], self.indptr[-1:], [len(self.indices)]])
        if (
            self.indptr.shape != (rows + 1,)
            or ends.tolist() != [0, len(self.data), len(self.data)]
            or (np.diff(self.indptr) < 0).any()
            or (self.indices < 0).any()
            or (self.indices >= columns).any()
        ):
            raise DataFileError("its CSR arrays contradict each other")
        if columns > MAX_FEATURES:
            detail = f"has {columns:,} features: rows are sent dense, at most {MAX_FEATURES:,}"
            raise DataFileError(detail)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, wanted: slice) -> Float64Array:
        start, stop, _ = wanted.indices(len(self))
        first, last = self.indptr[start], self.indptr[stop]
        X = np.zeros((stop - start, self.shape[1]))
        row = np.repeat(np.arange(stop - start), np.diff(self.indptr[start : stop + 1]))
        # CSR sums entries that stand in the same place.
        np.add.at(X, (row, self.indices[first:last]), self.data[first:last])
        return X
