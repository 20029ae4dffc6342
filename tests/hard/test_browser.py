"""A real browser attacks a server without keys on its user's machine, through pages that are open.

A page of another site must learn nothing from the server, teach it nothing, and open no stream; nor
must one whose own name was made to lead to the server (DNS rebinding). The same attacks from a site
that the server's settings name do succeed, so what fails does so for want of leave.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.hard.browser.pages import ATTACK, FLAGS, foreign_site
from tests.hard.conftest import Report
from tests.service.process import CommandProcess
from tests.service.specs import PAPERS

pytestmark = [pytest.mark.hard, pytest.mark.timeout(600)]

SPEC = PAPERS | {"working_set": {"max_size": 40}, "asset": None}
PAGE, HTML = "<!doctype html><body>", "text/html"
FRIEND = "http://friend.test:8099"
# Of the attacks, so many at least reach a server that a browser does not protect.
MANY = 15
Attack = Callable[[str, str], dict[str, str | None]]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install '.[hard]'"
    )
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield running
        running.close()


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[CommandProcess]:
    """With a model m of two samples, which has a snapshot and one sample after it."""
    with closing(CommandProcess(tmp_path / "data", **getattr(request, "param", {})).start()) as one:
        with httpx.Client(base_url=one.url) as client:
            client.put("/v1/models/m", json=SPEC).raise_for_status()
            client.post(
                "/v1/models/m/samples", json={"x": [[0, 1], [1, 0]], "y": [0, 1]}
            ).raise_for_status()
            client.post("/v1/models/m/snapshot").raise_for_status()
            client.post("/v1/models/m/samples", json={"x": [0, 2], "y": 0}).raise_for_status()
        yield one


def state(server: CommandProcess) -> Any:
    """Return all that a request could have changed."""
    with httpx.Client(base_url=server.url) as client:
        models = client.get("/v1/models").json()
        history = client.get("/v1/models/m/history").json()
        return models, history["epoch"], [one["sequence"] for one in history["snapshots"]]


def refused(server: CommandProcess) -> int:
    """Return how many requests it has refused as foreign."""
    return server.log().count('"status": 403')


@pytest.fixture
def attack(browser: Any, server: CommandProcess) -> Iterator[Attack]:
    """What a page was able to read, by attack. page: its URL. target: the server's."""
    with foreign_site(server.url) as port, closing(browser.new_context()) as context:

        def run(page_url: str, target: str) -> dict[str, str | None]:
            page = context.new_page()
            # What the attacker served at this name, before the name led to the server.
            page.route(
                "**/attack", lambda route: route.fulfill(body="<body>", content_type="text/html")
            )
            page.goto(page_url.replace("SITE", str(port)))
            elsewhere = f"http://evil.test:{port}"
            given = {"server": target, "model": "m", "elsewhere": elsewhere}
            read: dict[str, str | None] = page.evaluate(ATTACK, given)
            page.close()
            return read

        yield run


@pytest.mark.parametrize("page", ["http://evil.test:SITE/", "http://localhost:SITE/"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_of_another_site(
    server: CommandProcess, attack: Attack, page: str, host: str, report: Report
) -> None:
    before = state(server)
    read = attack(page, f"http://{host}:{server.port}")
    assert {name: text for name, text in read.items() if text} == {}
    assert state(server) == before
    assert refused(server) >= MANY
    report(attacks=len(read), refused_with_403=refused(server), read=0)


def test_a_page_whose_name_leads_to_the_server(
    server: CommandProcess, attack: Attack, report: Report
) -> None:
    before = state(server)
    site = f"http://rebound.test:{server.port}"
    read = attack(f"{site}/attack", site)
    told = {name: text for name, text in read.items() if text}
    assert all(text.startswith("403 ") or "403" in text for text in told.values()), told
    assert not any("sequence" in text for text in told.values()), told
    assert state(server) == before
    assert refused(server) >= MANY
    report(attacks=len(read), refused_with_403=refused(server), read=0)


@pytest.mark.parametrize("server", [{"origins": FRIEND}], indirect=True)
def test_the_same_attacks_of_a_site_with_leave(server: CommandProcess, attack: Attack) -> None:
    read = attack(f"{FRIEND}/attack", server.url)
    told = {name for name, text in read.items() if text}
    assert {"cors GET /v1/models", "cors text/plain samples", "stream wolfstream.v1.json"} <= told
    models = httpx.get(f"{server.url}/v1/models").json()["models"]
    assert [model["model"] for model in models] == ["of-the-page"], "made one, deleted the other"
