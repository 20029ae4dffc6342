"""How good each learner is from window to window, as one SVG a stream."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.streams_data import REGRESSION
from benchmarks.streams_learners import BANK, DEFAULT, LAST
from benchmarks.streams_results import WINDOW, Result, as_arrays, verdict

# The same drawing gives the same bytes; letters stay letters, which takes less of them.
mpl.rcParams |= {"svg.hashsalt": "wolfstream", "svg.fonttype": "none"}


def draw(path: Path, results: list[Result]) -> None:
    """Write the figure of one stream: the bank, the default model, River's best, and others."""
    found = verdict(results)
    best = None if found is None else found.best
    figure = Figure(figsize=(7.0, 3.2), layout="constrained")
    panel = figure.subplots()
    for name in dict.fromkeys(one.learner for one in results):
        windows = as_arrays(results, name)
        rows = WINDOW * (1 + np.arange(len(windows)))
        named = name in (BANK, DEFAULT, LAST, best)
        style: dict[str, Any] = {"color": "0.85", "linewidth": 0.6, "zorder": 1}
        if named:
            style = {"label": name, "linewidth": 1.8 if name == BANK else 1.0}
        panel.plot(rows, windows, **style)
    stream = results[0].stream
    panel.set(
        title=f"{stream}: windows of {WINDOW}, mean of the seeds",
        xlabel="rows",
        ylabel="mean absolute error" if stream in REGRESSION else "accuracy %",
    )
    if stream in REGRESSION:
        panel.set_ylim(0.0, 2.0 * max(as_arrays(results, BANK), default=0.5))
    panel.legend(fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
