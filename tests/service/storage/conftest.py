"""A journal in a data directory, with a model in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.storage.journals import opened
from tests.service.storage.writing import create
from wolfstream.service.storage.interfaces import Storage


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


@pytest.fixture(scope="module")
def shared_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file for many examples, each with a model of its own."""
    return tmp_path_factory.mktemp("journal") / "log.sqlite"


@pytest.fixture
def storage(path: Path) -> Iterator[Storage]:
    with opened(path) as storage:
        yield storage


@pytest.fixture
def model(storage: Storage) -> int:
    return create(storage, "m", {})
