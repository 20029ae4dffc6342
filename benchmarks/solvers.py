"""wolfstream and its peers on the papers' sets: time, accuracy, size, memory, predictions.

    python -m benchmarks.solvers --data FOLDER

Each contender learns each set in a process of its own, one after another, on one thread, from
the same split. Prints Markdown.
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

from benchmarks.contenders import CONTENDERS, LARGEST, LIBSVM, Outcome
from benchmarks.contest import enter
from benchmarks.datasets import Dataset, MissingSet
from benchmarks.machine import machine_line
from benchmarks.papers import DEFAULT, PROBLEMS, Parameters, load_problem

COLUMNS = (
    "", "learning s", "of LIBSVM", "test accuracy %", "support vectors", "peak MB",
    "predictions/s", "input s",
)  # fmt: skip
NOTES = """\
One process a contender, one thread, rows in the same order. Seconds are those of the processor, so
that other programs on the machine disturb them less. *Learning* is without compiling and
without making a contender's own form of input (*input s*: for Vowpal Wabbit, parsing text into
examples). *Peak*: the most resident memory while learning and predicting, above what was there
with the data loaded. Nystroem's support vectors are its features. *C* is P1's, Table 2: of the
squared hinge for wolfstream and plain Algorithm 1, of the hinge for the others."""


class Run(NamedTuple):
    """A contender's outcome, None where there is none, and what stands for what it lacks."""

    outcome: Outcome | None
    instead: str
    timed_out: bool = False


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="+", choices=PROBLEMS, default=DEFAULT)
    parser.add_argument("--limit-seconds", type=int, default=200)
    arguments = parser.parse_args()
    print(f"{machine_line()}\n\n{NOTES}\n", flush=True)
    for name in arguments.sets:
        try:
            data, parameters = load_problem(arguments.data, name, sparse=True)
        except MissingSet as missing:
            print(f"### {name}\n\nSkipped: {missing}\n", flush=True)
            continue
        print(heading(name, data, parameters), flush=True)
        many = int(data.y.max()) > 1
        n_test = len(data.y_test)
        del data
        runs = {
            contender: run(name, contender, many, arguments.data, arguments.limit_seconds)
            for contender in CONTENDERS
            if PROBLEMS[name].peers != (contender == LARGEST)
        }
        print(table(runs, n_test, arguments.limit_seconds), flush=True)


def heading(name: str, data: Dataset, parameters: Parameters) -> str:
    """Return the set's title and parameters."""
    problem = PROBLEMS[name]
    about = f" ({problem.about})" if problem.about else ""
    return (
        f"### {name}{about}\n\n{len(data.y):,} rows to learn, {len(data.y_test):,} to test, "
        f"{data.X.shape[1]:,} features; gamma {parameters.gamma:.4g}, "
        f"C {parameters.C:.4g}, of the hinge {parameters.C_hinge:.4g}\n"
    )


def run(name: str, contender: str, many: bool, folder: Path, limit: int) -> Run:
    """Return one contender on one set; its output until the time limit."""
    if many and not CONTENDERS[contender].many_classes:
        return Run(None, "-")
    output = enter("contenders", name, contender, "--data", folder, limit_seconds=limit)
    outcome = Outcome(**json.loads(output.lines[-1])) if output.lines else None
    return Run(outcome, output.instead or "-", output.timed_out)


def table(runs: dict[str, Run], n_test: int, limit: int) -> str:
    """Return a Markdown table, one row a contender."""
    lines = [COLUMNS, ("---", *("---:" for _ in COLUMNS[1:]))]
    for name, run in runs.items():
        cells = measured(run.outcome, n_test, run.instead) if run.outcome else [run.instead]
        if run.outcome:
            cells.insert(1, of_peer(run.outcome, runs.get(LIBSVM), limit))
        cells += ["-"] * (len(COLUMNS) - 1 - len(cells))
        lines.append((CONTENDERS[name].title, *cells))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def measured(outcome: Outcome, n_test: int, instead: str) -> list[str]:
    """Return all cells but the title and the ratio; `instead` where predicting did not end."""
    accuracy, support, rate = "-", "-", instead
    if outcome.accuracy is not None and outcome.predict_seconds:
        accuracy, support = f"{100.0 * outcome.accuracy:.2f}", f"{outcome.support:,}"
        rate = f"{n_test / outcome.predict_seconds:,.0f}"
    peak = f"{outcome.peak_bytes / 1e6:,.0f}"
    return [f"{outcome.fit_seconds:.2f}", accuracy, support, peak, rate,
            f"{outcome.input_seconds:.1f}"]  # fmt: skip


def of_peer(outcome: Outcome, peer: Run | None, limit: int) -> str:
    """Seconds as a share or a multiple of LIBSVM's; a bound where that took too long."""
    if peer is None or not (peer.outcome or peer.timed_out):
        return "-"
    share = outcome.fit_seconds / (peer.outcome.fit_seconds if peer.outcome else limit)
    bound = "" if peer.outcome else "< "
    return bound + (f"{share:.1f}" if share >= 0.95 else f"1/{1.0 / share:.1f}")


if __name__ == "__main__":
    main()
