"""Fixtures: an engine without a server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.writer_bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """An engine over a new data directory."""
    bench = Bench(tmp_path / "data")
    yield bench
    bench.close()
