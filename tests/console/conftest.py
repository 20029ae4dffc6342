"""A real browser. Where there is none, the tests that need it are skipped and say so."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.process import ServerProcess
from wolfstream.service.monitor import producer

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
# Where pictures of the page are left to be looked at.
SCREENSHOTS = Path(__file__).parents[2] / "screenshots"


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Chromium, without a window; while it is there, no test of another package can use asyncio."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install '.[test]'"
    )
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    SCREENSHOTS.mkdir(exist_ok=True)
    with playwright.sync_playwright() as driver:
        # Without its sandbox, which root may not use.
        running = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


def look_often() -> None:
    """Let a server send its models' states five times a second."""
    producer._EVENT_SECONDS = 0.2


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that the tests of all modules share."""
    running = ServerProcess(tmp_path_factory.mktemp("console") / "data")
    running.prelude = look_often
    running.start()
    yield running
    running.close()


class Errors(list[str]):
    """What the browser's console says is wrong, but for what is expected."""

    def __init__(self) -> None:
        super().__init__()
        self._expected: tuple[str, ...] = ()

    def expect(self, *texts: str) -> None:
        """Leave out messages that have one of these texts, whenever they come.

        The browser notes a failed request at a time of its own, perhaps after the page has shown
        what came of it.
        """
        self._expected = texts
        self[:] = [one for one in self if not self._is_expected(one)]

    def watch(self, page: Any) -> None:
        """Collect from a page."""
        page.on("pageerror", lambda error: self.append(str(error)))
        page.on("console", lambda said: said.type == "error" and self._note(said.text))

    def _note(self, text: str) -> None:
        if not self._is_expected(text):
            self.append(text)

    def _is_expected(self, text: str) -> bool:
        return any(one in text for one in self._expected)


@pytest.fixture
def errors() -> Iterator[Errors]:
    """Errors of the test's pages: there must be none at its end that it does not expect."""
    found = Errors()
    yield found
    assert found == []


@pytest.fixture
def page(browser: Any, errors: Errors) -> Iterator[Any]:
    """A page in a tab of its own, without anything kept from others."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, locale="en-GB")
    context.set_default_timeout(60_000)
    made = context.new_page()
    errors.watch(made)
    yield made
    context.close()
