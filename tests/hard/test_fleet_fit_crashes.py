"""Kills leaders, standbys and followers of a fleet while trees and kernel widths are found.

A server that is no fleet learns the same and is never killed: whoever leads the models, whatever a
fit was doing in the process that was killed, and whichever replica is asked, the answers are its,
bit for bit. Nobody takes snapshots, which come at other moments and round off.
"""

import os
import random
import threading
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.hard.conftest import Report
from tests.hard.test_fit_crashes import FOLLOWERS, SIZE, SPECS, STEPS, body, slow_fits
from tests.service.fleet.conftest import Replica, look_for_leaders_for_long
from tests.service.nats import MISSING, NatsServers
from tests.service.process import ServerProcess
from wolfstream.service.settings import Settings

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

pytestmark = [pytest.mark.hard, pytest.mark.timeout(3000)]

SEED = int(os.environ.get("HARD_SEED", "20261127"))
FLEET_STEPS = int(os.environ.get("HARD_FLEET_STEPS", "50"))
NEVER: dict[str, object] = {"snapshot_samples": 10**9, "snapshot_seconds": 10**9}
NAMES = ("default", "widths", "numbers", "table")
PATIENCE = 120.0


def slow_replica() -> None:
    slow_fits()
    look_for_leaders_for_long()


class Fleet:
    """Three replicas, some of which are killed, and what is asked of any that answers."""

    def __init__(self, folder: Path, servers: NatsServers, drawn: random.Random) -> None:
        self.replicas = [Replica(folder / str(i), servers, **NEVER) for i in range(3)]
        self.drawn, self.kills, self.keys = drawn, dict.fromkeys(("leads", "follows", "rest"), 0), 0
        for replica in self.replicas:
            replica.prelude = slow_replica

    def start(self) -> None:
        for replica in self.replicas:
            replica.launch()
        for replica in self.replicas:
            replica.wait()

    def close(self) -> None:
        for replica in self.replicas:
            replica.close()

    def ask(self, method: str, path: str, content: Any = None, by: int | None = None) -> Any:
        """Ask any replica, or one, until there is an answer; a key makes that safe."""
        self.keys += 1
        headers, until = {"Idempotency-Key": f"k{self.keys}"}, time.monotonic() + PATIENCE
        while True:
            assert time.monotonic() < until, (method, path)
            url = self.replicas[self.drawn.randrange(3) if by is None else by].url
            with suppress(httpx.TransportError):
                answer = httpx.request(
                    method, f"{url}{path}", json=content, headers=headers, timeout=30
                )
                if answer.status_code != 503:
                    assert answer.is_success, answer.text
                    return answer.json() if answer.content else None
            time.sleep(0.1)

    def role(self, name: str, wanted: str) -> int:
        """Return a replica that leads a model, follows it, or does neither; any if none does."""
        rows = {row["url"]: row for row in self.ask("GET", "/v1/fleet")["replicas"]}
        roles = list[str]()
        for replica in self.replicas:
            row = rows.get(replica.url, {"leads": {}, "follows": {}})
            leads, follows = name in row["leads"], name in row["follows"]
            roles.append("leads" if leads else "follows" if follows else "rest")
        return roles.index(wanted) if wanted in roles else self.drawn.randrange(3)

    def learn(self, name: str, step: int) -> None:
        """Let a model learn; perhaps kill a replica within."""
        path, samples = f"/v1/models/{name}/samples", body(name, step)
        if self.drawn.random() >= 0.08:
            self.ask("POST", path, samples)
            return
        wanted = self.drawn.choice([*self.kills])
        victim = self.replicas[self.role(name, wanted)]
        sending = threading.Thread(target=self.ask, args=("POST", path, samples))
        sending.start()
        time.sleep(self.drawn.choice([0.0, 0.003, 0.01, 0.03, 0.1]))
        victim.kill()
        self.kills[wanted] += 1
        if self.drawn.random() < 0.5:  # the others go on without it
            sending.join()
        victim.start()
        sending.join()


def _said(answer: Any) -> Any:
    return {key: answer[key] for key in ("prediction", "decision", "sequence")}


def test_fits_go_on_under_any_leader(tmp_path: Path, report: Report) -> None:
    assert FLEET_STEPS < STEPS
    assert Settings.model_fields.keys() >= NEVER.keys()
    with ExitStack() as stack:
        servers = NatsServers(tmp_path / "nats").start()
        stack.callback(servers.close)
        twin = stack.enter_context(closing(ServerProcess(tmp_path / "twin", **NEVER))).start()
        own = stack.enter_context(httpx.Client(base_url=twin.url, timeout=60))
        fleet = stack.enter_context(closing(Fleet(tmp_path, servers, random.Random(SEED))))
        fleet.start()
        followers = {name.replace(" ", "-"): spec for name, spec in FOLLOWERS.items()}
        for name, spec in ({name: SPECS[name] for name in NAMES} | followers).items():
            own.put(f"/v1/models/{name}", json=spec).raise_for_status()
            fleet.ask("PUT", f"/v1/models/{name}", spec)
        for step in range(FLEET_STEPS):
            for name in NAMES:
                own.post(f"/v1/models/{name}/samples", json=body(name, step)).raise_for_status()
                fleet.learn(name, step)
        streams = dict(zip(NAMES, NAMES, strict=True))
        streams |= {"of-trees": "default", "of-widths": "widths"}
        for model, stream in streams.items():
            asked = {"x": body(stream, STEPS)["x"], "probability": stream != "numbers"}
            path = f"/v1/models/{model}/predict?min_sequence={FLEET_STEPS * SIZE}"
            expected = _said(own.post(path, json=asked).raise_for_status().json())
            for by in range(3):
                assert _said(fleet.ask("POST", path, asked, by)) == expected, (model, by)
        report(**fleet.kills, samples=len(NAMES) * FLEET_STEPS * SIZE)
