"""Texts of clients on the page: names, words, labels, ids, lines of files and addresses.

Each of them is shown as text. None becomes markup, none runs, and the policy has nothing to forbid.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.console.conftest import Errors
from tests.console.test_page import expect_fact
from tests.service.process import ServerProcess

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

IMAGE = "<img src=x onerror=owned()>"
SCRIPT = "</script><script>owned()</script>"
VECTOR = "\"'><svg/onload=owned()>"
LINK = "javascript:owned()//${owned()}{{owned()}}"
HOSTILE = (IMAGE, SCRIPT, VECTOR, LINK)
ENDLESS = {
    "a line": "1," * (1 << 23),
    "a quote": '1,"' + "x\n" * (1 << 23),
    "blank lines": "\n" * 100_000,
}
NOT_THERE = re.compile("there is no model|nothing is served")
# Names of features are also what an object of JavaScript has of its own.
NAMES = (IMAGE, SCRIPT, VECTOR, "__proto__", "constructor")
# Notes whether anything ran, was forbidden to, or asked for a file that the page does not name.
WATCH = """
  window.noted = [];
  window.owned = () => window.noted.push("ran");
  document.addEventListener("securitypolicyviolation", (e) => window.noted.push(e.blockedURI));
"""


@pytest.fixture
def watched(page: Any, server: ServerProcess) -> Iterator[Any]:
    """A page that at the end has run nothing and asked for nothing that it was told to by texts."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.add_init_script(WATCH)
    yield page
    assert page.evaluate("window.noted") == []
    assert page.locator("img[onerror], svg[onload], main script").count() == 0
    named = ("/console/", "/v1/models", "/docs")
    paths = [url.removeprefix(server.url) for url in asked]
    assert [path for path in paths if path != "/" and not path.startswith(named)] == []


def create(server: ServerProcess, name: str, spec: Any, x: list[Any], y: list[Any]) -> str:
    url = f"{server.url}/v1/models/{name}"
    with httpx.Client(timeout=60) as client:
        client.put(url, json=spec).raise_for_status()
        client.post(f"{url}/samples", content=json.dumps({"x": x, "y": y})).raise_for_status()
    return url


def test_names_words_and_labels(watched: Any, server: ServerProcess):
    x = [dict.fromkeys(NAMES, HOSTILE[i % 4]) | {NAMES[i % 5]: HOSTILE[i % 3]} for i in range(60)]
    url = create(server, "hostile", {}, x, [HOSTILE[i % 4] for i in range(60)])
    watched.goto(f"{server.url}/#/hostile")
    expect_fact(watched, "Samples", "60")
    for name in NAMES:
        watched.get_by_label(name, exact=True).wait_for()
    latest = watched.locator("#latest-rows tr")
    for label in HOSTILE:
        latest.filter(has_text=label).first.wait_for()
    watched.get_by_label("Explain the prediction").check()
    with watched.expect_request("**/predict") as sent:
        watched.get_by_role("button", name="Predict", exact=True).click()
    assert json.loads(sent.value.post_data)["x"] == [x[-1]]
    watched.locator("#prediction h4", has_text="Why ").wait_for()
    watched.locator("#prediction .bar", has_text=IMAGE).wait_for()
    watched.goto("about:blank")  # an open page would ask for the deleted model
    httpx.delete(url).raise_for_status()


def test_ids(watched: Any, server: ServerProcess):
    url = create(server, "ids", {}, [[0, 1], [1, 0]], [IMAGE, VECTOR])
    httpx.post(f"{url}/predict", json={"x": [[1, 0]] * 4, "ids": HOSTILE}).raise_for_status()
    watched.goto(f"{server.url}/#/ids")
    for one in HOSTILE:
        watched.locator("#foretold-rows code", has_text=one).wait_for()
    watched.goto("about:blank")  # an open page would ask for the deleted model
    httpx.delete(url).raise_for_status()


def test_lines_of_a_file_and_what_the_server_says_of_them(
    watched: Any, server: ServerProcess, tmp_path: Path, errors: Errors
):
    url = create(server, "lines", {}, [{"a": 1, "b": 2}, {"a": 2, "b": 1}], ["yes", "no"])
    file = tmp_path / f"{IMAGE}.csv".replace("/", "")
    file.write_text(f"a,b,y\n1,{VECTOR * 20},yes\n1,2,{IMAGE * 20}\n1,2,yes\n")
    watched.goto(f"{server.url}/#/lines")
    expect_fact(watched, "Samples", "2")
    watched.locator("#csv").set_input_files(file)
    watched.get_by_role("button", name="Learn", exact=True).click()
    watched.get_by_text("1 samples learned in total, 2 lines refused and left out.").wait_for()
    errors.expect("422")  # what the browser notes of refusals
    watched.goto("about:blank")  # an open page would ask for the deleted model
    httpx.delete(url).raise_for_status()


@pytest.mark.parametrize("end", ENDLESS)
def test_a_file_of_a_row_without_end(watched: Any, server: ServerProcess, tmp_path: Path, end: str):
    """The page is not held up, and says what is wrong; blank lines are no row."""
    url = create(server, "endless", {}, [{"a": 1, "b": 2}, {"a": 2, "b": 1}], ["yes", "no"])
    file = tmp_path / "endless.csv"
    file.write_text("a,b,y\n1,2,yes\n" + ENDLESS[end])
    watched.goto(f"{server.url}/#/endless")
    expect_fact(watched, "Samples", "2")
    watched.locator("#csv").set_input_files(file)
    watched.get_by_role("button", name="Learn", exact=True).click()
    if end == "blank lines":
        watched.get_by_text("1 samples learned in total").wait_for()
    else:
        watched.get_by_role("alert").get_by_text("more than 8,388,608 characters").wait_for()
    watched.goto("about:blank")  # an open page would ask for the deleted model
    httpx.delete(url).raise_for_status()


@pytest.mark.parametrize("name", [IMAGE, SCRIPT, "../../docs", "a?b#c"])
def test_names_in_the_address(watched: Any, server: ServerProcess, name: str, errors: Errors):
    watched.goto(server.url)
    watched.evaluate("name => { location.hash = `/${encodeURIComponent(name)}`; }", name)
    watched.locator("#model-name", has_text=name).wait_for()
    watched.locator("#problem", has_text=NOT_THERE).wait_for()
    errors.expect("404")


@pytest.mark.parametrize("rest", ["%zz", "%", "%e0%a4"])
def test_an_address_that_is_no_text(watched: Any, server: ServerProcess, rest: str):
    watched.goto(f"{server.url}/#/{rest}")
    watched.get_by_role("alert").get_by_text("address").wait_for()
    watched.get_by_role("link", name="Models").click()
    watched.get_by_role("heading", name="Models").wait_for()
