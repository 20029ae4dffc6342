"""Challengers of a server that is killed, seen through its answers alone.

One client teaches a champion and a twin of its challenger the same samples, each request until it
is answered, or has the two exchanged now and then. Whatever is killed when, it must hold that

- the challenger learns what the champion was sent, once and in its order: it is what the twin is;
- an exchange that was answered has happened, any other as a whole or not at all;
- scores and comparison count each sample once.
"""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import body, part, plain_rows, three_classes

SPECS = [PAPERS | {"asset": None, "working_set": {"max_size": size}} for size in (40, 20)]
ROWS = plain_rows(three_classes(20, 9))


class Owner:
    """The only one who changes the model a, its challenger b, and a twin of b.

    exchanges: whether the two are exchanged, and snapshots made; then nothing is sent to the twin.
    """

    def __init__(self, url: str, seed: int, exchanges: bool) -> None:
        self._client = httpx.Client(base_url=url, timeout=30)
        self._random, self._exchanges = random.Random(seed), exchanges
        self.samples = three_classes(20_000, seed)
        self.learned = self.promoted = 0
        self.spec_of = {"a": SPECS[0], "b": SPECS[1]}

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def begin(self) -> None:
        for name, spec in (("a", SPECS[0]), ("twin", SPECS[1])):
            self._client.put(f"/v1/models/{name}", json=spec).raise_for_status()
        follows = SPECS[1] | {"follows": "a"}
        self._client.put("/v1/models/b", json=follows).raise_for_status()

    def run(self, stop: threading.Event) -> None:
        """Go on until told to stop; each request until it is answered."""
        while not stop.is_set():
            kind = self._random.random()
            if self._exchanges and kind < 0.1:
                self._promote()
            elif self._exchanges and kind < 0.2:
                name = self._random.choice(["a", "b"])
                self._ask("POST", f"/v1/models/{name}/snapshot")
            else:
                self._learn(self._random.choice([1, 5, 40]))

    def _learn(self, n: int) -> None:
        start = self.learned % len(self.samples.y)
        of_now = part(self.samples, start, start + n)
        for name in ("a", "twin") if not self._exchanges else ("a",):
            key = {"Idempotency-Key": f"{name}-{self.learned}"}
            answer = self._ask("POST", f"/v1/models/{name}/samples", json=body(of_now), headers=key)
            assert answer.status_code == 200, answer.text
        self.learned += len(of_now.y)

    def _promote(self) -> None:
        """Exchange the two; where the answer is lost, look whether it has happened."""
        before = self._ask("GET", "/v1/models/a").json()
        assert before["spec"]["working_set"]["max_size"] == self._size("a")
        tag = {"If-Match": f'"{before["epoch"]}"'}
        answer = self._ask("POST", "/v1/models/a/promote", json={"model": "b"}, headers=tag)
        # A second attempt of one that had happened finds another epoch.
        assert answer.status_code in (200, 412), answer.text
        self.promoted += 1
        self.spec_of = {"a": self.spec_of["b"], "b": self.spec_of["a"]}
        self.check_specs()

    def _size(self, name: str) -> int:
        size: int = self.spec_of[name]["working_set"]["max_size"]
        return size

    def check_specs(self) -> None:
        """Each has the spec that it should have, and nothing is broken."""
        for name in ("a", "b"):
            told = self._ask("GET", f"/v1/models/{name}").json()
            assert told["status"] == "ok", told["notice"]
            assert told["spec"]["working_set"]["max_size"] == self._size(name)

    def _ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        while True:
            try:
                answer = self._client.request(method, path, **more)
            except httpx.TransportError:
                time.sleep(0.05)
                continue
            if answer.status_code != 503:
                return answer
            time.sleep(0.05)

    def caught_up(self) -> None:
        """Wait until the challenger has learned everything, and check what it counts."""
        self.check_specs()
        for _ in range(100):
            told = self._ask("GET", f"/v1/models/b?min_sequence={self.learned}")
            if told.status_code == 200:
                break
        assert self._ask("GET", "/v1/models/a").json()["sequence"] == self.learned
        follows = self._ask("GET", "/v1/models/b").json()["follows"]
        assert (follows["lag"], follows["passed_over"]) == (0, 0)

    def said(self, name: str) -> Any:
        """What a model says of rows, and how it describes itself but for sizes of buffers."""
        told = self._ask("POST", f"/v1/models/{name}/predict", json={"x": ROWS}).json()
        heads = self._ask("GET", f"/v1/models/{name}").json()["heads"]
        heads["working_set"].pop("bytes")
        return told["prediction"], told["decision"], heads

    def scores(self, name: str) -> int:
        """How many samples a model's score has counted."""
        heads = self._ask("GET", f"/v1/models/{name}").json()["heads"]
        counted: int = heads["working_set"]["prequential"]["samples"]
        return counted

    def compared(self) -> int:
        """On how many samples the two are compared."""
        board = self._ask("GET", "/v1/models/a/challengers").json()
        counted: int = board["challengers"][0]["samples"]
        return counted


@contextmanager
def campaign(
    folder: Path, kills: int, seed: int, exchanges: bool, **settings: object
) -> Iterator[tuple[ServerProcess, Owner]]:
    """A server that was killed so often, and is up again; its challenger has caught up."""
    moments = random.Random(seed)
    server = ServerProcess(folder / "data", **settings).start()
    owner, stop = Owner(server.url, seed, exchanges), threading.Event()
    owner.begin()
    running = threading.Thread(target=owner.run, args=[stop])
    running.start()
    try:
        for _ in range(kills):
            time.sleep(moments.uniform(0.2, 0.8))
            server.kill()
            server.start()
        while owner.learned <= 50 and running.is_alive():
            time.sleep(0.05)
        stop.set()
        running.join(120)
        owner.caught_up()
        yield server, owner
    finally:
        stop.set()
        running.join(120)
        owner.close()
        server.close()


def test_kill_9_leaves_the_same_model(tmp_path: Path) -> None:
    """Bit for bit; without snapshots, whose places would be others in the twin."""
    with campaign(tmp_path, 2, 20261122, False, snapshot_samples=10**9) as (_, owner):
        assert owner.said("b") == owner.said("twin")
        assert owner.scores("b") == owner.compared()


def test_kill_9_leaves_no_half_of_an_exchange(tmp_path: Path) -> None:
    with campaign(tmp_path, 2, 20261123, True, snapshot_samples=60) as (server, owner):
        assert owner.promoted
        before = owner.said("a"), owner.said("b"), owner.compared()
        server.kill()
        server.start()
        owner.caught_up()
        assert (owner.said("a"), owner.said("b"), owner.compared()) == before
