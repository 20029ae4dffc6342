"""Parameter sweeps: `make test` runs a part that has every value, `make test-hard` all cases.

A test marked `sweep` says that its parameters are a sweep over combinations. Of its cases a part is
run: the fewest, found greedily, in which each value of each parameter occurs at least once.
`--all-cases` runs them all. A sweep whose part would still be long is marked `hard` as well: `make
test` runs none of it, and some of its cases as a test of their own.
"""

from collections import defaultdict
from collections.abc import Hashable

import pytest

Level = tuple[Hashable, Hashable]


def levels_of(item: pytest.Function) -> frozenset[Level]:
    """The parameters of a case, each with its value, known by identity: it need not be hashable."""
    return frozenset((name, id(value)) for name, value in item.callspec.params.items())


def covering(cases: list[frozenset[Level]]) -> list[int]:
    """Indices of cases in which every level occurs: each time the one with most new levels."""
    missing: set[Level] = set().union(*cases)
    chosen = []
    while missing:
        best = max(range(len(cases)), key=lambda i: (len(cases[i] & missing), -i))
        missing -= cases[best]
        chosen.append(best)
    return chosen


def thin_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the cases of sweeps that the part does not need."""
    sweeps: dict[object, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sweep") and isinstance(item, pytest.Function):
            sweeps[item.parent, item.originalname].append(item)
    left_out: set[pytest.Item] = set()
    for cases in sweeps.values():
        kept = set(covering([levels_of(case) for case in cases]))
        left_out |= {case for i, case in enumerate(cases) if i not in kept}
    if left_out:
        config.hook.pytest_deselected(items=sorted(left_out, key=lambda item: item.nodeid))
        items[:] = [item for item in items if item not in left_out]
