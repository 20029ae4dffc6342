"""The display of `wolfstream train`: bars for reading and learning, then a summary."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from rich.filesize import decimal

from wolfstream.service.cli.display import Bar, gentle_interrupt, warn_of
from wolfstream.service.cli.options import DataSource
from wolfstream.service.files.labelled import LabelledFile, open_data
from wolfstream.service.heads import fit
from wolfstream.service.heads.kinds import KINDS
from wolfstream.service.offline.training import StreamProgress, train
from wolfstream.service.offline.training_plan import Data, Plan
from wolfstream.service.process_settings import Threads
from wolfstream.service.spec.heads import ALGORITHMS, TaskName
from wolfstream.service.storage.snapshot_format import State
from wolfstream.solver.frank_wolfe.driver import Progress
from wolfstream.solver.rows.matrix import Matrix, concatenate_rows

# How many rows are read between two movements of the bar.
_READ_ROWS = 4096
# What the bar says before the first progress.
_BEFORE_TRAINING = "the first run compiles for some seconds"


def read_with_bar(source: DataSource, dense: bool, task: TaskName, texts: bool) -> Data:
    """Read all samples of a file into memory, with a bar. Raises DataFileError.

    Args:
        source: to read.
        dense: whether to make sparse rows dense.
        task: whether labels are classes or numbers.
        texts: whether the algorithm takes texts and missing values.
    """
    sparse = False if dense else None
    file = open_with_bar(source, sparse=sparse, texts=texts and not dense).for_task(task)
    batches, labels, weights = list[Any](), list[Any](), list[Any]()
    with Bar(f"reading {source.path.name}") as bar:
        for batch in file.batches(_READ_ROWS):
            batches.append(batch.X)
            labels += batch.labels
            weights += batch.weights or []
            bar.show(len(labels) / file.samples, f"{len(labels):,} samples")
    return Data(_join_rows(batches), labels, file.first_index, file.names, weights or None)


def _join_rows(batches: list[Matrix | list[list[Any]]]) -> Matrix | list[list[Any]]:
    """Return the rows of all batches: a matrix, or lists if any batch has lists."""
    matrices = [batch for batch in batches if not isinstance(batch, list)]
    if len(matrices) == len(batches):
        return concatenate_rows(matrices)
    lists = (batch if isinstance(batch, list) else np.asarray(batch).tolist() for batch in batches)
    return [row for batch in lists for row in batch]


def open_with_bar(source: DataSource, **options: Any) -> LabelledFile:
    """Open a data file, with a bar while it is checked; warn of what is left out.

    See `open_data`. Raises DataFileError.
    """
    path, roles, charset = source
    with Bar(f"checking {path.name}") as bar:
        size = max(path.stat().st_size, 1)

        def watch(position: int) -> None:
            bar.show(position / size, f"{position / 2**20:.1f} of {size / 2**20:.1f} MB")

        file = open_data(path, roles, watch=watch, charset=charset, **options)
    warn_of(path, (part.message for part in file.left_out))
    return file


def train_with_bar(data: Data, plan: Plan) -> tuple[State, dict[str, Any], list[str]]:
    """Train with a bar; the first Ctrl-C ends training early. Raises the errors of `train`."""
    if plan.online:
        Threads().use(1)  # as in a server by default, for the same model to the bit
    gap_display = _FallingGap(plan.batch.tol)
    bar = Bar(f"training {plan.algorithm}", _BEFORE_TRAINING)
    with bar, gentle_interrupt() as interruption:

        def observe(now: StreamProgress | Progress | fit.Progress) -> bool:
            if isinstance(now, StreamProgress):
                bar.show(now.samples / now.total, _stream_text(now))
            elif isinstance(now, fit.Progress):
                gap_display.show_violation(bar, now)
            else:
                gap_display.show(bar, now)
            return interruption.requested

        state, report, warnings = train(data, plan, observe)
    if interruption.requested:
        report["interrupted"] = True
    return state, report, warnings


def _stream_text(now: StreamProgress) -> str:
    words = [f"{now.samples:,} of {now.total:,} samples"]
    if now.objective is not None:
        gap = "unknown" if now.gap is None else f"{now.gap:.2g}"
        words.append(f"objective {now.objective:.4g}, gap of the set {gap}")
    if now.accuracy is not None:
        words.append(f"{now.accuracy:.2%} right before learning")
    if now.mae is not None:
        words.append(f"MAE {now.mae:.4g} before learning")
    return ", ".join(words)


class _FallingGap:
    """The progress of a gap towards a tolerance, on a log scale, problem after problem.

    A problem is that of one pair of classes; regression has one problem.
    """

    def __init__(self, tol: float) -> None:
        """Begin before the first problem; tol: the tolerance."""
        self._tol = tol
        self._problem = -1  # number of the current problem
        self._first_gap, self._lowest_gap = tol, tol  # of the current problem

    def show(self, bar: Bar, now: Progress) -> None:
        """Show the progress of the current problem, and of all problems in the bar."""
        gap = now.gap / (abs(now.objective) or 1.0)
        share = self._share(now.problem, gap)
        problem = f"pair {now.problem + 1} of {now.problems}, " if now.problems > 1 else ""
        words = f"{problem}iteration {now.iteration:,}, objective {now.objective:.6g}"
        words += f", relative gap {gap:.2g} of {self._tol:.2g}"
        bar.show((now.problem + share) / now.problems, words)

    def show_violation(self, bar: Bar, now: fit.Progress) -> None:
        """Show the progress of a fit: its KKT violation."""
        words = f"step {now.iteration:,}, KKT violation {now.kkt_violation:.2e} of {now.tol:.0e}"
        bar.show(self._share(0, now.kkt_violation), words)

    def _share(self, problem: int, gap: float) -> float:
        """Return the share of the way from the first gap to the tolerance, from 0 to 1."""
        gap = max(gap, self._tol)
        if problem != self._problem:
            self._problem, self._first_gap, self._lowest_gap = problem, gap, gap
        self._lowest_gap = min(self._lowest_gap, gap)
        whole_way = math.log(self._first_gap / self._tol)
        gone = math.log(self._first_gap / self._lowest_gap)
        return gone / whole_way if whole_way > 0.0 else 1.0


def summary(report: dict[str, Any], seconds: float, out: Path) -> str:
    """Return a few lines about a trained model.

    Args:
        report: as `train` returned it.
        seconds: how long training took.
        out: the model file.
    """
    learned = report.get("learned", 0)
    repeated = f", learned {learned:,} times in all" if learned > report["samples"] else ""
    what = "regression" if report["task"] == "regression" else f"{report['classes']} classes"
    lines = [
        f"{report['samples']:,} samples{repeated}, {report['features']:,} features "
        f"({report['rows']} rows), {what}",
        *KINDS[ALGORITHMS[report["algorithm"]].head].summary(report),
    ]
    before = report.get("prequential") or {}
    if before.get("accuracy") is not None:
        agreement = "-" if before["kappa"] is None else f"{before['kappa']:.4f}"
        lines.append(
            f"{before['accuracy']:.2%} predicted right just before they were learned, "
            f"kappa {agreement}"
        )
    if before.get("mae") is not None:
        lines.append(
            f"predicted just before they were learned: MAE {before['mae']:.4g}, "
            f"RMSE {before['rmse']:.4g}"
        )
    lines.append(f"{seconds:.1f} s; {out}: {decimal(out.stat().st_size)}")
    return "\n".join(lines)
