"""P2: as C grows, the algorithms become faster. To an absolute gap they do, to a relative one not.

    python -m benchmarks.effect_of_c --data FOLDER [--write benchmarks/README.md]

P2 ends where a ball that is larger by epsilon encloses all samples. The ball's square radius is
k(x, x) + 1 + 1/C - q, of which q is a small part, so that this is an absolute gap; the package's
default is a share of q. Seconds are those of the processor, one thread. Results are kept in
`benchmarks/results/effect_of_c.jsonl`; `--write` makes the page's table of them.
"""

import argparse
from pathlib import Path
from typing import Any

import threadpoolctl

from benchmarks import kept_tables
from benchmarks.datasets import load
from benchmarks.machine import machine_line
from benchmarks.series import COSTS, METHODS, adult, runs_on

RESULTS, MARK = "effect_of_c.jsonl", "P2, the effect of C"
SETS = ("pendigits",)
# Relative and absolute; the one that is not meant never ends a run.
GAPS: dict[str, dict[str, float]] = {
    "a tenth of q": {"tol": 0.1},
    "1e-4": {"tol": 1e-9, "absolute_tol": 1e-4},
}
Line = dict[str, Any]


def main() -> None:
    """Measure, keep and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="*", choices=SETS, default=SETS)
    parser.add_argument("--write", type=Path, help="a page to write the table into")
    arguments = parser.parse_args()
    print(f"{machine_line()}; one thread\n", flush=True)
    with threadpoolctl.threadpool_limits(1):
        runs_on(adult(arguments.data, 200))  # compiles
        for name in arguments.sets:
            data = load(arguments.data, name)
            for gap, parameters in GAPS.items():
                for C in COSTS:
                    runs = runs_on(data, C=C, **parameters)
                    line = {"set": name, "gap": gap, "C": C} | runs._asdict()
                    print(line, flush=True)
                    kept_tables.keep(RESULTS, ("set", "gap", "C"), line)
    print(f"\n{table(kept_tables.read(RESULTS))}")
    if arguments.write:
        page = arguments.write.read_text()
        arguments.write.write_text(written(page))


def table(lines: list[Line]) -> str:
    """Return the table: seconds of each method, and MFW's accuracy."""
    by_run = {(line["set"], line["gap"], line["C"]): line for line in lines}
    heads = ["set, gap", *(f"C {C:g}" for C in COSTS)]
    rows = []
    for name in SETS:
        for gap in GAPS:
            cells = [f"{name}, {gap}"]
            for C in COSTS:
                line = by_run.get((name, gap, C))
                seconds = " / ".join(f"{s:.2f}" for s in line["seconds"]) if line else ""
                accuracy = f", {line['accuracy'][METHODS.index('mfw')]:.2f}" if line else ""
                cells.append(seconds + accuracy)
            rows.append(cells)
    return kept_tables.markdown(heads, rows)


def written(page: str) -> str:
    """Return a page with the table of what is kept."""
    return kept_tables.written(page, MARK, table(kept_tables.read(RESULTS)))


if __name__ == "__main__":
    main()
