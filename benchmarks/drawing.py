"""Figures of the pages: the same drawing gives the same bytes, and letters stay letters."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

mpl.rcParams |= {"svg.hashsalt": "wolfstream", "svg.fonttype": "none"}


def new_figure(panels: int = 1, width: float = 4.5, height: float = 3.4) -> tuple[Figure, Any]:
    """Return a figure and its panels side by side, each of a width in inches."""
    figure = Figure(figsize=(width * panels, height), layout="constrained")
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def save(figure: Figure, path: Path) -> None:
    """Write it without a date."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
