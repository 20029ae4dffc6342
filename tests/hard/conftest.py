"""The campaign's figures, printed as a table when it is over."""

from collections.abc import Callable
from typing import Any

import pytest

_FIGURES = pytest.StashKey[list[tuple[str, str, str]]]()

Report = Callable[..., None]


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Report:
    """Note figures under the test's name: report(crashes=100, lost=0)."""
    figures = request.config.stash.setdefault(_FIGURES, [])
    test = request.node.name

    def note(**of_test: Any) -> None:
        figures.extend((test, name.replace("_", " "), str(v)) for name, v in of_test.items())

    return note


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """One line a figure, test by test."""
    figures = config.stash.get(_FIGURES, [])
    if not figures:
        return
    terminalreporter.section("figures of the campaign")
    last = ""
    for test, name, value in figures:
        if test != last:
            terminalreporter.write_line(test)
            last = test
        terminalreporter.write_line(f"    {name:<44} {value}")
