"""River's interface to an estimator: samples one at a time, as dicts of named numbers."""

import sys
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from solver.arrays import Float64Array


class OneAtATime:
    """Rows that are dicts. The first row that is learned decides the names and their order.

    A name that is absent later, or whose value is None, is a missing number; a name that the first
    row does not have is refused. The bits are those of the same rows as arrays in that order.

    River is not imported. If it has been when an estimator is made, the class is registered with
    it as a virtual subclass, since its metrics check models by `isinstance`.
    """

    _supervised = True
    _kind_in_river: ClassVar[str]

    _names: dict[Any, int]

    def _register(self) -> None:
        river = sys.modules.get("river.base")
        if river is not None:
            getattr(river, self._kind_in_river).register(type(self))

    def _row_to_learn(self, x: Mapping[Any, Any]) -> Float64Array:
        """`_row`, which the first time decides the names."""
        if not hasattr(self, "_model"):
            row = _numbers(x, names := {name: k for k, name in enumerate(x)})
            self._names = names
            return row
        return self._row(x)

    def _row(self, x: Mapping[Any, Any]) -> Float64Array:
        """The row (1, d) of a dict. Raises ValueError, TypeError for what it cannot take."""
        if not hasattr(self, "_names"):
            raise ValueError(
                "rows were learned as arrays, and have no names: use partial_fit and predict"
            )
        return _numbers(x, self._names)


def _numbers(x: Mapping[Any, Any], names: Mapping[Any, int]) -> Float64Array:
    row = np.full((1, len(names)), np.nan)
    for name, value in x.items():
        if name not in names:
            raise ValueError(f"feature {name!r} is not one of the first row's, {list(names)}")
        row[0, names[name]] = _number(name, value)
    return row


def _number(name: Any, value: Any) -> float:
    if value is None:
        return np.nan
    if isinstance(value, int | float | np.number | np.bool_):
        return float(value)
    raise TypeError(
        f"feature {name!r} is {value!r:.40}, not a number: encode it first, as by "
        "preprocessing.OneHotEncoder"
    )
