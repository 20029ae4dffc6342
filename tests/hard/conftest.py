"""Prints the campaign's figures as a table at the end."""

from collections.abc import Callable
from typing import Any

import pytest

Report = Callable[..., None]


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Report:
    """Note figures under the test's name: report(crashes=100, lost=0)."""

    def note(**figures: Any) -> None:
        told = ((name.replace("_", " "), str(value)) for name, value in figures.items())
        request.node.user_properties.extend(told)

    return note


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line a figure, test by test."""
    ended = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    with_figures = [one for one in ended if one.when == "call" and one.user_properties]
    if with_figures:
        terminalreporter.section("figures of the campaign")
    for one in with_figures:
        terminalreporter.write_line(f"{one.nodeid.partition('/')[2]}  {one.duration:.0f} s")
        for name, value in one.user_properties:
            terminalreporter.write_line(f"    {name:<44} {value}")
