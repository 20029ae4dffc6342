"""Arrays as lists, made in parts that let other threads run."""

from typing import Any

import numpy as np
import pytest

from wolfstream.solver.arrays import to_lists


class Recorded(np.ndarray[Any, Any]):
    """An array that notes how many numbers each list that is made of it has."""

    sizes: list[int] = []

    def tolist(self) -> Any:
        self.sizes.append(self.size)
        return super().tolist()


@pytest.mark.parametrize("shape", [(0,), (5,), (40_000,), (0, 3), (4, 3), (40_000, 7), (2, 50_000)])
def test_lists_are_those_of_the_array(shape: tuple[int, ...]):
    array = np.random.default_rng(0).normal(size=shape)
    assert to_lists(array) == array.tolist()


def test_large_arrays_are_made_in_parts():
    Recorded.sizes.clear()
    assert len(to_lists(np.zeros((100_000, 100)).view(Recorded))) == 100_000
    assert max(Recorded.sizes) <= 1 << 15
    assert sum(Recorded.sizes) == 10_000_000
