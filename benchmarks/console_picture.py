"""Take README's picture of the console and record a minute of it: the electricity stream, live.

`python -m benchmarks.console_picture` starts a server, streams a part of the bundled set for four
minutes to a default model and a challenger, opens the page in Chromium (`chromium`, and the extra
`test`), and writes docs/console.png and docs/console.webp.
"""

import io
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright
from rich.console import Console

from benchmarks.demo import running_server
from benchmarks.demo_streams import PACKED
from wolfstream import Client

DOCS = Path(__file__).resolve().parent.parent / "docs"
PICTURE, RECORDING = DOCS / "console.png", DOCS / "console.webp"
NAMES = ("date", "day", "period", "nsw price", "nsw demand", "vic price", "vic demand", "transfer")
_PER_SECOND = 60
_SIZE: ViewportSize = {"width": 1120, "height": 660}
_COLOURS = 128
# Two points of the screen for each of the picture, so that its text is sharp.
_DENSITY = 2
_FRAMES_PER_SECOND, _QUALITY = 1, 45
_WAITING = 12
# From which second of the recording on which part of the page is seen.
_TOUR = (
    (0, "#model-name"),
    (20, "#heads-title"),
    (32, "#challengers-title"),
    (42, "#predict-title"),
    (54, "#model-name"),
)
_PREDICT_SECOND, _SECONDS = 46, 60
_BEFORE_MS = 150_000


class _Frame(NamedTuple):
    """A picture of the page. milliseconds: how long it stands."""

    image: Image.Image
    milliseconds: int


def _rows() -> Iterator[tuple[dict[str, float], str]]:
    with np.load(PACKED / "elec2.npz") as data:
        X, y = data["X"].astype(float), data["y"]
    names = NAMES if X.shape[1] == len(NAMES) else [f"x{i}" for i in range(X.shape[1])]
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        yield dict(zip(names, row, strict=True)), "up" if label > 0 else "down"


def _stream(url: str, stop: threading.Event) -> None:
    """Learn samples at a steady pace, ask for predictions, and bring some labels later."""
    rows, waiting = _rows(), deque[tuple[str, str]]()
    with Client(url) as client:
        client.create("electricity")
        client.create("electricity-papers", follows="electricity", adaptive=None)
        for number in range(1, 1_000_000):
            part = [next(rows) for _ in range(_PER_SECOND // 4)]
            X, y = [row for row, _ in part], [label for _, label in part]
            client.learn("electricity", X, y)
            client.predict_proba("electricity", X[:5])
            (row, label), name = next(rows), f"meter-{number}"
            client.predict("electricity", [row], ids=[name])
            waiting.append((name, label))
            if len(waiting) > _WAITING:
                name, label = waiting.popleft()
                client.label("electricity", [name], [label])
            if stop.wait(0.25):
                return


def _open(browser: Browser, url: str, density: int) -> Page:
    page = browser.new_page(viewport=_SIZE, device_scale_factor=density)
    page.goto(url)
    page.get_by_role("link", name="electricity", exact=True).click(timeout=300_000)
    return page


def _take_picture(page: Page) -> None:
    page.wait_for_timeout(_BEFORE_MS)
    page.screenshot(path=PICTURE)
    Image.open(PICTURE).quantize(_COLOURS).save(PICTURE, optimize=True)


def _record(page: Page) -> None:
    """Go through the page for a minute, and write the recording."""
    page.locator("#why").check()
    frames, tour, predicted = list[_Frame](), deque(_TOUR), False
    begin = now = time.monotonic()
    while now - begin < _SECONDS:
        second = now - begin
        if tour and second >= tour[0][0]:
            page.locator(tour.popleft()[1]).evaluate("place => place.scrollIntoView()")
        if second >= _PREDICT_SECOND and not predicted:
            page.get_by_role("button", name="Predict", exact=True).click()
            predicted = True
        image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        pause = now + 1.0 / _FRAMES_PER_SECOND - time.monotonic()
        page.wait_for_timeout(max(0.0, 1000.0 * pause))
        before, now = now, time.monotonic()
        frames.append(_Frame(image, round(1000.0 * (now - before))))
    first, *others = [frame.image for frame in frames]
    first.save(
        RECORDING,
        save_all=True,
        append_images=others,
        duration=[frame.milliseconds for frame in frames],
        loop=0,
        quality=_QUALITY,
        method=4,
    )


def main() -> None:
    """Take the picture, and record the minute."""
    stop = threading.Event()
    with (
        tempfile.TemporaryDirectory(prefix="wolfstream-console-") as directory,
        running_server(Path(directory), Console()) as url,
        sync_playwright() as driver,
    ):
        learning = threading.Thread(target=_stream, args=(url, stop))
        learning.start()
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        _take_picture(_open(browser, url, _DENSITY))
        _record(_open(browser, url, 1))
        browser.close()
        stop.set()
        learning.join()
    for path in (PICTURE, RECORDING):
        print(f"{path}: {path.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    main()
