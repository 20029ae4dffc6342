"""The part of a sweep that is run has every value of every parameter."""

from itertools import product

import pytest

from tests.sweeps import covering


@pytest.mark.parametrize("sizes", [(1,), (5,), (2, 3), (20, 2, 6), (3, 3, 3)])
def test_every_value_occurs(sizes: tuple[int, ...]) -> None:
    cases = [frozenset(enumerate(case)) for case in product(*map(range, sizes))]
    chosen = covering(cases)
    assert set().union(*(cases[i] for i in chosen)) == set().union(*cases)
    assert len(chosen) == max(sizes)


def test_cases_that_are_not_a_product() -> None:
    cases = [frozenset({("a", 0), ("b", 0)}), frozenset({("a", 1)}), frozenset({("b", 1)})]
    assert sorted(covering(cases)) == [0, 1, 2]
