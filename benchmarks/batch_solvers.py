"""Every batch solver with its defaults beside LIBSVM: test accuracy and processor seconds.

    python -m benchmarks.batch_solvers --data FOLDER --results FILE [--limit-seconds 3600]

P1's kernels and C, a duality gap of a tenth of the objective. Each run is a process of its own on
one thread. Results are kept in FILE, and what is there is not run again. A solver that is more
than 0.2 points below LIBSVM is marked.
"""

import argparse
from pathlib import Path

from benchmarks.contenders import BATCH, GROWING
from benchmarks.kept_runs import KeptRuns, Run
from benchmarks.machine import machine_line

SETS = ("w3a", "usps", "ijcnn1", "a9a", "covtype-60k")
# LIBSVM with the same room for kernel values.
SOLVERS = {**BATCH, "libsvm_cached": GROWING["libsvm_cached"]}
# So many points below LIBSVM are no difference.
NEAR = 0.2


def main() -> None:
    """Run what is not in the results yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--results", type=Path, default=Path("batch_solvers.jsonl"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--limit-seconds", type=int, default=3600)
    asked = parser.parse_args()
    runs = KeptRuns(asked.results)
    print(f"{machine_line()}; one thread\n", flush=True)
    titles = [solver.title.removeprefix("wolfstream, ") for solver in SOLVERS.values()]
    print(f"| accuracy % / s | {' | '.join(titles)} |")
    print("|---" + "|---:" * len(titles) + "|", flush=True)
    for problem in asked.sets:
        found = [runs.enter(name, problem, asked.data, asked.limit_seconds) for name in SOLVERS]
        cells = [cell(one, found[-1]) for one in found]
        print(f"| {problem} | {' | '.join(cells)} |", flush=True)


def cell(one: Run, peer: Run) -> str:
    """Accuracy and seconds; by how many points it is below the peer, where these are too many."""
    if one.instead:
        return one.instead
    below = peer.accuracy - one.accuracy
    behind = f" ({below:.2f} below)" if not peer.instead and below > NEAR else ""
    return f"{one.accuracy:.2f} / {one.seconds:.1f}{behind}"


if __name__ == "__main__":
    main()
