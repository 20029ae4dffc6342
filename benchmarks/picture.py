"""Draw README's picture: a server's accuracy on the electricity stream, beside two simple rules.

`python -m benchmarks.picture` starts a server, streams the bundled set through the default model in
the order of time, and writes docs/electricity.svg.
"""

import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.demo import running_server
from benchmarks.demo_streams import PACKED, last_again, majority_so_far
from wolfstream import Client

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "electricity.svg"
WINDOW = 2000
_STEP = 200

# The same drawing gives the same bytes; letters stay letters, which takes fewer of them.
mpl.rcParams |= {"svg.hashsalt": "wolfstream", "svg.fonttype": "none"}


def recent_accuracy(right: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Share of right ones among the last `WINDOW` predictions, from the first full window on."""
    total = np.concatenate([[0], np.cumsum(right)]).astype(np.float64)
    recent: NDArray[np.float64] = (total[WINDOW:] - total[:-WINDOW]) / WINDOW
    return recent


def learned(X: NDArray[np.float64], y: NDArray[np.int64]) -> NDArray[np.int64]:
    """What a served model predicts for each sample but the first, just before it learns it."""
    with (
        tempfile.TemporaryDirectory(prefix="wolfstream-picture-") as directory,
        running_server(Path(directory), Console()) as url,
        Client(url) as client,
    ):
        client.create("electricity")
        predictions = client.learn("electricity", X, y, batch=256).predictions
    return np.array([-1 if label is None else label for label in predictions[1:]], np.int64)


def draw(path: Path, y: NDArray[np.int64], predictions: NDArray[np.int64]) -> None:
    """Write the figure: accuracy over the last `WINDOW` samples, and over all of them."""
    curves = {
        "wolfstream": (predictions, "#1f5fbf", 2.0),
        "last label again": (last_again(y), "#c0561f", 1.2),
        "majority class": (majority_so_far(y), "#808080", 1.2),
    }
    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    panel = figure.subplots()
    for name, (predicted, colour, width) in curves.items():
        right = predicted == y[1:]
        recent = recent_accuracy(right)
        at = np.arange(0, len(recent), _STEP)
        label = f"{name}: {np.mean(right):.1%} in all"
        panel.plot(at + WINDOW, 100 * recent[at], label=label, color=colour, linewidth=width)
    panel.set(
        xlabel="half-hours since May 1996, each predicted before it is learned",
        ylabel=f"right of the last {WINDOW:,} (%)",
        xlim=(0, len(y)),
        ylim=(40, 100),
    )
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(loc="center", bbox_to_anchor=(0.5, 0.58), ncols=3, fontsize="small", frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    with np.load(PACKED / "elec2.npz") as data:
        X, y = data["X"].astype(np.float64), data["y"].astype(np.int64)
    draw(PICTURE, y, learned(X, y))
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    main()
