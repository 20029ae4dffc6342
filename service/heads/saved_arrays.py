"""A head as a model file has it, and checks of its single arrays: types, shapes, indices in range.

Compiled code does not check indices: a model file with an index out of range could make it read or
write any memory. A checksum proves that a file is as it was written, not who wrote it. Arrays have
the names that learners give them. Each check raises WrongArrays.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]


class WrongArrays(ValueError):
    """The arrays of a state do not fit each other; the message says which."""


class SavedHead(NamedTuple):
    """A head as a model file has it, before anything of it is trusted.

    Attributes:
        plain: the plain data of its state.
        arrays: of its state, without its calibration.
        blank: the arrays of such a head that has learned nothing.
        n_classes: the number of classes that it has met; None if it learns numbers.
        dimension: of the model's rows; None before the first.
        width: of prepared rows; None if they are sparse.
        texts: how many texts and codes of each row the head crosses.
        sparse: whether the model's rows are sparse.
        sequence: of the model.
    """

    plain: Mapping[str, Any]
    arrays: Arrays
    blank: Arrays
    n_classes: int | None
    dimension: int | None
    width: int | None
    texts: int
    sparse: bool
    sequence: int

    @property
    def stored_dimension(self) -> int | None:
        """The dimension of the rows that it keeps: in a set that forgets, their time is another."""
        if self.dimension is None or "widths" not in self.arrays:
            return self.dimension
        return self.dimension + 1


def n_saved_rows(name: str, arrays: Arrays) -> int:
    """Return the number of rows, dense or sparse, that are saved under a name."""
    if name in arrays:
        return len(arrays[name])
    require(f"{name}_indptr" in arrays, name, "is missing")
    return len(arrays[f"{name}_indptr"]) - 1


def check_numbers(name: str, arrays: Arrays, below: int | None, least: int = 0) -> None:
    """Check for whole numbers, at least `least` and less than `below`, if that is given."""
    array = arrays[name]
    whole = array.dtype.kind == "i"
    require(whole and (array.size == 0 or array.min() >= least), name, "has numbers below zero")
    if below is not None and array.size:
        require(array.max() < below, name, f"has numbers above {below - 1}")


def check_floats(name: str, arrays: Arrays) -> None:
    """Check for 64-bit floats."""
    require(name in arrays, name, "is missing")
    require(is_double(name, arrays), name, "is not of 64-bit floats")


def is_double(name: str, arrays: Arrays) -> bool:
    """Return whether an array is of 64-bit floats."""
    return bool(arrays[name].dtype == np.float64)


def check_shape(name: str, arrays: Arrays, shape: tuple[int | None, ...]) -> None:
    """Check a shape; None stands for any length, as of an unknown dimension."""
    present = shape_of(name, arrays)
    fits = len(present) == len(shape) and all(
        wanted is None or length == wanted for length, wanted in zip(present, shape, strict=True)
    )
    require(fits, name, f"has the shape {present}")


def shape_of(name: str, arrays: Arrays) -> tuple[int, ...]:
    """Return the shape of an array."""
    require(name in arrays, name, "is missing")
    return arrays[name].shape


def require(holds: bool | np.bool_, name: str, what: str) -> None:
    """Raise WrongArrays unless a condition holds; what: is wrong with the array."""
    if not holds:
        raise WrongArrays(f"its array {name} {what}")


def check_weights(name: str, arrays: Arrays, samples: int) -> None:
    """Check that there is a number above zero for each of the samples."""
    check_shape(name, arrays, (samples,))
    check_floats(name, arrays)
    weight = arrays[name]
    require(bool((np.isfinite(weight) & (weight > 0.0)).all()), name, "is not above zero")


def check_counts(arrays: Arrays, n: int, n_classes: int | None) -> None:
    """Check `counts`: n numbers, of which the first is that of the classes, if there are any."""
    check_shape("counts", arrays, (n,))
    check_numbers("counts", arrays, None)
    same = n_classes is None or int(arrays["counts"][0]) == n_classes
    require(same, "counts", "does not have the number of classes")


def check_sparse(name: str, arrays: Arrays, dimension: int | None) -> None:
    """Check sparse rows: where each begins and ends, its columns and its numbers."""
    ends, indices = arrays[f"{name}_indptr"], arrays.get(f"{name}_indices")
    require(indices is not None, f"{name}_indices", "is missing")
    assert indices is not None
    check_shape(f"{name}_width", arrays, (1,))
    check_numbers(f"{name}_width", arrays, None)
    width = int(arrays[f"{name}_width"][0])
    require(width <= (dimension or 0), f"{name}_width", "is more than the model has")
    check_shape(f"{name}_indptr", arrays, (None,))
    check_numbers(f"{name}_indptr", arrays, len(indices) + 1)
    ordered = len(ends) > 0 and ends[0] == 0 and bool((np.diff(ends) >= 0).all())
    require(ordered and ends[-1] <= len(indices), f"{name}_indptr", "is not in order")
    check_shape(f"{name}_indices", arrays, (None,))
    require(indices.dtype == np.int32, f"{name}_indices", "is not of 32-bit integers")
    check_numbers(f"{name}_indices", arrays, width)
    check_shape(f"{name}_data", arrays, (len(indices),))
    check_floats(f"{name}_data", arrays)
