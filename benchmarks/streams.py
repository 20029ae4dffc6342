"""The bank and the default model beside River's learners: each sample predicted, then learned.

    python -m benchmarks.streams --data FOLDER --results FILE [--streams A,B] [--learners A,B]

All learners take the same rows, unscaled, with their defaults. Results are kept in FILE; what is
there is not run again, so that a run may be interrupted. A learner that needs more than the limit
of processor time is shown with the rows that it got through, and not counted. Prints one table,
accuracy in percent, of regression the mean absolute error, and draws each stream's windows.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import threadpoolctl

from benchmarks.datasets import MissingSet
from benchmarks.machine import machine_line
from benchmarks.streams_data import GENERATORS, REAL, Stream, generated, real
from benchmarks.streams_figure import draw
from benchmarks.streams_learners import runs_of
from benchmarks.streams_results import Result, read, result_of, tables, write

FIGURES = Path(__file__).resolve().parent / "figures" / "streams"


def main() -> None:
    """Run what is asked for and is not in the results yet; print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--results", type=Path, default=Path("streams.jsonl"))
    parser.add_argument("--figures", type=Path, default=FIGURES)
    parser.add_argument("--streams", default=",".join([*GENERATORS, *REAL]))
    parser.add_argument("--learners", default="", help="by default all")
    parser.add_argument("--seeds", default="1,2,3", help="of generated streams")
    parser.add_argument("--rows", type=int, default=20_000, help="of generated streams")
    parser.add_argument("--limit-seconds", type=float, default=1800.0)
    asked = parser.parse_args()
    shown: list[Result] = []
    for name in asked.streams.split(","):
        seeds = [0] if name in REAL else [int(seed) for seed in asked.seeds.split(",")]
        for seed in seeds:
            try:
                stream = generated(name, seed, asked.rows) if seed else real(asked.data, name)
            except MissingSet as missing:
                print(missing)
                continue
            shown += run_all(stream, seed, asked)
        own = [one for one in shown if one.stream == name]
        if own:
            draw(asked.figures / f"{name}.svg", own)
    print(f"{machine_line()}\n\n{tables(shown)}")


def run_all(stream: Stream, seed: int, asked: argparse.Namespace) -> list[Result]:
    """Return the results of every learner on a stream, kept ones where there are such."""
    kept = {
        one.learner: one
        for one in read(asked.results)
        if (one.stream, one.seed, one.rows) == (stream.name, seed, len(stream.y))
        and (one.done == one.rows or one.failure or one.limit >= asked.limit_seconds)
    }
    results = []
    for learner, run in runs_of(stream).items():
        if asked.learners and learner not in asked.learners.split(","):
            continue
        if learner not in kept:
            began, answers, failure = time.process_time(), np.empty(0), ""
            try:
                answers = run(stream, asked.limit_seconds)
            except (ArithmeticError, ValueError, np.linalg.LinAlgError) as error:
                failure = repr(error)
            seconds = time.process_time() - began
            kept[learner] = result_of(
                stream, seed, learner, answers, seconds, asked.limit_seconds, failure
            )
            write(asked.results, kept[learner])
            print(f"{stream.name} {seed} {learner}: {kept[learner].score:.2f}", flush=True)
        results.append(kept[learner])
    return results


if __name__ == "__main__":
    with threadpoolctl.threadpool_limits(1), np.errstate(all="ignore"):
        main()
