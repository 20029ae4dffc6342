"""Checks of the estimators' parameters, rows and targets; each raises ValueError."""

import math
from typing import Any

import numpy as np

from solver.kernels.functions import Kernel, largest_square_norm
from solver.rows.matrix import Matrix, square_norms


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError, listing the choices, for a value that is not one of them."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(choices)}")


def check_integer(name: str, value: Any, least: int = 1) -> None:
    """Raise ValueError for a value that is not an integer >= least."""
    if not (isinstance(value, int | np.integer) and value >= least):
        raise ValueError(f"{name} is {value!r}; it must be an integer, at least {least}")


def check_positive(name: str, value: Any, other: str = "", *, infinite: bool = False) -> None:
    """Raise ValueError for a value that is not a number > 0, or is infinite and must not be.

    other: the alternative values of the parameter, for the message.
    """
    if not (is_finite(value) or (infinite and value == math.inf)) or value <= 0:
        kind = "number" if infinite else "finite number"
        raise ValueError(f"{name} is {value!r}; it must be {other}a {kind} above zero")


def is_finite(value: Any) -> bool:
    """Returns whether this is a number and neither infinite nor NaN."""
    return isinstance(value, int | float | np.number) and math.isfinite(value)


def check_norms(kernel: Kernel, X: Matrix) -> None:
    """Raise ValueError for rows whose kernel values would overflow."""
    with np.errstate(over="ignore"):
        square = square_norms(X)
    largest = largest_square_norm(kernel)
    wrong = np.flatnonzero(~(square <= largest))
    if len(wrong):
        other = ", or choose a smaller gamma or degree" if kernel.type == "polynomial" else ""
        raise ValueError(
            f"row {wrong[0]} has a norm above {math.sqrt(largest):.3g}, where the values of the "
            f"{kernel.type} kernel would overflow: scale the features{other}"
        )
