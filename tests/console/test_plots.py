"""The plots: their axes, and what the pointer shows."""

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from tests.service.process import ServerProcess

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(scope="module")
def scripts(browser: Any, server: ServerProcess) -> Iterator[Any]:
    """A page that can import the console's scripts."""
    context = browser.new_context(timezone_id="Asia/Kolkata")
    page = context.new_page()
    page.goto(server.url)
    yield page
    context.close()


def axis(scripts: Any, call: str) -> dict[str, Any]:
    code = f"import('./console/axes.js').then(({{numberAxis, timeAxis}}) => {call})"
    found: dict[str, Any] = scripts.evaluate(code)
    return found


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.43, 0.975, [0.4, 0.6, 0.8, 1.0]),
        (0.6, 0.8, [0.6, 0.65, 0.7, 0.75, 0.8]),
        (28, 33, [28, 30, 32, 34]),
        (-3, 12, [-5, 0, 5, 10, 15]),
        (1e-7, 3e-7, [1e-7, 1.5e-7, 2e-7, 2.5e-7, 3e-7]),
        (95_000_000, 163_000_000, [80e6, 100e6, 120e6, 140e6, 160e6, 180e6]),
        # One number is shown beside zero.
        (1, 1, [0, 0.5, 1]),
        (-40, -40, [-40, -30, -20, -10, 0]),
        (0, 0, [0, 0.5]),
    ],
)
def test_ticks_are_round_and_contain_all(scripts: Any, low: float, high: float, ticks: list[float]):
    found = axis(scripts, f"numberAxis({low}, {high}, 4, String)")
    assert found["ticks"] == ticks
    assert found["low"] == pytest.approx(ticks[0])
    assert found["high"] == pytest.approx(ticks[-1])


@pytest.mark.parametrize(
    ("span", "count", "step"), [(60, 10, 10), (300, 5, 60), (86_400, 9, 21_600)]
)
def test_ticks_of_time_are_at_round_times_of_the_readers_day(
    scripts: Any, span: int, count: int, step: int
):
    begin = 1_790_000_003
    found = axis(scripts, f"timeAxis({begin}, {begin + span}, {count}, String)")
    first, *others = found["ticks"]
    assert begin <= first < begin + step
    assert others == [*range(first + step, begin + span + 1, step)]
    kolkata = 5.5 * 3600
    assert (first + kolkata) % step == 0


@pytest.fixture
def moments(page: Any, server: ServerProcess) -> Iterator[str]:
    """The name of a model that has learned at two moments."""
    url = f"{server.url}/v1/models/moments"
    httpx.put(url, json={}).raise_for_status()
    X = np.random.default_rng(0).normal(size=(100, 2))
    sent = {"x": X.tolist(), "y": (X[:, 0] > 0).astype(int).tolist()}
    httpx.post(f"{url}/samples", json=sent, timeout=60).raise_for_status()
    yield "moments"
    page.goto("about:blank")  # an open page would ask for the deleted model
    httpx.delete(url)


def test_the_pointer_shows_what_was_then(scripts: Any):
    scripts.evaluate(
        """async () => {
          const { Chart } = await import("./console/charts.js");
          const { Series } = await import("./console/series.js");
          const series = new Series();
          for (let i = 0; i <= 100; i += 1) series.add(1.79e9 + i, { a: i, b: null });
          const lines = ["a", "b"].map((name) => ({ name, label: name, color: "series-1" }));
          document.body.replaceChildren();
          new Chart(document.body, { title: "a", lines, show: String }).draw(series, 0, []);
        }"""
    )

    def values() -> list[str]:
        found: list[str] = scripts.locator(".legend b").all_text_contents()
        return found

    newest, a, b = values()
    assert (a, b) == ("100", "–")
    box = scripts.locator("svg.plot").bounding_box()
    scripts.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    scripts.locator(".cursor").wait_for(state="attached")
    then, a, b = values()
    assert then < newest
    assert 40 < int(a) < 60
    assert b == "–"
    assert scripts.locator(".dot").count() == 1  # b has no value
    scripts.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] + 50)
    scripts.locator(".cursor").wait_for(state="detached")
    assert values()[0] == newest


def test_a_line_keeps_extremes_of_many_points(scripts: Any):
    path = scripts.evaluate(
        """async () => {
          const { Chart } = await import("./console/charts.js");
          const { Series } = await import("./console/series.js");
          const series = new Series();
          for (let i = 0; i < 6000; i += 1) series.add(1.79e9 + i, { a: i === 4321 ? 9 : i % 2 });
          const line = { name: "a", label: "a", color: "series-1" };
          document.body.replaceChildren();
          const chart = new Chart(document.body, { title: "a", lines: [line], show: String });
          chart.draw(series, 0, []);
          const d = document.querySelector(".line.series-1[d]").getAttribute("d");
          chart.close();
          return d;
        }"""
    )
    points = [tuple(map(float, point.split(","))) for point in path[1:].split("L")]
    assert 500 < len(points) < 3000
    heights = sorted({y for _, y in points})
    assert len(heights) == 3  # of 0, 1 and 9
    assert [x for x, _ in points] == sorted(x for x, _ in points)


def test_plots_follow_the_colours_of_the_system(page: Any, server: ServerProcess, moments: str):
    stroke = "getComputedStyle(document.querySelector('#plots path.line')).stroke"
    page.goto(f"{server.url}/#/{moments}")
    page.locator("#plots path.line").first.wait_for(state="attached")
    light = page.evaluate(stroke)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"light => {stroke} !== light", arg=light)
