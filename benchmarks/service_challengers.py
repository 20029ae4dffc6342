"""How much a challenger slows the answers of its champion."""

import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from benchmarks.bodies import two_classes
from benchmarks.processes import wolfstream

SIZE, REQUESTS, PHASES = 64, 60, 6
# Seconds between two requests of the client; 0 sends the next one at once.
PACES = {"one after another": 0.0, "ten a second": 0.1}


class Times(NamedTuple):
    """Seconds of each answer."""

    samples: list[float]
    predictions: list[float]


def challengers(folder: Path) -> None:
    """Batches and predictions of a model alone, and of one with a challenger, in turn."""
    with wolfstream(folder / "challengers") as ours, httpx.Client(base_url=ours.url) as client:
        compare(client)


def compare(client: httpx.Client) -> None:
    """Print both models' times, at each pace, on a server or a fleet without these models."""
    for name, spec in (
        ("alone", {}),
        ("champion", {}),
        ("challenger", {"follows": "champion"}),
    ):
        client.put(f"/v1/models/{name}", json=spec).raise_for_status()
    for name in ("alone", "champion"):
        _phase(client, name, 0.0, seed=99)
    for pace, pause in PACES.items():
        found = {"alone": Times([], []), "champion": Times([], [])}
        for phase in range(PHASES):
            for name, times in found.items():
                _wait(client)
                samples, predictions = _phase(client, name, pause, seed=phase)
                times.samples.extend(samples)
                times.predictions.extend(predictions)
        _print(pace, found)


def _phase(client: httpx.Client, name: str, pause: float, seed: int) -> Times:
    """Return some requests of both kinds to a model."""
    stream, times = two_classes(SIZE * REQUESTS, seed), Times([], [])
    X: Any = stream.X
    for start in range(0, SIZE * REQUESTS, SIZE):
        rows = X[start : start + SIZE].tolist()
        samples = {"x": rows, "y": stream.y[start : start + SIZE]}
        times.samples.append(_seconds(client, f"/v1/models/{name}/samples", samples))
        times.predictions.append(_seconds(client, f"/v1/models/{name}/predict", {"x": rows[:1]}))
        time.sleep(pause)
    return times


def _seconds(client: httpx.Client, path: str, body: Any) -> float:
    began = time.perf_counter()
    client.post(path, json=body).raise_for_status()
    return time.perf_counter() - began


def _wait(client: httpx.Client) -> None:
    """Wait until the challenger has caught up: what it does belongs to its champion's phases."""
    while client.get("/v1/models/challenger").json()["follows"]["lag"]:
        time.sleep(0.02)


def _print(pace: str, found: dict[str, Times]) -> None:
    print(f"### Batches of {SIZE} and predictions of one row, {pace}\n")
    print("| answers | alone, median | with a challenger | ratio | 99% |")
    print("|---|---|---|---|---|")
    for kind in Times._fields:
        alone, beside = (sorted(getattr(found[name], kind)) for name in ("alone", "champion"))
        middles = [1e3 * statistics.median(times) for times in (alone, beside)]
        last = [times[int(0.99 * len(times))] for times in (alone, beside)]
        print(
            f"| {kind} | {middles[0]:.2f} ms | {middles[1]:.2f} ms | {middles[1] / middles[0]:.3f} "
            f"| {last[1] / last[0]:.2f} |"
        )
    print()
