"""The page in a real browser, against a real server that learns."""

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.console.conftest import SCREENSHOTS, Errors
from tests.service.monitor.test_alerts import learn_a_stream_that_flips
from tests.service.process import ServerProcess
from tests.service.specs import PAPERS

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
NAMES = ("warmth", "pascals", "room")


def rows(n: int, seed: int = 0) -> tuple[list[dict[str, Any]], list[str]]:
    """Rooms that are humid where they are warm, and a bath."""
    random = np.random.default_rng(seed)
    warmth = random.normal(22, 4, n).round(1).tolist()
    pascals = random.normal(100_500, 700, n).round().tolist()
    room = random.choice(["hall", "bath"], n).tolist()
    made = [dict(zip(NAMES, row, strict=True)) for row in zip(warmth, pascals, room, strict=True)]
    humid = [w + 3 * (r == "bath") > 23 for w, r in zip(warmth, room, strict=True)]
    return made, ["humid" if is_humid else "dry" for is_humid in humid]


def learn(server: ServerProcess, name: str, n: int, seed: int = 0) -> None:
    x, y = rows(n, seed)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        client.put(f"/v1/models/{name}", json={})
        answer = client.post(f"/v1/models/{name}/samples", json={"x": x, "y": y})
    assert answer.status_code == 200, answer.text


@pytest.fixture
def name() -> str:
    return f"rooms-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def model(page: Any, server: ServerProcess, name: str) -> Iterator[str]:
    """A model that has learned; it is deleted at the end."""
    learn(server, name, 300)
    yield name
    page.goto("about:blank")  # an open page would ask for the deleted model
    httpx.delete(f"{server.url}/v1/models/{name}")


def fact(page: Any, name: str) -> Any:
    """The value of one of the model's facts."""
    return page.locator("#facts div", has=page.locator("dt", has_text=re.compile(f"^{name}$")))


def expect_fact(page: Any, name: str, value: str) -> None:
    fact(page, name).locator("dd", has_text=re.compile(f"^{value}$")).wait_for()


def test_new_model_is_watched_learning(page: Any, server: ServerProcess, name: str):
    page.goto(server.url)
    page.get_by_label("New model").fill(name)
    page.get_by_role("button", name="Create").click()
    page.get_by_role("heading", name=name).wait_for()
    expect_fact(page, "Samples", "0")
    for i in range(4):
        learn(server, name, 200, seed=i)
        page.wait_for_timeout(300)
    expect_fact(page, "Samples", "800")
    page.locator("#status .badge", has_text="ok").wait_for()
    assert page.locator("#latest-rows tr").count() == 10
    page.locator("#latest-rows tr", has_text="right").first.wait_for()
    page.get_by_text("Inside the model").click()
    page.locator("#head-rows tr", has_text="adaptive (answers)").wait_for()
    assert page.locator("#plots svg.plot").count() == 3  # no size of a set that does not answer
    assert page.locator("#reliability svg.plot").count() == 1
    page.locator(".legend", has_text="last label again").wait_for()
    page.get_by_text("Learners of the bank").wait_for()
    page.locator("#learner-rows tr").nth(7).wait_for()
    page.get_by_role("button", name="Show all").click()
    page.locator("#learner-rows tr").nth(20).wait_for()
    page.screenshot(path=SCREENSHOTS / "model.png", full_page=True)
    page.get_by_role("link", name="wolfstream").click()
    page.get_by_role("link", name=name).wait_for()
    page.screenshot(path=SCREENSHOTS / "models.png")


def test_empty_model_says_what_to_do(page: Any, server: ServerProcess, name: str):
    httpx.put(f"{server.url}/v1/models/{name}", json=PAPERS).raise_for_status()
    page.goto(f"{server.url}/#/{name}")
    page.get_by_text("The model has not learned anything yet.").wait_for()
    page.get_by_text("There is no snapshot yet.").wait_for()
    assert not page.locator("table", has_text="Samples since").is_visible()
    page.get_by_label("Row as JSON").fill('{"warmth": 20,')
    page.get_by_role("button", name="Predict", exact=True).click()
    page.get_by_role("alert").get_by_text("The row is not JSON. Write it like").wait_for()
    page.get_by_role("button", name="Save a snapshot").click()
    page.get_by_role("button", name="Roll back to this one").wait_for()
    assert not page.get_by_text("There is no snapshot yet.").is_visible()


def test_row_is_predicted_by_feature_names(page: Any, server: ServerProcess, model: str):
    page.goto(f"{server.url}/#/{model}")
    page.get_by_label("warmth").fill("30")
    page.get_by_label("room").fill("bath")
    page.get_by_role("button", name="Predict", exact=True).click()
    page.locator("#prediction strong", has_text="humid").wait_for()
    page.get_by_label("warmth").fill("12")
    page.get_by_role("button", name="Predict", exact=True).click()
    page.locator("#prediction strong", has_text="dry").wait_for()
    assert page.locator("#prediction meter").count() == 2
    page.get_by_role("button", name="Use the last row").click()
    assert page.get_by_label("warmth").input_value() == str(rows(300)[0][-1]["warmth"])


def test_a_prediction_says_why(page: Any, server: ServerProcess, model: str):
    page.goto(f"{server.url}/#/{model}")
    page.get_by_label("Explain the prediction").check()
    page.get_by_label("warmth").fill("30")
    page.get_by_role("button", name="Predict", exact=True).click()
    page.locator("#prediction h4", has_text="Why humid, not dry").wait_for()
    page.locator("#prediction tbody tr", has_text="warmth").wait_for()


def test_late_labels_are_shown(page: Any, server: ServerProcess, name: str):
    url = f"{server.url}/v1/models/{name}"
    with httpx.Client(timeout=60) as client:
        client.put(url, json=PAPERS | {"asset": None, "pending": {"max_rows": 2}})
        client.post(f"{url}/samples", json={"x": [[0, 1], [1, 0]], "y": ["dry", "humid"]})
        for row_id in ("attic", "hall", "bath"):
            sent = {"x": [[1, 0]], "ids": [row_id]}
            client.post(f"{url}/predict", json=sent).raise_for_status()
        page.goto(f"{server.url}/#/{name}")
        rows = page.locator("#foretold-rows tr")
        rows.filter(has_text="attic").filter(has_text="expired").wait_for()
        rows.filter(has_text="hall").filter(has_text="waiting for").wait_for()
        sent = {"ids": ["hall"], "y": ["humid"]}
        client.post(f"{url}/labels", json=sent).raise_for_status()
    rows.filter(has_text="hall").filter(has_text="✓ right").wait_for()
    page.get_by_text("1 waiting, 1 labelled, 1 expired.").wait_for()
    expect_fact(page, "Late labels", "1 waiting")
    page.screenshot(path=SCREENSHOTS / "labels.png", full_page=True)


def test_numbers_are_learned_and_predicted(page: Any, server: ServerProcess, name: str):
    page.goto(server.url)
    page.get_by_label("New model").fill(name)
    page.get_by_label("learns").select_option("regression")
    page.get_by_role("button", name="Create").click()
    expect_fact(page, "Samples", "0")
    X = np.random.default_rng(0).uniform(0, 10, (300, 2)).round(2)
    sent = {"x": X.tolist(), "y": (3 * X[:, 0] - X[:, 1]).tolist()}
    httpx.post(f"{server.url}/v1/models/{name}/samples", json=sent, timeout=60)
    expect_fact(page, "Samples", "300")
    page.get_by_label("Feature 1").fill("5")
    page.get_by_label("Feature 2").fill("1")
    page.get_by_role("button", name="Predict", exact=True).click()
    told = page.locator("#prediction", has_text="±").text_content()
    assert float(told.split()[0]) == pytest.approx(14, abs=2)
    page.locator("#latest-rows tr", has_text="off by").first.wait_for()
    page.get_by_text("Inside the model").click()
    page.locator("#head-columns th", has_text="Mean error").first.wait_for()


def test_challenger_is_compared_and_promoted(page: Any, server: ServerProcess, model: str):
    challenger = f"{model}-b"
    sent = {"follows": model, "start": "samples", "adaptive": None}
    httpx.put(f"{server.url}/v1/models/{challenger}", json=sent).raise_for_status()
    page.goto(f"{server.url}/#/{model}")
    learn(server, model, 200, seed=1)
    mine = page.locator("#challenger-rows tr", has_text=challenger)
    mine.locator("td", has_text=" to ").wait_for()
    page.screenshot(path=SCREENSHOTS / "challengers.png", full_page=True)
    mine.get_by_role("button", name="Promote").click()
    page.get_by_role("button", name="Cancel").click()
    mine.get_by_role("button", name="Promote").click()
    page.locator("#promote-dialog").get_by_role("button", name="Promote").click()
    page.get_by_text("Inside the model").click()
    page.locator("#head-rows tr", has_text=re.compile(r"^working.set \(answers\)")).wait_for()
    told = httpx.get(f"{server.url}/v1/models/{model}").json()
    assert told["rolled_back"]["of"] == challenger
    page.goto(f"{server.url}/#/{challenger}")
    fact(page, "Follows").locator("dd", has_text=model).wait_for()
    page.goto("about:blank")  # an open page would ask for the deleted model
    httpx.delete(f"{server.url}/v1/models/{challenger}")


def test_form_stays_while_other_rows_come(page: Any, server: ServerProcess, name: str):
    def learn_words(*texts: str) -> None:
        x = [dict.fromkeys(text.split(), 1.0) for text in texts]
        sent = {"x": x, "y": ["spam", "ham"] * (len(x) // 2)}
        with httpx.Client(base_url=server.url, timeout=60) as client:
            client.post(f"/v1/models/{name}/samples", json=sent).raise_for_status()

    spec = {"prepare": None, "adaptive": None, "asset": None}
    httpx.put(f"{server.url}/v1/models/{name}", json=spec)
    learn_words("buy now", "see you")
    page.goto(f"{server.url}/#/{name}")
    page.get_by_label("see").fill("2")
    page.wait_for_timeout(700)
    learn_words("buy pills", "good evening")
    expect_fact(page, "Samples", "4")
    assert page.get_by_label("see").input_value() == "2"
    page.get_by_role("button", name="Use the last row").click()
    page.get_by_label("evening").wait_for()


def test_wrong_row_shows_the_refusal(page: Any, server: ServerProcess, name: str, errors: Errors):
    spec = {"prepare": None, "adaptive": None, "asset": None}
    sent = {"x": [{"warmth": 20.0}, {"warmth": 25.0}], "y": ["dry", "humid"]}
    with httpx.Client(base_url=server.url, timeout=60) as client:
        client.put(f"/v1/models/{name}", json=spec).raise_for_status()
        client.post(f"/v1/models/{name}/samples", json=sent).raise_for_status()
    page.goto(f"{server.url}/#/{name}")
    page.get_by_label("warmth").fill("mild")
    page.get_by_role("button", name="Predict", exact=True).click()
    page.get_by_role("alert").get_by_text("must be a number, not text").wait_for()
    # What the browser notes of the refusal itself.
    errors.expect("422")


def test_csv_is_learned_without_bad_lines(
    page: Any, server: ServerProcess, model: str, tmp_path: Path, errors: Errors
):
    x, y = rows(2500, seed=5)
    lines = [",".join(map(str, (*row.values(), label))) for row, label in zip(x, y, strict=True)]
    lines[1800] = "21.5,100000"
    file = tmp_path / "rooms.csv"
    file.write_text("\n".join(["warmth,pascals,room,y", *lines]) + "\n")
    page.goto(f"{server.url}/#/{model}")
    expect_fact(page, "Samples", "300")
    page.locator("#csv").set_input_files(file)
    page.get_by_role("button", name="Learn", exact=True).click()
    page.get_by_text("2,499 samples learned in total, 1 line refused and left out.").wait_for()
    refused = page.locator("#refused-lines li").all_text_contents()
    assert [text.partition(":")[0] for text in refused] == ["Line 1802"]
    expect_fact(page, "Samples", "2,799")
    assert page.locator("#learn-progress").evaluate("bar => bar.value") == 1
    errors.expect("422")


def test_a_file_is_dropped(page: Any, server: ServerProcess, model: str):
    page.goto(f"{server.url}/#/{model}")
    expect_fact(page, "Samples", "300")
    page.evaluate(
        """() => {
          const text = "warmth,pascals,room,y\\n18,101300,hall,dry\\n29,99800,bath,humid\\n";
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File([text], "rooms.csv", { type: "text/csv" }));
          const event = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
          document.getElementById("drop").dispatchEvent(event);
        }"""
    )
    assert page.get_by_label("The first line has the column names").is_checked()
    page.get_by_role("button", name="Learn", exact=True).click()
    page.get_by_text("2 samples learned in total.").wait_for()
    expect_fact(page, "Samples", "302")


def test_a_rollback_by_clicks(page: Any, server: ServerProcess, model: str):
    page.goto(f"{server.url}/#/{model}")
    page.get_by_role("button", name="Save a snapshot").click()
    page.get_by_role("button", name="Roll back to this one").wait_for()
    learn(server, model, 100, seed=9)
    expect_fact(page, "Samples", "400")
    page.get_by_role("button", name="Roll back to this one").click()
    page.locator("#rollback-text", has_text="the 100 samples after").wait_for()
    page.get_by_role("button", name="Cancel").click()
    assert httpx.get(f"{server.url}/v1/models/{model}").json()["rolled_back"] is None
    page.get_by_role("button", name="Roll back to this one").click()
    page.get_by_role("button", name="Roll back", exact=True).click()
    page.locator("#marks", has_text="Rolled back to 300 at 400").wait_for()
    told = httpx.get(f"{server.url}/v1/models/{model}").json()
    assert told["rolled_back"]["to"] == 300
    assert told["heads"]["adaptive"]["prequential"]["samples"] < 300


def test_a_change_is_seen(page: Any, server: ServerProcess, name: str):
    httpx.put(f"{server.url}/v1/models/{name}", json=PAPERS | {"asset": None})
    page.goto(f"{server.url}/#/{name}")
    expect_fact(page, "Samples", "0")
    learn_a_stream_that_flips(server.url, name)
    expect_fact(page, "Samples", "2,200")
    page.locator(
        "#marks", has_text=re.compile(r"^Change at 1,[678]\d\d: mean loss from")
    ).wait_for()
    page.get_by_text("Inside the model").click()
    page.locator("#head-rows td:last-child", has_text="1").wait_for()
    page.locator("#plots .mark").first.wait_for(state="attached")
    # Both at once: the plots are drawn again each second.
    mark, left, right = page.evaluate(
        """() => {
            const plot = document.querySelector("#plots svg.plot").getBoundingClientRect();
            const mark = document.querySelector("#plots .mark").getBoundingClientRect();
            return [mark.left, plot.left, plot.right];
        }"""
    )
    assert left < mark < right
    page.screenshot(path=SCREENSHOTS / "change.png")


def test_page_fits_a_dark_phone(browser: Any, server: ServerProcess, model: str):
    challenger = {"follows": model, "start": "samples", "adaptive": None}
    httpx.put(f"{server.url}/v1/models/{model}-b", json=challenger).raise_for_status()
    context = browser.new_context(viewport={"width": 390, "height": 740}, color_scheme="dark")
    page = context.new_page()
    page.goto(f"{server.url}/#/{model}")
    expect_fact(page, "Samples", "300")
    page.locator("#challenger-rows tr").wait_for()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(map(int, re.findall(r"\d+", ground))) < 60
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.screenshot(path=SCREENSHOTS / "phone.png", full_page=True)
    context.close()
    httpx.delete(f"{server.url}/v1/models/{model}-b")


def test_the_page_works_by_keyboard(page: Any, server: ServerProcess, model: str):
    page.goto(server.url)
    page.get_by_role("link", name=model).wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    for _ in range(20):
        if page.evaluate("document.activeElement.textContent") == model:
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect_fact(page, "Samples", "300")
    page.get_by_label("warmth").focus()
    page.keyboard.press("Enter")
    page.locator("#prediction strong").wait_for()


def test_page_loads_nothing_from_elsewhere(page: Any, server: ServerProcess):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(server.url)
    page.locator("#model-rows, #no-models").first.wait_for(state="attached")
    assert all(url.startswith(server.url) for url in asked)


def test_first_screen_judges_the_model(page: Any, server: ServerProcess, name: str):
    random = np.random.default_rng(0)
    fraud = random.random(800) < 0.03
    x = [{"amount": float(a), "land": "DE"} for a in random.normal(10.0 * fraud, 3.0)]
    sent = {"x": x, "y": ["fraud" if one else "ok" for one in fraud]}
    spec = {"working_set": None, "asset": None}
    with httpx.Client(base_url=server.url, timeout=60) as client:
        client.put(f"/v1/models/{name}", json=spec).raise_for_status()
        client.post(f"/v1/models/{name}/samples", json=sent).raise_for_status()
    page.goto(f"{server.url}/#/{name}")
    page.get_by_text("It predicts one of 2 labels: ok, fraud.").wait_for()
    page.locator("#summary-words", has_text="always guessing the most frequent label").wait_for()
    page.locator(
        "#summary-words", has_text="that were fraud, the rarest label, it found"
    ).wait_for()
    page.locator("#summary-look li", has_text="% of labels are `ok`: look at precision").wait_for()
    page.locator("#summary-reasons", has_text="amount").wait_for()
    page.locator("#confusion-rows tr", has_text="fraud").wait_for()
    page.locator("#column-rows tr", has_text="amount").wait_for()
    assert not page.locator("#head-rows").is_visible()
    page.screenshot(path=SCREENSHOTS / "summary.png", full_page=True)


def test_label_column_of_a_file_is_chosen(
    page: Any, server: ServerProcess, model: str, tmp_path: Path
):
    file = tmp_path / "rooms.csv"
    file.write_text('warmth,"state, now",room\n18,dry,hall\n29,humid,bath\n')
    asked: list[str] = []
    answer = {"json": {"learned": 2}}
    page.route(
        "**/samples*", lambda route: (asked.append(route.request.url), route.fulfill(**answer))
    )
    page.goto(f"{server.url}/#/{model}")
    page.locator("#csv").set_input_files(file)
    page.locator("#csv-rows tr").nth(1).wait_for()
    button = page.get_by_role("button", name="Learn", exact=True)
    assert button.is_disabled()
    page.get_by_label("The label is").select_option("state, now")
    button.click()
    page.get_by_text("2 samples learned in total.").wait_for()
    assert asked == [f"{server.url}/v1/models/{model}/samples?label=state%2C%20now"]
