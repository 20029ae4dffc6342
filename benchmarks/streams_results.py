"""Results of `benchmarks.streams`: a file of them, what they say of a stream, one table.

A result is a line of JSON: how good a learner was in each window of WINDOW rows, percent right or
mean absolute error. So a run may be interrupted and goes on where it was.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.streams_data import REGRESSION, Stream
from benchmarks.streams_learners import BANK, NOT_RIVER

WINDOW = 500


class Result(NamedTuple):
    """Of one learner on one stream.

    rows: of the stream. done: how many it got through within `limit` seconds of processor time.
    windows: as above, of whole windows. failure: what it raised, or "".
    """

    stream: str
    seed: int
    rows: int
    learner: str
    done: int
    seconds: float
    limit: float
    score: float
    windows: list[float]
    failure: str

    @property
    def finished(self) -> bool:
        """Whether it got through, with numbers."""
        return self.done == self.rows and np.isfinite(self.score)


def result_of(
    stream: Stream,
    seed: int,
    learner: str,
    answers: NDArray[np.float64],
    seconds: float,
    limit: float,
    failure: str = "",
) -> Result:
    """Return the result of predictions of the stream's first rows."""
    done = len(answers)
    if stream.regression:
        # Nobody can know the first value.
        good = np.abs(answers - stream.y[:done])[1:]
    else:
        good = 100.0 * (answers == stream.y[:done])
    whole = len(good) // WINDOW * WINDOW
    windows = good[:whole].reshape(-1, WINDOW).mean(axis=1)
    score = float(good.mean()) if len(good) else float("nan")
    return Result(
        stream.name, seed, len(stream.y), learner, done, seconds, limit, score,
        windows.round(6).tolist(), failure,
    )  # fmt: skip


def read(path: Path) -> list[Result]:
    """Return the results in a file; none where there is no file."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [Result(**json.loads(line)) for line in lines]


def write(path: Path, result: Result) -> None:
    """Add a result to a file."""
    with path.open("a") as file:
        file.write(json.dumps(result._asdict()) + "\n")


class Verdict(NamedTuple):
    """The bank against River's best: ahead is positive where the bank is better.

    error: the standard error of the paired differences, over seeds or, of one seed, over windows.
    """

    best: str
    ahead: float
    error: float

    @property
    def holds(self) -> bool:
        """Whether the bank is at least as good, less one standard error."""
        return self.ahead >= -self.error


def verdict(results: Iterable[Result]) -> Verdict | None:
    """The verdict on all results of one stream, None where the bank or all of River is missing."""
    of: dict[str, dict[int, Result]] = {}
    for one in results:
        if one.finished:
            of.setdefault(one.learner, {})[one.seed] = one
    seeds = sorted(of.get(BANK, {}))
    rivals = [name for name in of if name not in NOT_RIVER and sorted(of[name]) == seeds]
    if not rivals:
        return None
    sign = -1.0 if of[BANK][seeds[0]].stream in REGRESSION else 1.0
    mean = {name: sign * np.mean([of[name][seed].score for seed in seeds]) for name in of}
    best = max(rivals, key=lambda name: mean[name])
    if len(seeds) > 1:
        differences = [of[BANK][seed].score - of[best][seed].score for seed in seeds]
    else:
        pairs = zip(of[BANK][seeds[0]].windows, of[best][seeds[0]].windows, strict=True)
        differences = [ours - theirs for ours, theirs in pairs]
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    return Verdict(best, float(mean[BANK] - mean[best]), float(error))


def tables(results: list[Result]) -> str:
    """Return one table for each task."""
    both = [
        [one for one in results if (one.stream in REGRESSION) == regression]
        for regression in (False, True)
    ]
    return "\n\n".join(_table(of_task) for of_task in both if of_task)


def _table(results: list[Result]) -> str:
    """Return one line a stream: scores and the verdict."""
    names = list(dict.fromkeys(one.learner for one in results))
    lines = [
        f"| stream | {' | '.join(names)} | ahead of River's best | within one standard error |",
        f"|---|{'---:|' * len(names)}---|---|",
    ]
    for stream in dict.fromkeys(one.stream for one in results):
        own = [one for one in results if one.stream == stream]
        cells = [_cell([one for one in own if one.learner == name]) for name in names]
        found = verdict(own)
        if found is None:
            last = ["", ""]
        else:
            last = [
                f"{found.ahead:+.4g} ± {found.error:.2g} ({found.best})",
                "yes" if found.holds else "**no**",
            ]
        lines.append(f"| {stream} | {' | '.join([*cells, *last])} |")
    return "\n".join(lines)


def _cell(results: list[Result]) -> str:
    if not results:
        return ""
    if all(one.finished for one in results):
        mean = np.mean([one.score for one in results])
        return f"{mean:.2f}" if mean < 1000.0 else f"{mean:,.0f}"
    if any(one.failure for one in results):
        return "failed"
    if any(one.done < one.rows for one in results):
        return f"{min(one.done for one in results):,} rows"
    return "diverged"


def as_arrays(results: list[Result], learner: str) -> NDArray[Any]:
    """The windows of a learner on a stream, the mean over seeds; empty where it did not finish."""
    own = [one.windows for one in results if one.learner == learner and one.finished]
    return np.mean(own, axis=0) if own else np.empty(0)
