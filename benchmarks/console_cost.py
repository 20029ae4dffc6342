"""What the console costs: the server's processor time for listeners, first paint, and bytes.

    python -m benchmarks.console_cost

A listener does what the page does: it reads a model's events, and asks for its learners every five
seconds. Phases with and without listeners take turns. First paint is that of Chromium (`chromium`,
and the extra `test`) with an empty cache, the server being on the same machine.
"""

import argparse
import gzip
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
from playwright.sync_api import sync_playwright

from benchmarks.bodies import batch_requests, two_classes
from benchmarks.load import post_all
from benchmarks.machine import machine_line
from benchmarks.processes import Server, wolfstream
from wolfstream.service.console.files import read_files

LISTENERS, SECONDS, ROUNDS, PAINTS = 5, 15.0, 4, 5
_PER_SECOND, _BATCH = 500, 50
_LEARNERS_SECONDS = 5.0
_MODEL = "/v1/models/watched"
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def _listen(url: str, stop: threading.Event) -> None:
    """Do what a page that shows the model does, until the stop."""
    asked = 0.0
    # The server closes an idle connection after as long; a browser would open another one.
    limits = httpx.Limits(keepalive_expiry=_LEARNERS_SECONDS / 2)
    with httpx.Client(base_url=url, timeout=60, limits=limits) as client:
        client.get(f"{_MODEL}/metrics/history").raise_for_status()
        with client.stream("GET", f"{_MODEL}/events") as events:
            for _ in events.iter_lines():
                if stop.is_set():
                    return
                if time.monotonic() - asked > _LEARNERS_SECONDS:
                    asked = time.monotonic()
                    client.get(f"{_MODEL}/learners").raise_for_status()


@contextmanager
def _listening(url: str, listeners: int) -> Iterator[None]:
    stop = threading.Event()
    threads = [threading.Thread(target=_listen, args=(url, stop)) for _ in range(listeners)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _processor_seconds(server: Server) -> float:
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait(_: Server, seconds: float) -> int:
    time.sleep(seconds)
    return 0


def _learn(server: Server, seconds: float) -> int:
    """Have the model learn at a steady pace; how many samples."""
    samples = two_classes(int(_PER_SECOND * seconds), 1)
    begin = time.monotonic()
    for number, request in enumerate(batch_requests(f"{_MODEL}/samples", samples, _BATCH, False)):
        time.sleep(max(0.0, begin + number * _BATCH / _PER_SECOND - time.monotonic()))
        post_all(server.url, [request], 1)
    time.sleep(max(0.0, begin + seconds - time.monotonic()))
    return len(samples.y)


def _shares(
    server: Server, work: Callable[[Server, float], int], seconds: float
) -> dict[int, list[float]]:
    """Shares of one core, by the number of listeners, of phases in turn."""
    shares: dict[int, list[float]] = {0: [], LISTENERS: []}
    for _ in range(ROUNDS):
        for listeners, found in shares.items():
            with _listening(server.url, listeners):
                time.sleep(1.0)  # the history that a page reads first is no part of it
                used, began = _processor_seconds(server), time.monotonic()
                work(server, seconds)
                elapsed = time.monotonic() - began
                found.append((_processor_seconds(server) - used) / elapsed)
    return shares


def _print_listeners(server: Server, seconds: float) -> None:
    print(f"| the model | no listener | {LISTENERS} listeners | difference | the rounds |")
    print("|---|---|---|---|---|")
    for name, work in (("rests", _wait), (f"learns {_PER_SECOND} samples/s", _learn)):
        alone, watched = _shares(server, work, seconds).values()
        more = [other - one for one, other in zip(alone, watched, strict=True)]
        middles = [statistics.median(found) for found in (alone, watched, more)]
        rounds = ", ".join(f"{one:+.2%}" for one in more)
        print(f"| {name} | " + " | ".join(f"{one:.2%}" for one in middles) + f" | {rounds} |")
    print()


def _print_paint(server: Server) -> None:
    paints = []
    with sync_playwright() as driver, ExitStack() as stack:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        stack.callback(browser.close)
        for _ in range(PAINTS):
            context = browser.new_context()
            page = context.new_page()
            page.goto(f"{server.url}/#/watched")
            page.locator("#facts div").first.wait_for()
            paints.append(page.evaluate(_PAINT))
            context.close()
    listed = ", ".join(f"{paint:.0f}" for paint in sorted(paints))
    print(f"First paint after {statistics.median(paints):.0f} ms (median of {listed}).\n")


def _print_sizes() -> None:
    sizes: dict[str, list[int]] = {"uPlot": [0, 0], "the page's own": [0, 0]}
    for name, file in read_files().items():
        of = sizes["uPlot" if name.startswith("plots") else "the page's own"]
        of[0] += len(file.content)
        of[1] += len(gzip.compress(file.content, mtime=0))
    print("| files | kB | kB compressed |\n|---|---|---|")
    for name, (plain, packed) in sizes.items():
        print(f"| {name} | {plain / 1e3:.1f} | {packed / 1e3:.1f} |")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long a phase takes")
    arguments = parser.parse_args()
    print(f"## What the console costs\n\n{machine_line()}\n", flush=True)
    with tempfile.TemporaryDirectory() as folder, wolfstream(Path(folder) / "data") as server:
        httpx.put(server.url + _MODEL, json={}).raise_for_status()
        warm = batch_requests(f"{_MODEL}/samples", two_classes(2_000, 0), 250, True)
        post_all(server.url, warm, 1)
        _print_listeners(server, arguments.seconds)
        _print_paint(server)
    _print_sizes()


if __name__ == "__main__":
    main()
