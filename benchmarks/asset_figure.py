"""Test error against seconds, ours and peers, as one SVG a set."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from benchmarks.asset_contenders import Curve
from benchmarks.asset_problems import P5Problem

# The same drawing gives the same bytes; letters stay letters, which takes less of them.
mpl.rcParams |= {"svg.hashsalt": "wolfstream", "svg.fonttype": "none"}


def draw(path: Path, name: str, problem: P5Problem, curves: dict[int, dict[str, Curve]]) -> None:
    """Write the figure: a panel for each number of features; dashed is P5's test error."""
    figure = Figure(figsize=(4.5 * len(curves), 3.4), layout="constrained")
    panels = figure.subplots(1, len(curves), sharey=True, squeeze=False)[0]
    targets = problem.paper.error.values()
    for panel, (s, of_contender) in zip(panels, curves.items(), strict=True):
        for title, curve in of_contender.items():
            style = {"marker": "o", "linestyle": ""} if len(curve.error) == 1 else {}
            width = 1.8 if title.startswith("ASSET") else 1.0
            panel.plot(curve.seconds, curve.error, label=title, linewidth=width, **style)
        panel.axhline(problem.paper.error[s], color="black", linestyle="--", linewidth=0.8)
        panel.set(xscale="log", title=f"{name}, {s} features", xlabel="CPU seconds")
        panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_ylim(0.8 * min(targets), 2.5 * max(targets))
    panels[0].set_ylabel("test error %")
    panels[-1].legend(fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
