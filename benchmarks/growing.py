"""One pass of MSFW and LIBSVM on more and more rows of covtype: time and accuracy against n.

    python -m benchmarks.growing --data FOLDER --results FILE [--limit-seconds 7200]

Class 2 against the rest with P1's C and sigma, the first rows of one order, tested on 20,000 that
nobody learns. Each run is a process of its own on one thread; seconds are those of the processor,
and one that needs more than the limit ends its contender's list. Results are kept in FILE, and what
is there is not run again. Prints a table and draws `figures/growing-covtype.svg`.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from benchmarks.contenders import GROWING as CONTENDERS
from benchmarks.kept_runs import KeptRuns, Run
from benchmarks.machine import machine_line
from benchmarks.papers import GROWING as SIZES

FIGURE = Path(__file__).resolve().parent / "figures" / "growing-covtype.svg"
# The same drawing gives the same bytes; letters stay letters, which takes less of them.
mpl.rcParams |= {"svg.hashsalt": "wolfstream", "svg.fonttype": "none"}


def main() -> None:
    """Run what is not in the results yet; print the table and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--results", type=Path, default=Path("growing.jsonl"))
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--limit-seconds", type=int, default=7200)
    asked = parser.parse_args()
    runs = KeptRuns(asked.results)
    for rows in asked.sizes:
        for name in CONTENDERS:
            if name not in runs.stopped:
                runs.enter(name, problem_of(rows), asked.data, asked.limit_seconds)
    print(f"{machine_line()}; one thread\n\n{table(runs)}")
    draw(runs)


def problem_of(rows: int) -> str:
    """The name of so many rows in `benchmarks.papers`."""
    return f"covtype-{rows}"


def table(runs: KeptRuns) -> str:
    """A Markdown table: seconds, accuracy in %, support vectors and GB of each, by rows."""
    titles = [CONTENDERS[name].title for name in CONTENDERS]
    heads = [f"{title}: s, %, support vectors, GB" for title in titles]
    lines = [f"| rows | {' | '.join(heads)} |", "|---:" * (1 + len(heads)) + "|"]
    for rows in SIZES:
        own = [runs.get(name, problem_of(rows)) for name in CONTENDERS]
        if any(own):
            lines.append(f"| {rows:,} | {' | '.join(map(cell, own))} |")
    return "\n".join(lines)


def cell(one: Run | None) -> str:
    """The figures of a run, or what stands for them; nothing where there was none."""
    if one is None or one.instead:
        return one.instead if one else ""
    return f"{one.seconds:.1f}, {one.accuracy:.2f}, {one.support:,}, {one.peak_bytes / 1e9:.1f}"


def draw(runs: KeptRuns) -> None:
    """Write the figure: seconds and accuracy against rows."""
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    drawn = set[int]()
    for name, contender in CONTENDERS.items():
        found = {rows: runs.get(name, problem_of(rows)) for rows in SIZES}
        ended = {rows: one for rows, one in found.items() if one and not one.instead}
        rows, own = list(ended), list(ended.values())
        drawn.update(rows)
        left.plot(rows, [one.seconds for one in own], marker="o", label=contender.title)
        right.plot(rows, [one.accuracy for one in own], marker="o", label=contender.title)
    left.set(xscale="log", yscale="log", xlabel="rows of covtype", ylabel="CPU seconds to learn")
    right.set(xscale="log", xlabel="rows of covtype", ylabel="accuracy % on 20,000 others")
    for panel in (left, right):
        panel.set_xticks(sorted(drawn))
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.xaxis.set_minor_locator(NullLocator())
    left.yaxis.set_major_formatter("{x:g}")
    left.legend(fontsize="small")
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
