"""`make demo-fleet`: three replicas over three NATS servers learn a real stream under kills.

elec2 is in the order of time and drifts. Each request has a key, so that it is learned once,
whatever happens to it. On the way the replica that leads the model is killed, then a server of
NATS. In the end the log is read, and another model learns the same without any trouble: both must
say the same.
"""

import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np
from rich.console import Console

from benchmarks.demo_streams import elec2
from tests.service.nats import MISSING, NatsServers
from tests.service.process import CommandProcess
from wolfstream.service.fleet.log_index import WITH_SAMPLES
from wolfstream.service.fleet.opening import connect, open_fleet

BATCH, SAMPLES = 128, 20_480
_PATIENCE_SECONDS = 60
_MODEL, _UNDISTURBED = "prices", "undisturbed"


class Fleet:
    """The servers and replicas of the demo, and a client that calls any replica."""

    def __init__(self, folder: Path, console: Console) -> None:
        self.nats = NatsServers(folder / "nats", 3, sync=True)
        self.replicas = [CommandProcess(folder / f"replica-{number}") for number in range(3)]
        for one in self.replicas:
            servers = ",".join(self.nats.addresses)
            one.settings |= {"fleet": servers, "advertise": one.url}
        self._random, self._console = Random(0), console
        self._client = httpx.Client(timeout=30, trust_env=False)
        self.again = 0
        self.longest = 0.0

    def start(self) -> None:
        """Start all, and wait until all replicas are ready."""
        self.nats.start()
        for one in self.replicas:
            one.launch()
        for one in self.replicas:
            one.wait()

    def call(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        """Return the answer of any replica, which is asked for until it comes."""
        began = time.monotonic()
        while True:
            one = self._random.choice(self.replicas)
            try:
                answer = self._client.request(method, f"{one.url}{path}", **request)
            except httpx.TransportError:
                self.again += 1
            else:
                if answer.is_success:
                    self.longest = max(self.longest, time.monotonic() - began)
                    decoded: dict[str, Any] = answer.json()
                    return decoded
                self.again += answer.status_code == 503
                if answer.status_code != 503 or time.monotonic() > began + _PATIENCE_SECONDS:
                    answer.raise_for_status()
            time.sleep(0.05)

    def kill_leader(self) -> int:
        """Kill the replica that leads the model; its number."""
        replicas = self.call("GET", "/v1/fleet")["replicas"]
        (leader,) = [one["url"] for one in replicas if _MODEL in one["leads"]]
        number = [one.url for one in self.replicas].index(leader)
        self.replicas[number].kill()
        return number

    def samples_in_log(self) -> int:
        """Return how many samples of the model the log has."""
        with tempfile.TemporaryDirectory() as folder:
            member = open_fleet(connect(self.nats.addresses, 1 << 30, 1 << 30), Path(folder))
            (number,) = [m.number for m in member.storage.catalogue.models() if m.name == _MODEL]
            rows = [
                row for commit in member.journal.reader(number).chain.read(0) for row in commit.rows
            ]
            member.storage.close()
        return sum(row.samples for row in rows if row.kind in WITH_SAMPLES)

    def close(self) -> None:
        """End everything."""
        self._client.close()
        for one in self.replicas:
            one.close()
        self.nats.close()


def learn(fleet: Fleet, model: str, X: np.ndarray, y: np.ndarray, number: int) -> dict[str, Any]:
    """Learn one batch under a key of its own."""
    part = slice(BATCH * number, BATCH * (number + 1))
    body = {"x": X[part].tolist(), "y": y[part].tolist()}
    headers = {"Idempotency-Key": f"batch-{number}"}
    return fleet.call("POST", f"/v1/models/{model}/samples", json=body, headers=headers)


def stream(fleet: Fleet, console: Console, X: np.ndarray, y: np.ndarray) -> tuple[int, float]:
    """Stream the set, and kill on the way; the last sequence, and the accuracy until then."""
    right, sequence, n_batches = 0, 0, len(y) // BATCH
    for number in range(n_batches):
        if number == n_batches // 3:
            killed = fleet.kill_leader()
            console.print(
                f"At sample {sequence:,} replica {killed}, which led the model, is killed."
            )
        if number == n_batches // 2:
            fleet.replicas[killed].start()
            console.print(f"At sample {sequence:,} replica {killed} is there again.")
        if number == 2 * n_batches // 3:
            fleet.nats.kill(0)
            console.print(f"At sample {sequence:,} server 0 of NATS is killed.")
        answer = learn(fleet, _MODEL, X, y, number)
        sequence = answer["sequence"]
        predicted = answer["results"]["prediction"]
        truth = y[BATCH * number : BATCH * (number + 1)].tolist()
        right += sum(a == b for a, b in zip(predicted, truth, strict=True))
    return sequence, right / (n_batches * BATCH)


def main() -> None:
    """Run the demo and print its figures."""
    console = Console(highlight=False)
    if MISSING:
        raise SystemExit(MISSING)
    stream_of_prices = elec2()
    X, y = stream_of_prices.X[:SAMPLES], stream_of_prices.y[:SAMPLES]
    probe = {"x": stream_of_prices.X_held[:200].tolist()}
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder), console)
        try:
            console.print("Starting three NATS servers and three replicas ...")
            fleet.start()
            fleet.call("PUT", f"/v1/models/{_MODEL}", json={})
            began = time.monotonic()
            sequence, accuracy = stream(fleet, console, X, y)
            seconds = time.monotonic() - began
            again, longest = fleet.again, fleet.longest
            fleet.nats.start_one(0)
            fleet.call("PUT", f"/v1/models/{_UNDISTURBED}", json={})
            for number in range(len(y) // BATCH):
                learn(fleet, _UNDISTURBED, X, y, number)
            predicted = [
                fleet.call("POST", f"/v1/models/{name}/predict", json=probe)["decision"]
                for name in (_MODEL, _UNDISTURBED)
            ]
            in_log = fleet.samples_in_log()
        finally:
            fleet.close()
    console.print(f"sent {len(y):,}, acknowledged up to {sequence:,}, in the log {in_log:,}")
    console.print(f"{len(y) / seconds:,.0f} samples/s, accuracy before learning {accuracy:.2%}")
    console.print(f"{again} calls were made again; the longest answer took {longest:.1f} s")
    console.print(
        f"predictions of an undisturbed model are the same: {predicted[0] == predicted[1]}"
    )
    lost = not len(y) == sequence == in_log or predicted[0] != predicted[1]
    console.print("Something was lost." if lost else "Nothing was lost, nothing learned twice.")
    raise SystemExit(int(lost))


if __name__ == "__main__":
    main()
