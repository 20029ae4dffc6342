"""Labelled samples in npz archives: dense arrays X and y, or CSR arrays and y, checked."""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.files.text import MAX_FEATURES, DataFileError
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.matrix import Matrix, SparseRows, n_rows, sparse_from_csr

Label = str | int | float | bool


def read_npz(path: Path, sparse: bool, labelled: bool | None) -> tuple[Matrix, list[Label]]:
    """Return the rows, dense or sparse, and the labels of an archive; [] without labels.

    Args:
        path: the path of the archive.
        sparse: whether sparse rows stay sparse; otherwise their width is bounded.
        labelled: whether there must be labels; None if they may be missing.

    Raises DataFileError.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files if not name.endswith("_test")}
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataFileError(f"cannot be read as npz: {error}") from None
    if "y" not in arrays and labelled:
        raise DataFileError(f"has no array y; its arrays are {', '.join(arrays) or 'none'}")
    X = _dense(arrays["X"]) if "X" in arrays else _csr(arrays, sparse)
    labels = _labels(arrays["y"]) if "y" in arrays and labelled is not False else []
    if n_rows(X) == 0 or (labels and n_rows(X) != len(labels)):
        raise DataFileError(f"has {n_rows(X)} rows and {len(labels)} labels")
    return X, labels


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


def _csr(arrays: dict[str, NDArray[Any]], sparse: bool) -> Matrix:
    missing = [name for name in ("data", "indices", "indptr", "shape") if name not in arrays]
    if missing:
        raise DataFileError(f"has neither X nor the CSR array {missing[0]}")
    data = _dense(arrays["data"].reshape(-1, 1))[:, 0]
    indices, indptr, shape = arrays["indices"], arrays["indptr"], arrays["shape"]
    if shape.shape != (2,) or {indices.dtype.kind, indptr.dtype.kind, shape.dtype.kind} - {*"iu"}:
        raise DataFileError("its CSR arrays contradict each other: indices and shape are integers")
    rows, columns = shape.tolist()
    try:
        X = sparse_from_csr(data, indices, indptr, columns)
    except ValueError as error:
        raise DataFileError(f"its CSR arrays contradict each other: {error}") from None
    if n_rows(X) != rows:
        raise DataFileError(f"its CSR arrays contradict each other: {n_rows(X)} rows, not {rows}")
    if not sparse and columns > MAX_FEATURES:
        detail = f"has {columns:,} features: rows are made dense, at most {MAX_FEATURES:,}"
        raise DataFileError(detail)
    return X


def dense_rows(X: SparseRows, width: int) -> Float64Array:
    """Return sparse rows with all their zeros. Raises DataFileError if they are too wide."""
    length = X.stop - X.start
    place = np.repeat(X.start - np.cumsum(length) + length, length) + np.arange(length.sum())
    if len(place) and X.indices[place].max() >= width:
        raise DataFileError(f"has a feature beyond the first {width}")
    dense = np.zeros((len(length), width))
    dense[np.repeat(np.arange(len(length)), length), X.indices[place]] = X.values[place]
    return dense


def sparse_rows(X: Float64Array) -> SparseRows:
    """Return dense rows without their zeros."""
    row, column = np.nonzero(X)
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(X)))])
    return sparse_from_csr(X[row, column], column, ends, X.shape[1])
