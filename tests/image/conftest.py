"""The image, built once for all tests of it."""

import subprocess

import pytest

from tests.image import engine


@pytest.fixture(scope="session")
def image() -> str:
    """The image of this tree."""
    if reason := engine.missing():
        pytest.skip(reason)
    try:
        engine.prepare()
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"containers cannot be run here: {error}")
    engine.build()
    return engine.IMAGE
