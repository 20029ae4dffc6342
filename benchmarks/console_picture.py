"""Take README's picture of the console: the default model on the electricity stream, live.

`python -m benchmarks.console_picture` starts a server, streams the end of the bundled set for a
minute, opens the page in Chromium (`chromium`, and the extra `test`), and writes docs/console.png.
"""

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import ViewportSize, sync_playwright
from rich.console import Console

from benchmarks.demo import running_server
from benchmarks.demo_streams import PACKED
from wolfstream import Client

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "console.png"
NAMES = ("date", "day", "period", "nsw price", "nsw demand", "vic price", "vic demand", "transfer")
_SECONDS = 75
_PER_SECOND = 60
_SIZE: ViewportSize = {"width": 1120, "height": 620}
_COLOURS = 48


def _rows(n: int) -> Iterator[tuple[dict[str, float], str]]:
    with np.load(PACKED / "elec2.npz") as data:
        X, y = data["X"][:n].astype(float), data["y"][:n]
    names = NAMES if X.shape[1] == len(NAMES) else [f"x{i}" for i in range(X.shape[1])]
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        yield dict(zip(names, row, strict=True)), "up" if label > 0 else "down"


def _stream(url: str) -> None:
    """Learn samples at a steady pace, and ask for some predictions."""
    with Client(url) as client:
        rows = _rows(_SECONDS * _PER_SECOND)
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            part = [next(rows) for _ in range(_PER_SECOND // 4)]
            X, y = [row for row, _ in part], [label for _, label in part]
            client.learn("electricity", X, y)
            client.predict_proba("electricity", X[:5])
            time.sleep(0.25)


def main() -> None:
    """Take the picture."""
    with (
        tempfile.TemporaryDirectory(prefix="wolfstream-console-") as directory,
        running_server(Path(directory), Console()) as url,
        sync_playwright() as driver,
    ):
        with Client(url) as client:
            client.create("electricity")
        learning = threading.Thread(target=_stream, args=(url,))
        learning.start()
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport=_SIZE)
        page.goto(f"{url}/#/electricity")
        page.wait_for_timeout(1000 * (_SECONDS - 5))
        page.locator("#span").select_option("300")
        page.wait_for_timeout(1500)
        page.screenshot(path=PICTURE)
        browser.close()
        learning.join()
    Image.open(PICTURE).quantize(_COLOURS).save(PICTURE, optimize=True)
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    main()
