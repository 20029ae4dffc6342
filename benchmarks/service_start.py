"""The learner without a server, and how long a server takes to start."""

import time
from pathlib import Path

import threadpoolctl

from benchmarks.bodies import two_classes
from benchmarks.processes import wolfstream
from service.heads.kinds import build
from service.spec.model import ModelSpec

BATCH, FULL, SAMPLES = 256, 5_000, 20_480


def start_seconds(folder: Path) -> float:
    """Until an empty server is ready, its kernels cached."""
    for _ in range(2):  # the first start compiles where the sources are new
        start = time.perf_counter()
        with wolfstream(folder / "start"):
            seconds = time.perf_counter() - start
    return seconds


def in_process() -> float:
    """Samples per second of a full set without a server; best of three."""
    head = build("working_set", ModelSpec.model_validate({"asset": None}))
    first, samples = two_classes(4 * FULL, 99), two_classes(SAMPLES, 2)
    rates = []
    with threadpoolctl.threadpool_limits(1):
        for i in range(0, len(first.y), BATCH):
            head.absorb(first.X[i : i + BATCH], first.y[i : i + BATCH])
        for _ in range(3):
            start = time.perf_counter()
            for i in range(0, SAMPLES, BATCH):
                head.absorb(samples.X[i : i + BATCH], samples.y[i : i + BATCH])
            rates.append(SAMPLES / (time.perf_counter() - start))
    return max(rates)
