"""Samples per second that a fleet of three learns for a model with 1, 2 and 4 learners.

    .venv/bin/python -m benchmarks.fleet_learners --data FOLDER

Each connection posts batches, one after another, to the replicas in turn; what is divided is merged
meanwhile. NATS, replicas and clients share the machine, and a learner needs a processor: with as
few as there are learners, or fewer, this shows what dividing costs, not what it gains.
"""

import argparse
import itertools
import json
import queue
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from benchmarks.datasets import load
from benchmarks.fleet_trio import Trio, found
from benchmarks.machine import machine_line

SETS = ("a9a", "covtype")
LEARNERS = (1, 2, 4)
BATCH, CONNECTIONS = 64, 16
# Of each model, learned before the clock starts: leaders are found, and kernels' widths chosen.
_FIRST = 2048
_TRY_AGAIN, _TRY_AGAIN_SECONDS = 503, 0.05


def bodies(X: Any, y: Any) -> list[bytes]:
    """Return a stream as bodies of requests."""
    starts = range(0, len(y), BATCH)
    parts = [(X[start : start + BATCH], y[start : start + BATCH]) for start in starts]
    return [json.dumps({"x": rows.tolist(), "y": of.tolist()}).encode() for rows, of in parts]


def post_all(urls: Sequence[str], model: str, requests: Sequence[bytes]) -> float:
    """Post requests to a model over all connections; the seconds until the last was learned."""
    left, failures = queue.SimpleQueue[tuple[int, bytes]](), list[BaseException]()
    for numbered in enumerate(requests):
        left.put(numbered)
    round_ = f"{time.monotonic_ns()}"

    def post(first: int) -> None:
        try:
            with httpx.Client(timeout=120, trust_env=False) as client:
                for turn in itertools.count(first):
                    number, body = left.get_nowait()
                    url = f"{urls[turn % len(urls)]}/v1/models/{model}/samples"
                    headers = {"Idempotency-Key": f"{round_}-{number}"}
                    while not _is_taken(client.post(url, content=body, headers=headers)):
                        time.sleep(_TRY_AGAIN_SECONDS)
        except queue.Empty:
            pass
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=post, args=(n,)) for n in range(CONNECTIONS)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return time.monotonic() - began


def _is_taken(answer: httpx.Response) -> bool:
    """Return whether samples were learned, or are to be sent again."""
    if answer.status_code != _TRY_AGAIN:
        answer.raise_for_status()
    return answer.is_success


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of the papers' sets")
    parser.add_argument("--rows", type=int, default=16384, help="of each set")
    given = parser.parse_args()
    print(f"{machine_line()}\n\n| set | learners | samples/s | ratio |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        trio = Trio(Path(folder) / "trio")
        try:
            trio.start()
            urls = [one.url for one in trio.replicas]
            for name in SETS:
                data, alone = load(given.data, name), 0.0
                requests = bodies(data.X[: given.rows], data.y[: given.rows])
                first = _FIRST // BATCH
                for learners in LEARNERS:
                    model = f"{name}-{learners}"
                    trio.make(model, {"learners": learners, "asset": None})
                    post_all(urls, model, requests[:first])
                    seconds = post_all(urls, model, requests[first:])
                    rate = (len(requests) - first) * BATCH / seconds
                    alone = alone or rate
                    print(f"| {name} | {learners} | {rate:,.0f} | {rate / alone:.2f} |", flush=True)
                    path = f"{urls[0]}/v1/models/{model}"
                    found(lambda at=path: trio.client.delete(at).status_code == 204)  # type: ignore[misc]
        finally:
            trio.close()


if __name__ == "__main__":
    main()
