"""What a sample costs ASSET, from the first to the millionth: seconds, and memory.

    python -m benchmarks.asset_flat NAME

Two clusters of 54 features, made as they are needed, in blocks of a service's size. Prints a line
of JSON for every 100,000 samples.
"""

import argparse
import json
import time
from typing import Literal

import numpy as np
import threadpoolctl

from benchmarks import memory

SAMPLES, REPORTED, BLOCK = 1_000_000, 100_000, 256
FEATURES, DIMENSION, SEED = 54, 512, 0
KINDS = ("fourier", "nystrom")


def main() -> None:
    """Measure one kind of features."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    arguments = parser.parse_args()
    with threadpoolctl.threadpool_limits(1):
        run(arguments.kind, 2 * DIMENSION)
        run(arguments.kind, arguments.samples, tell=True)


def run(kind: Literal["fourier", "nystrom", "identity"], samples: int, tell: bool = False) -> None:
    """Learn so many samples; the clock runs while they are learned, not while they are made."""
    from wolfstream.solver.asset.learner import Asset
    from wolfstream.solver.kernels.functions import Kernel

    random = np.random.default_rng(SEED)
    middle = random.normal(size=FEATURES) / np.sqrt(FEATURES)
    learner = Asset(Kernel("rbf", 0.5 / FEATURES), features=kind, dimension=DIMENSION)
    resident, seconds, right, counted = memory.begin(), 0.0, 0, 0
    for first in range(0, samples, BLOCK):
        codes = np.arange(first, first + BLOCK) % 2
        X = (
            random.normal(size=(BLOCK, FEATURES))
            + np.where(codes == 1, 1.0, -1.0)[:, None] * middle
        )
        start = time.process_time()
        predicted = learner.absorb(X, codes).prediction
        seconds += time.process_time() - start
        right, counted = right + int((predicted == codes).sum()), counted + BLOCK
        if tell and first // REPORTED != (first + BLOCK) // REPORTED:
            line = {
                "samples": (first + BLOCK) // REPORTED * REPORTED,
                "rate": counted / seconds,
                "accuracy": 100.0 * right / counted,
                "peak_bytes": memory.peak() - resident,
            }
            print(json.dumps(line), flush=True)
            seconds, right, counted = 0.0, 0, 0


if __name__ == "__main__":
    main()
