"""The image, built once for all tests of it."""

import pytest

from tests.image import engine


@pytest.fixture(scope="session")
def image() -> str:
    """The image of this tree."""
    if reason := engine.missing():
        pytest.skip(reason)
    engine.prepare()
    engine.build()
    return engine.IMAGE
