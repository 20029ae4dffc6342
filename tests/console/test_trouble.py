"""The page where keys are wanted, and where the server goes away and comes back."""

from pathlib import Path
from typing import Any

from tests.console.conftest import SCREENSHOTS, Errors, look_often
from tests.console.test_page import expect_fact, learn
from tests.service.process import ServerProcess
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.keys import add_key


def test_key_is_kept_in_the_tab(page: Any, tmp_path: Path, errors: Errors):
    server = ServerProcess(tmp_path / "data")
    server.prelude = look_often
    server.data.mkdir()
    key = add_key(KeyFile(server.data), "page", ("admin",))
    server.start()
    try:
        page.goto(server.url)
        page.get_by_label("Key", exact=True).fill("wf_wrong")
        page.get_by_role("button", name="Use this key").click()
        page.get_by_label("Key", exact=True).fill(key)
        page.get_by_role("button", name="Use this key").click()
        page.get_by_label("New model").fill("rooms")
        page.get_by_role("button", name="Create").click()
        expect_fact(page, "Samples", "0")
        page.reload()
        expect_fact(page, "Samples", "0")
        assert key not in page.url
        assert page.evaluate("Object.values(sessionStorage)") == [key]
        assert page.evaluate("localStorage.length") == 0
        assert key not in server.log()
        page.close()
        errors.expect("401")
    finally:
        server.close()


def test_page_reconnects_after_a_crash(page: Any, tmp_path: Path, errors: Errors):
    server = ServerProcess(tmp_path / "data")
    server.prelude = look_often
    server.start()
    try:
        learn(server, "rooms", 300)
        page.goto(f"{server.url}/#/rooms")
        expect_fact(page, "Samples", "300")
        server.kill()
        page.locator("#connection.lost").wait_for()
        page.screenshot(path=SCREENSHOTS / "lost.png")
        server.start()
        page.locator("#connection", has_text="live").wait_for(timeout=60_000)
        learn(server, "rooms", 100, seed=3)
        expect_fact(page, "Samples", "400")
        page.close()
        # What the browser notes of connections that failed.
        errors.expect("net::ERR", "503")
    finally:
        server.close()
