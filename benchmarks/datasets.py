"""The papers' sets from a folder of npz files."""

from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

# What both kinds of rows do is not in the types of scipy.
Rows: TypeAlias = Any


class MissingSet(Exception):
    """There is no such file; the message says how to get it."""


class Dataset(NamedTuple):
    """Float64 rows, dense or CSR, and labels as in the source, for training and testing.

    Where the source has no test part, X_test and y_test are empty.
    """

    X: Rows
    y: NDArray[np.int64]
    X_test: Rows
    y_test: NDArray[np.int64]


def load(folder: Path, name: str, sparse: bool = False) -> Dataset:
    """Read `folder/name.npz`; sparse: CSR stays CSR. Raises MissingSet."""
    path = folder / f"{name}.npz"
    if not path.exists():
        raise MissingSet(
            f"{path} is missing. It is the LIBSVM/UCI set {name!r}, saved with numpy.savez as "
            "X, y, X_test, y_test (or CSR: data, indices, indptr, shape, y and the same with "
            "_test). Say DATA=FOLDER to name another folder."
        )
    with np.load(path, allow_pickle=False) as archive:
        arrays = dict(archive)
    X, y = _part(arrays, "", sparse)
    if "y_test" not in arrays:
        return Dataset(X, y, X[:0], y[:0])
    return Dataset(X, y, *_part(arrays, "_test", sparse))


def _part(
    arrays: dict[str, NDArray[Any]], end: str, sparse: bool
) -> tuple[Rows, NDArray[np.int64]]:
    y = arrays[f"y{end}"].astype(np.int64)
    if f"X{end}" in arrays:
        return arrays[f"X{end}"].astype(np.float64), y
    parts = tuple(arrays[f"{name}{end}"] for name in ("data", "indices", "indptr"))
    X = csr_array(parts, shape=tuple(arrays[f"shape{end}"]), dtype=np.float64)
    return (X if sparse else X.toarray()), y
