"""The basis functions psi_j of a semiparametric model (P3).

    constant    1
    trend       x_f
    sin, cos    sin(2 pi x_f / period), cos(2 pi x_f / period)
    sinc        sin(u) / u with u = scale (x_f - centre), 1 at the centre

where x_f is the value of one feature. P3's sinc(2 pi (x - 5)) has centre 5 and scale 2 pi. These
named functions can be saved as plain data. Any other function of the rows may be used too, but
cannot be saved.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.matrix import Matrix, SparseRows, feature_values, n_rows

BasisType = Literal["constant", "trend", "sin", "cos", "sinc"]

# A column of unit length closer than this to the span of those before it counts as dependent.
_DEPENDENT = 1e-10
# Below this share of a combination, a column is not named as part of it.
_PART = 1e-6
# The parameters of each type.
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "constant": (),
    "trend": ("feature",),
    "sin": ("feature", "period"),
    "cos": ("feature", "period"),
    "sinc": ("feature", "centre", "scale"),
}


class Basis(NamedTuple):
    """A named basis function; parameters that its type does not have are unused.

    feature: the number of a feature, from 0.
    """

    type: BasisType
    feature: int = 0
    period: float = 2.0 * math.pi
    centre: float = 0.0
    scale: float = 1.0


# A function takes (n, d) float64 rows and returns n numbers.
BasisFunction: TypeAlias = Basis | Callable[[Float64Array], Any]


def basis_to_data(basis: BasisFunction) -> dict[str, Any]:
    """Return a named basis as plain data: {"type": "sin", "feature": 0, "period": 6.28}.

    Raises ValueError for a function, which has no such form.
    """
    if not isinstance(basis, Basis):
        raise ValueError(
            f"{basis!r} is a function: only bases given by name can be saved, with a type among "
            f"{', '.join(_PARAMETERS)}"
        )
    return {name: getattr(basis, name) for name in ("type", *_PARAMETERS[basis.type])}


def basis_from_data(data: Mapping[str, Any]) -> Basis:
    """Return the basis that plain data describe; what they leave out has the default of `Basis`.

    Raises ValueError for an unknown type, for a parameter that the type does not have, and for
    values of the wrong kind or range.
    """
    kind = str(data.get("type"))
    if kind not in _PARAMETERS:
        raise ValueError(f"type is {kind!r}; it must be one of {', '.join(_PARAMETERS)}")
    for name in data:
        if name not in ("type", *_PARAMETERS[kind]):
            having = ", ".join(_PARAMETERS[kind]) or "none"
            raise ValueError(f"a {kind} basis has no parameter {name!r}; it has: {having}")
    basis = Basis(**data)
    if isinstance(basis.feature, bool) or not isinstance(basis.feature, int) or basis.feature < 0:
        raise ValueError(f"feature is {basis.feature!r}; it must be an integer, at least 0")
    for name in ("period", "centre", "scale"):
        value = getattr(basis, name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or (name != "centre" and value <= 0):
            least = "" if name == "centre" else " above zero"
            raise ValueError(f"{name} is {value!r}; it must be a finite number{least}")
    return basis._replace(
        period=float(basis.period), centre=float(basis.centre), scale=float(basis.scale)
    )


def describe(bases: Sequence[BasisFunction], position: int) -> str:
    """Return a basis as error messages name it: its position, from 0, and its parameters."""
    basis = bases[position]
    if isinstance(basis, Basis):
        parts = [f"{name} {value}" for name, value in basis_to_data(basis).items()][1:]
        return f"basis {position} ({', '.join([basis.type, *parts])})"
    return f"basis {position} ({getattr(basis, '__name__', 'a function')})"


def evaluate(bases: Sequence[BasisFunction], X: Matrix) -> Float64Array:
    """Psi_ij = psi_j(x_i), (n, K), of (n, d) finite rows.

    Raises ValueError, naming the basis, for a feature that the rows do not have, for values other
    than one finite number for each row, and for a function on sparse rows.
    """
    Psi = np.empty((n_rows(X), len(bases)))
    for j in range(len(bases)):
        values = _values(bases, j, X)
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise ValueError(f"{describe(bases, j)} is {values[wrong[0]]} at row {wrong[0]}")
        Psi[:, j] = values
    return Psi


def training_matrix(bases: Sequence[BasisFunction], X: Matrix) -> Float64Array:
    """Return Psi of training rows, after checking that they determine every coefficient.

    Raises ValueError as `evaluate` does, where a column is a combination of others, and unless
    there are fewer basis functions than rows.
    """
    Psi = evaluate(bases, X)
    M, K = Psi.shape
    if K >= M:
        raise ValueError(
            f"{K} basis functions need more than {K} rows, and there are {M}: from "
            f"{describe(bases, max(M - 1, 0))} on there are too many"
        )
    check_independent(bases, Psi)
    return Psi


def check_independent(bases: Sequence[BasisFunction], Psi: Float64Array) -> None:
    """Raise ValueError, with their names, where columns of Psi (M, K < M) are dependent.

    For columns of unit length, |R_jj| of Psi = QR is the distance of column j from the span of
    those before it.
    """
    largest = np.abs(Psi).max(axis=0, initial=0.0)
    for j in np.flatnonzero(largest == 0.0).tolist():
        raise ValueError(f"{describe(bases, j)} is zero at every row: leave it out")
    unit = Psi / largest
    unit /= np.sqrt((unit * unit).sum(axis=0))
    dependent = np.flatnonzero(np.abs(np.diag(np.linalg.qr(unit, mode="r"))) < _DEPENDENT)
    if len(dependent):
        j = int(dependent[0])
        share = np.linalg.lstsq(unit[:, :j], unit[:, j], rcond=None)[0]
        parts = [describe(bases, i) for i in np.flatnonzero(np.abs(share) > _PART).tolist()]
        raise ValueError(
            f"{describe(bases, j)} is a combination of {', '.join(parts)} at every row: leave "
            "one of them out"
        )


def _values(bases: Sequence[BasisFunction], j: int, X: Matrix) -> Float64Array:
    """Return psi_j of each row, (n,)."""
    basis = bases[j]
    if not isinstance(basis, Basis):
        return _values_of_function(bases, j, X)
    if basis.type == "constant":
        return np.ones(n_rows(X))
    if not isinstance(X, SparseRows) and basis.feature >= X.shape[1]:
        raise ValueError(f"{describe(bases, j)}: the rows have {X.shape[1]} features only")
    x = feature_values(X, basis.feature)
    if basis.type == "trend":
        return x
    with np.errstate(over="ignore", invalid="ignore"):
        if basis.type == "sinc":
            # numpy's sinc(t) is sin(pi t) / (pi t).
            return np.sinc(basis.scale * (x - basis.centre) / math.pi)
        angle = 2.0 * math.pi * (x / basis.period)
        return np.sin(angle) if basis.type == "sin" else np.cos(angle)


def _values_of_function(bases: Sequence[BasisFunction], j: int, X: Matrix) -> Float64Array:
    function = bases[j]
    assert not isinstance(function, Basis)
    if isinstance(X, SparseRows):
        raise ValueError(f"{describe(bases, j)} is a function and takes dense rows only")
    values = np.asarray(function(X), np.float64)
    if values.shape != (len(X),):
        raise ValueError(
            f"{describe(bases, j)} returned an array of shape {values.shape} for {len(X)} rows; "
            "it must return one number a row"
        )
    return values
