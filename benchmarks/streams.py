"""The bank and the default model beside River's learners: each sample predicted, then learned.

    python -m benchmarks streams

All learners take the same rows, unscaled, with their defaults. A learner that needs more than the
limit of processor time is shown with the rows that it got through, and not counted. Accuracy in
percent, of regression the mean absolute error; windows of 500 rows are kept and drawn.
"""

import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.drawing import new_figure, save
from benchmarks.harness import Options, Study
from benchmarks.results import Figures, Results, markdown
from benchmarks.streams_data import GENERATORS, REAL, REGRESSION, Stream, generated, real
from benchmarks.streams_learners import BANK, DEFAULT, LAST, NOT_RIVER, Run, learners

WINDOW, ROWS = 500, 20_000
FIGURES = Path(__file__).resolve().parent / "figures" / "streams"


def load(name: str, options: Options) -> Stream:
    """Return a generated stream with the run's seed, or the first rows of a real one."""
    if name in REAL:
        stream = real(options.folder, name)
        return stream._replace(X=stream.X[: options.rows], y=stream.y[: options.rows])
    return generated(name, options.seed, options.rows or ROWS)


def measure(run: Run, stream: Stream, options: Options) -> Figures:
    """Return how good a learner is, in all and from window to window.

    windows: percent right or the mean absolute error, of whole windows. done: the rows that it got
    through within the limit.
    """
    began, answers, failure = time.process_time(), np.empty(0), ""
    try:
        answers = run(stream, options.limit or np.inf)
    except (ArithmeticError, ValueError, np.linalg.LinAlgError) as error:
        failure = repr(error)
    seconds, done = time.process_time() - began, len(answers)
    if stream.regression:
        # Nobody can know the first value.
        good = np.abs(answers - stream.y[:done])[1:]
    else:
        good = 100.0 * (answers == stream.y[:done])
    whole = len(good) // WINDOW * WINDOW
    figures: Figures = {
        "score": float(good.mean()) if len(good) else float("nan"),
        "windows": good[:whole].reshape(-1, WINDOW).mean(axis=1).round(6).tolist(),
        "seconds": seconds,
        "done": done,
    }
    if failure:
        figures |= {"instead": "failed", "failure": failure}
    elif done < len(stream.y):
        figures["instead"] = f"{done:,} rows"
    elif not np.isfinite(figures["score"]):
        figures["instead"] = "diverged"
    return figures


class Verdict(NamedTuple):
    """The bank against River's best: ahead is positive where the bank is better.

    error: the standard error of the paired differences, over seeds or, of one seed, over windows.
    """

    best: str
    ahead: float
    error: float


def finished(kept: Results, learner: str, data: str) -> list[Figures]:
    """Return a learner's figures, none where one of its runs did not end with numbers."""
    figures = kept.of(learner, data)
    return [] if any("instead" in each for each in figures) else figures


def verdict(kept: Results, data: str) -> Verdict | None:
    """Return the verdict on a stream, None where the bank or all of River is missing."""
    bank = finished(kept, BANK, data)
    rivals = {
        name: figures
        for name in kept.contenders
        if name not in NOT_RIVER
        if len(figures := finished(kept, name, data)) == len(bank) > 0
    }
    if not rivals:
        return None
    sign = -1.0 if data in REGRESSION else 1.0
    mean = {name: sign * np.mean([each["score"] for each in of]) for name, of in rivals.items()}
    best = max(mean, key=lambda name: mean[name])
    pairs = zip(bank, rivals[best], strict=True)
    if len(bank) > 1:
        differences = np.array([ours["score"] - theirs["score"] for ours, theirs in pairs])
    else:
        differences = np.array(bank[0]["windows"]) - np.array(rivals[best][0]["windows"])
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    ahead = sign * np.mean([each["score"] for each in bank]) - mean[best]
    return Verdict(best, float(ahead), float(error))


def table(kept: Results) -> str:
    """Return a table for each task: scores, and the bank's lead over River's best."""
    both = [
        [data for data in kept.data if (data in REGRESSION) == regression]
        for regression in (False, True)
    ]
    return "\n\n".join(_table(kept, sets) for sets in both if sets)


def _table(kept: Results, sets: list[str]) -> str:
    names = [name for name in kept.contenders if any(kept.of(name, data) for data in sets)]
    rows = []
    for data in sets:
        cells = [data, *(_cell(kept.of(name, data)) for name in names)]
        lead = verdict(kept, data)
        if lead is None:
            cells += ["", ""]
        else:
            cells.append(f"{lead.ahead:+.4g} ± {lead.error:.2g} ({lead.best})")
            cells.append("yes" if lead.ahead >= -lead.error else "**no**")
        rows.append(cells)
    return markdown(["stream", *names, "ahead of River's best", "within one standard error"], rows)


def _cell(figures: list[Figures]) -> str:
    words = [each["instead"] for each in figures if "instead" in each]
    if words or not figures:
        return words[0] if words else ""
    mean = float(np.mean([each["score"] for each in figures]))
    return f"{mean:.2f}" if mean < 1000.0 else f"{mean:,.0f}"


def windows(kept: Results, learner: str, data: str) -> NDArray[Any]:
    """Return the windows of a learner, the mean over seeds; empty where it did not finish."""
    windows = [each["windows"] for each in finished(kept, learner, data)]
    return np.mean(windows, axis=0) if windows else np.empty(0)


def draw(kept: Results) -> None:
    """Draw a figure a stream: the bank, the default model and River's best, others in grey."""
    for data in kept.data:
        lead = verdict(kept, data)
        figure, (panel,) = new_figure(1, 7.0, 3.2)
        for name in kept.contenders:
            of = windows(kept, name, data)
            style: dict[str, Any] = {"color": "0.85", "linewidth": 0.6, "zorder": 1}
            if name in (BANK, DEFAULT, LAST, None if lead is None else lead.best):
                style = {"label": name, "linewidth": 1.8 if name == BANK else 1.0}
            panel.plot(WINDOW * (1 + np.arange(len(of))), of, **style)
        panel.set(
            title=f"{data}: windows of {WINDOW}, mean of the seeds",
            xlabel="rows",
            ylabel="mean absolute error" if data in REGRESSION else "accuracy %",
        )
        if data in REGRESSION:
            panel.set_ylim(0.0, 2.0 * max(windows(kept, BANK, data), default=0.5))
        panel.legend(fontsize="small")
        save(figure, FIGURES / f"{data}.svg")


def takes(contender: str, data: str) -> bool:
    """A learner is for classes, for numbers, or for both."""
    return contender in learners(data in REGRESSION)


STUDIES = {
    "streams": Study(
        learners(False) | learners(True),
        {name: partial(load, name) for name in (*GENERATORS, *REAL)},
        measure,
        table,
        seeds=(1, 2, 3),
        limit=1800,
        takes=takes,
        draw=draw,
    )
}
