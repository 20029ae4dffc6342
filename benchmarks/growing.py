"""One pass of MSFW and LIBSVM on more and more rows of covtype: time and accuracy against n.

    python -m benchmarks.growing --data FOLDER --results FILE [--limit-seconds 7200]

Class 2 against the rest with P1's C and sigma, the first rows of one order, tested on 20,000 that
nobody learns. Each run is a process of its own on one thread; seconds are those of the processor,
and one that needs more than the limit ends its contender's list. Results are kept in FILE, and what
is there is not run again. Prints a table and draws `figures/growing-covtype.svg`.
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from benchmarks.contenders import GROWING as CONTENDERS
from benchmarks.contest import enter
from benchmarks.machine import machine_line
from benchmarks.papers import GROWING as SIZES

FIGURE = Path(__file__).resolve().parent / "figures" / "growing-covtype.svg"
# The same drawing gives the same bytes; letters stay letters, which takes less of them.
mpl.rcParams |= {"svg.hashsalt": "wolfstream", "svg.fonttype": "none"}


class Run(NamedTuple):
    """What came of one contender on so many rows; instead: of figures, where it did not end."""

    contender: str
    rows: int
    seconds: float
    accuracy: float
    support: int
    peak_bytes: int
    instead: str = ""


def main() -> None:
    """Run what is not in the results yet; print the table and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--results", type=Path, default=Path("growing.jsonl"))
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--limit-seconds", type=int, default=7200)
    asked = parser.parse_args()
    lines = asked.results.read_text().splitlines() if asked.results.exists() else []
    kept = {(one.contender, one.rows): one for one in (Run(**json.loads(line)) for line in lines)}
    stopped = {one.contender for one in kept.values() if one.instead}
    for rows in asked.sizes:
        for name in CONTENDERS:
            if (name, rows) in kept or name in stopped:
                continue
            one = run(name, rows, asked.data, asked.limit_seconds)
            kept[name, rows] = one
            with asked.results.open("a") as file:
                file.write(json.dumps(one._asdict()) + "\n")
            if one.instead:
                stopped.add(name)
    print(f"{machine_line()}; one thread\n\n{table(list(kept.values()))}")
    draw([one for one in kept.values() if not one.instead])


def run(name: str, rows: int, folder: Path, limit: int) -> Run:
    """One contender on the first rows."""
    said = enter("contenders", f"covtype-{rows}", name, "--data", folder, limit_seconds=limit)
    found = json.loads(said.lines[-1]) if said.lines else {}
    if found.get("accuracy") is None:
        return Run(name, rows, 0.0, 0.0, 0, 0, said.instead or "no figures")
    fitted = found["fit_seconds"], 100.0 * found["accuracy"], found["support"]
    return Run(name, rows, *fitted, found["peak_bytes"])


def table(runs: list[Run]) -> str:
    """A Markdown table: seconds, accuracy in %, support vectors and GB of each, by rows."""
    titles = [CONTENDERS[name].title for name in CONTENDERS]
    heads = [f"{title}: s, %, support vectors, GB" for title in titles]
    lines = [f"| rows | {' | '.join(heads)} |", "|---:" * (1 + len(heads)) + "|"]
    for rows in sorted({one.rows for one in runs}):
        cells = []
        for name in CONTENDERS:
            own = [one for one in runs if (one.contender, one.rows) == (name, rows)]
            cells.append(own[0].instead or cell(own[0]) if own else "")
        lines.append(f"| {rows:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cell(one: Run) -> str:
    """The figures of a run."""
    return f"{one.seconds:.1f}, {one.accuracy:.2f}, {one.support:,}, {one.peak_bytes / 1e9:.1f}"


def draw(runs: list[Run]) -> None:
    """Write the figure: seconds and accuracy against rows."""
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, contender in CONTENDERS.items():
        own = sorted((one for one in runs if one.contender == name), key=lambda one: one.rows)
        rows = [one.rows for one in own]
        left.plot(rows, [one.seconds for one in own], marker="o", label=contender.title)
        right.plot(rows, [one.accuracy for one in own], marker="o", label=contender.title)
    left.set(xscale="log", yscale="log", xlabel="rows of covtype", ylabel="CPU seconds to learn")
    right.set(xscale="log", xlabel="rows of covtype", ylabel="accuracy % on 20,000 others")
    for panel in (left, right):
        panel.set_xticks(sorted({one.rows for one in runs}))
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.xaxis.set_minor_locator(NullLocator())
    left.yaxis.set_major_formatter("{x:g}")
    left.legend(fontsize="small")
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
