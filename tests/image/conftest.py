"""The image, built once for all tests of it."""

import pytest

from tests.image import engine


@pytest.fixture(scope="session")
def image() -> str:
    """The image of this tree."""
    if reason := engine.missing():
        pytest.skip(reason)
    try:
        engine.prepare()
        engine.podman("run", "--rm", "--network", "host", "python:3.12-slim", "true")
    except RuntimeError as error:
        pytest.skip(f"no container can be run here: {error}")
    engine.build()
    return engine.IMAGE
