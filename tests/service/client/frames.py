"""A data frame, where no library of them is installed."""

from typing import Any

import numpy as np


class Frame:
    """As much of a data frame as is used."""

    def __init__(self, columns: dict[Any, list[Any]]):
        self._columns = columns
        self.columns = list(columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def to_numpy(self) -> np.ndarray[Any, Any]:
        kinds = {type(value) for values in self._columns.values() for value in values}
        dtype = float if kinds <= {int, float} else object
        return np.array(list(self._columns.values()), dtype).T

    def __getitem__(self, name: Any) -> "Frame":
        return Column({name: self._columns[name]})


class Column(Frame):
    """A column of one."""

    def to_numpy(self) -> np.ndarray[Any, Any]:
        return super().to_numpy()[:, 0]
