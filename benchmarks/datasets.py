"""The papers' sets from a folder of npz files."""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Dataset(NamedTuple):
    """Dense float64 rows and labels as in the source, for training and testing.

    A set that comes without a test part has none: zero rows.
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


def load(folder: Path, name: str) -> Dataset:
    """Read `folder/name.npz`, dense or CSR; leaves with a message where it is missing."""
    path = folder / f"{name}.npz"
    if not path.exists():
        sys.exit(
            f"{path} is missing. It is the LIBSVM/UCI set {name!r}, saved with numpy.savez as "
            "X, y, X_test, y_test (or CSR: data, indices, indptr, shape, y and the same with "
            "_test). Say DATA=FOLDER to name another folder."
        )
    with np.load(path, allow_pickle=False) as archive:
        arrays = dict(archive)
    X, y = _part(arrays, "")
    X_test, y_test = _part(arrays, "_test") if "y_test" in arrays else (X[:0], y[:0])
    return Dataset(X, y, X_test, y_test)


def _part(arrays: dict[str, NDArray], end: str) -> tuple[NDArray, NDArray]:
    if f"X{end}" in arrays:
        return arrays[f"X{end}"].astype(np.float64), arrays[f"y{end}"].astype(np.int64)
    X = np.zeros(arrays[f"shape{end}"])
    rows = np.repeat(np.arange(len(X)), np.diff(arrays[f"indptr{end}"]))
    X[rows, arrays[f"indices{end}"]] = arrays[f"data{end}"]
    return X, arrays[f"y{end}"].astype(np.int64)
