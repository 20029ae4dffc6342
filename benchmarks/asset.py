"""ASSET beside its paper and its peers: test error against time, cost per sample, a stream.

    python -m benchmarks asset
    python -m benchmarks asset_flat       seconds and memory from the first sample to the millionth
    python -m benchmarks asset_stream     elec2, each sample predicted just before it is learned

A process and one thread a contender, rows in the same order pass after pass. Seconds are the CPU's,
without compiling, loading and measuring the test error, which is that of the model after the last
pass. All contenders with features make them once, as the first pass comes to their rows, and keep
them. Of 6 settings of scikit-learn's contenders the one that is first at P5's error counts, with
the seconds of the others not counted. P5's seconds are of its own machine.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from matplotlib.ticker import LogLocator, NullFormatter

from benchmarks import asset_stream
from benchmarks.asset_contenders import CONTENDERS, Contender, Curve, Result, seconds_to
from benchmarks.asset_problems import P5_PROBLEMS, P5Problem, Split, load_split
from benchmarks.drawing import new_figure, save
from benchmarks.harness import Options, Study
from benchmarks.results import Figures, Results, listed, markdown, mean

FIGURES = Path(__file__).parent / "figures"
OURS, LIBSVM = "ASSET, Nystrom", "LIBSVM"


class Problem(NamedTuple):
    """A set, and the number of features."""

    split: Split
    problem: P5Problem
    s: int


def load(name: str, s: int, options: Options) -> Problem:
    """Return a set in P5's split."""
    split = load_split(options.folder, name)
    few = split._replace(X=split.X[: options.rows], y=split.y[: options.rows])
    return Problem(few, P5_PROBLEMS[name], s)


def measure(contender: Contender, given: Problem, options: Options) -> Iterator[Figures]:
    """Yield a contender's curve as it grows."""
    del options
    for result in contender(*given):
        yield result._asdict() | {"curve": result.curve._asdict()}


def result_of(kept: Results, contender: str, data: str) -> Result | None:
    """Return a contender's last word, None where it said none."""
    figures = dict((kept.of(contender, data) or [{}])[0])
    figures.pop("instead", None)
    return Result(**figures | {"curve": Curve(**figures["curve"])}) if figures else None


def table(kept: Results) -> str:
    """Return our error (P5's), and seconds to P5's error, as multiples of ours in brackets."""
    peers = [name for name in kept.contenders if name not in (OURS, LIBSVM)]
    heads = ["set, features", "test error %, ours (P5)", "ours to P5's error, s", *peers]
    rows = []
    for data in kept.data:
        name, _, s = data.partition(", ")
        problem, ours = P5_PROBLEMS[name], result_of(kept, OURS, data)
        target = problem.paper.error[int(s)]
        reached = seconds_to(ours.curve, target) if ours else None
        error = f"{ours.curve.error[-1]:.2f} ({target})" if ours else ""
        cells = [data, error, f"{reached:.2f}" if reached else "never"]
        cells += [_seconds(result_of(kept, peer, data), target, reached) for peer in peers]
        rows.append(cells)
    near = [_beside_libsvm(kept, data) for data in kept.data]
    return "\n\n".join([markdown(heads, rows), *filter(None, near)])


def _seconds(result: Result | None, target: float, ours: float | None) -> str:
    if result is None:
        return ""
    reached = seconds_to(result.curve, target)
    if reached is None:
        return f"never ({min(result.curve.error):.2f}%)"
    return f"{reached:.2f} ({reached / ours:.1f})" if ours else f"{reached:.2f}"


def _beside_libsvm(kept: Results, data: str) -> str:
    """Return how many times LIBSVM takes what ours takes to an error near P5's, and P5's own."""
    name, _, s = data.partition(", ")
    problem, features = P5_PROBLEMS[name], int(s)
    ours, exact = (result_of(kept, contender, data) for contender in (OURS, LIBSVM))
    near = problem.paper.error[features] + problem.near
    reached = seconds_to(ours.curve, near) if ours else None
    if exact is None or not reached:
        return ""
    factor = problem.paper.svm_light_seconds / problem.paper.asset_seconds[features]
    return (
        f"{data}: LIBSVM takes {exact.curve.seconds[-1] / reached:.0f} times what ASSET takes to "
        f"P5's error + {problem.near}; in P5 SVM-Light takes {factor:.0f} times ASSET's seconds."
    )


def draw(kept: Results) -> None:
    """Draw a figure a set: a panel for each number of features; dashed is P5's test error."""
    for name, problem in P5_PROBLEMS.items():
        sets = [data for data in kept.data if data.partition(", ")[0] == name]
        if not sets:
            continue
        figure, panels = new_figure(len(sets))
        targets = problem.paper.error.values()
        for panel, data in zip(panels, sets, strict=True):
            for contender in kept.contenders:
                result = result_of(kept, contender, data)
                if result is not None:
                    width = 1.8 if contender.startswith("ASSET") else 1.0
                    curve = result.curve
                    panel.plot(curve.seconds, curve.error, ".-", label=contender, linewidth=width)
            s = int(data.partition(", ")[2])
            panel.axhline(problem.paper.error[s], color="black", linestyle="--", linewidth=0.8)
            panel.set(xscale="log", title=f"{data} features", xlabel="CPU seconds")
            panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            panel.xaxis.set_major_formatter("{x:g}")
            panel.xaxis.set_minor_formatter(NullFormatter())
            panel.set_ylim(0.8 * min(targets), 2.5 * max(targets))
        panels[0].set_ylabel("test error %")
        panels[-1].legend(fontsize="small")
        save(figure, FIGURES / f"asset-{name}.svg")


STUDIES = {
    "asset": Study(
        CONTENDERS,
        {f"{name}, {s}": partial(load, name, s) for name in P5_PROBLEMS for s in (512, 1024)},
        measure,
        table,
        apart=True,
        limit=600,
        draw=draw,
    ),
    "asset_flat": Study(
        {"Fourier": "fourier", "Nystrom": "nystrom"},
        {"a million samples": lambda options: options.rows or 1_000_000},
        asset_stream.flat,
        partial(
            listed,
            columns={
                "thousand samples/s, each tenth": lambda figures: ", ".join(
                    f"{rate / 1e3:.3g}" for rate in figures[0]["rates"]
                ),
                "peak MB": mean("peak_mb", ".1f"),
            },
        ),
        apart=True,
    ),
    "asset_stream": Study(
        asset_stream.CONTENDERS,
        {"elec2": asset_stream.elec2},
        lambda contender, stream, _: contender(stream),
        partial(
            listed,
            columns={"right %": mean("accuracy"), "samples/s": mean("rate", ",.0f")},
        ),
        apart=True,
        limit=600,
    ),
}
