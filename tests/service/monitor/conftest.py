"""Side files, which are closed after the test that has opened them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from wolfstream.service.monitor import alerts, points
from wolfstream.service.monitor.side_file import SideFile

SideFiles = Callable[[Path], SideFile]


@pytest.fixture
def side_file() -> Iterator[SideFiles]:
    """Opens the side file of a folder."""
    with ExitStack() as opened:

        def open_one(folder: Path) -> SideFile:
            file = SideFile(folder / "monitor.sqlite", points.SCHEMA + alerts.SCHEMA)
            return opened.enter_context(closing(file))

        yield open_one
