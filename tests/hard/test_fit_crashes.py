"""Kills and stops servers while trees and kernel widths are found beside learning.

A twin is not killed: whatever a fit was doing, begun, computed or due, the models answer the same,
bit for bit. Fits take a while here, so that many kills come within one. The twin takes the same
snapshots, which a working set's last bits depend on.
"""

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.hard.conftest import Report
from tests.service.process import ServerProcess
from wolfstream.solver.refits import Refit

pytestmark = [pytest.mark.hard, pytest.mark.timeout(3000)]

SEED = int(os.environ.get("HARD_SEED", "20261127"))
STEPS, SIZE = 110, 25
ALONE = {"adaptive": None, "asset": None, "serve": "working_set"}
SPECS: dict[str, dict[str, Any]] = {
    "default": {},
    "widths": {**ALONE, "working_set": {"max_size": 300}},
    "numbers": {"task": "regression"},
    "table": {"asset": None},
}
FOLLOWERS = {
    "of trees": {"follows": "default", "start": "state"},
    "of widths": {**ALONE, "working_set": {"max_size": 200}, "follows": "widths"},
}
WORDS = ("red", "green", "blue sky", "dark night walk")


def slow_fits() -> None:
    """Let most fits of this process take longer."""
    run, drawn = Refit.run, random.Random(os.getpid())

    def slow(refit: Refit[Any]) -> None:
        if drawn.random() < 0.7:
            time.sleep(drawn.choice([0.05, 0.3, 1.0]))
        run(refit)

    Refit.run = slow  # type: ignore[method-assign]


def body(name: str, step: int) -> dict[str, Any]:
    X = np.random.default_rng([list(SPECS).index(name), step]).normal(size=(SIZE, 5)).round(3)
    y: Any = ((X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5)).tolist()
    if name == "numbers":
        y = (3.0 * X[:, 0] + X[:, 1] ** 2).round(3).tolist()
    x: Any = X.tolist()
    if name == "table":
        x = [
            {**{f"f{k}": value for k, value in enumerate(row)}, "word": WORDS[int(abs(row[3])) % 4]}
            for row in x
        ]
    return {"x": x, "y": y}


class Pair:
    """A server that is killed, and its twin."""

    def __init__(self, folder: Path, **settings: object) -> None:
        names = "killed", "twin"
        self.killed, self.twin = (ServerProcess(folder / name, **settings) for name in names)
        self.killed.prelude = slow_fits
        self.clients = list[httpx.Client]()
        self.kills = 0

    def start(self) -> None:
        self.twin.start()
        self.restart()

    def restart(self) -> None:
        self.killed.start()
        self._leave()
        self.clients = [
            httpx.Client(base_url=server.url, timeout=120) for server in (self.killed, self.twin)
        ]

    def _leave(self) -> None:
        for client in self.clients:
            client.close()

    def close(self) -> None:
        self._leave()
        self.killed.close()
        self.twin.close()

    def both(self, method: str, path: str, content: Any = None) -> list[httpx.Response]:
        answers = [client.request(method, path, json=content) for client in self.clients]
        assert all(answer.is_success for answer in answers), [answer.text for answer in answers]
        return answers

    def kill_within(self, path: str, content: Any, seconds: float) -> None:
        """Kill it some time after it was sent samples, then start it again."""
        sending = threading.Thread(target=self._send, args=(path, content))
        sending.start()
        time.sleep(seconds)
        self.killed.kill()
        sending.join()
        self.restart()
        self.kills += 1

    def _send(self, path: str, content: Any) -> None:
        with suppress(httpx.TransportError):
            self.clients[0].post(path, json=content)

    def answers(self, name: str, model: str = "", at: str = "") -> Iterator[Any]:
        """What both answer to rows of a stream, by its model or by another one."""
        asked = {"x": body(name, STEPS)["x"], "probability": name != "numbers"}
        for answer in self.both("POST", f"/v1/models/{model or name}/predict{at}", asked):
            told = answer.json()
            del told["epoch"]
            yield told


def test_kills_change_no_fit(tmp_path: Path, report: Report) -> None:
    drawn = random.Random(SEED)
    with closing(Pair(tmp_path)) as pair:
        pair.start()
        for name, spec in SPECS.items():
            pair.both("PUT", f"/v1/models/{name}", spec)
        for step in range(STEPS):
            if step == 8:
                for name, spec in FOLLOWERS.items():
                    pair.both("PUT", f"/v1/models/{name.replace(' ', '-')}", spec)
            for name in SPECS:
                _learn(pair, name, step, drawn)
        for name in SPECS:
            killed, twin = pair.answers(name)
            assert killed == twin, name
        assert pair.killed.terminate() == 0
        report(kills=pair.kills, samples=len(SPECS) * STEPS * SIZE)


def test_kills_change_no_follower(tmp_path: Path, report: Report) -> None:
    """Bit for bit where there are no snapshots, which come at other moments and round off."""
    drawn, never = random.Random(SEED), 10**9
    with closing(Pair(tmp_path, snapshot_samples=never, snapshot_seconds=never)) as pair:
        pair.start()
        for name in ("default", "widths"):
            pair.both("PUT", f"/v1/models/{name}", SPECS[name])
        for name, spec in FOLLOWERS.items():
            pair.both("PUT", f"/v1/models/{name.replace(' ', '-')}", spec)
        for step in range(STEPS // 2):
            for name in ("default", "widths"):
                if drawn.random() < 0.1:
                    _kill(pair, name, step, drawn)
                else:
                    pair.both("POST", f"/v1/models/{name}/samples", body(name, step))
        reached = f"?min_sequence={STEPS // 2 * SIZE}"
        for name, follower in (("default", "of-trees"), ("widths", "of-widths")):
            for model in (name, follower):
                killed, twin = pair.answers(name, model, reached)
                assert killed == twin, model
        report(kills=pair.kills)


def _learn(pair: Pair, name: str, step: int, drawn: random.Random) -> None:
    """Let both learn; the one may be killed within, or stopped before."""
    path, samples = f"/v1/models/{name}/samples", body(name, step)
    event = drawn.choices(("", "kill", "stop", "snapshot"), (88, 4, 2, 6))[0]
    if event == "stop":  # it saves all models
        for model in SPECS:
            pair.clients[1].post(f"/v1/models/{model}/snapshot").raise_for_status()
        assert pair.killed.terminate() == 0, pair.killed.log()
        pair.restart()
    if event == "snapshot":
        pair.both("POST", f"/v1/models/{name}/snapshot")
    if event != "kill":
        pair.both("POST", path, samples)
        return
    _kill(pair, name, step, drawn)


def _kill(pair: Pair, name: str, step: int, drawn: random.Random) -> None:
    """Kill the one within a request, which both have learned afterwards."""
    path, samples = f"/v1/models/{name}/samples", body(name, step)
    pair.kill_within(path, samples, drawn.choice([0.0, 0.003, 0.01, 0.03, 0.1]))
    pair.clients[1].post(path, json=samples).raise_for_status()
    sequence = pair.clients[0].get(f"/v1/models/{name}").json()["sequence"]
    assert sequence in (step * SIZE, (step + 1) * SIZE)
    if sequence == step * SIZE:
        pair.clients[0].post(path, json=samples).raise_for_status()
    killed, twin = pair.answers(name)
    assert killed == twin, (name, step)
