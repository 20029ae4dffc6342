"""A model as the console shows it: its state at one moment, as plain data."""

import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from wolfstream.service.model.live import Model, rfc3339
from wolfstream.service.model.pending import latest_predicted
from wolfstream.service.model.scoreboard import scoreboard
from wolfstream.service.samples.tasks import TASKS

_PLOTTED_STATS = ("size", "gap", "support_vectors")
_LATEST = 10
# Nobody would fill in a form with more fields (`model.last_row`). Each listener that reads slowly
# has an event of its own in memory: with 16,000 long names it would take 4 MB.
_MAX_COLUMNS = 64
# Nobody would read a larger confusion matrix: with 100 classes it would take 50 kB of each event.
_MAX_CONFUSION_CLASSES = 25
# Significant digits of what is plotted.
_DIGITS = 6


class Meter:
    """The growth of counters over the last few readings."""

    def __init__(self, readings: int) -> None:
        """Begin without readings.

        Args:
            readings: how many are stored, at least two.
        """
        self._readings: deque[tuple[float, ...]] = deque(maxlen=readings)  # (time, *counters)

    def read(self, now: float, *counters: float) -> None:
        """Take a reading.

        Args:
            now: seconds of the monotonic clock.
            counters: always the same ones, in the same order.
        """
        self._readings.append((now, *counters))

    def growth(self) -> tuple[float, ...]:
        """Return (seconds, growth of each counter) from the oldest reading to the newest."""
        if not self._readings:
            return ()
        first, last = self._readings[0], self._readings[-1]
        return tuple(after - before for before, after in zip(first, last, strict=True))


def read_counters(meter: Meter, now: float, model: Model) -> None:
    """Read the counters whose growth gives the rates in `values`."""
    counts = list(model.counts.values())
    meter.read(
        now,
        sum(count.learned for count in counts),
        sum(count.predicted for count in counts),
        sum(count.learn_requests for count in counts),
        sum(count.predict_requests for count in counts),
        sum(count.learn_seconds for count in counts),
        sum(count.predict_seconds for count in counts),
    )


def values(
    model: Model, heads: Mapping[str, Mapping[str, Any]], meter: Meter
) -> dict[str, float | None]:
    """Return the numbers of a model that are plotted over time.

    Scores such as `HEAD.accuracy` are over the last 1,000 samples; those of a baseline, such as
    `majority.accuracy`, over the samples of the head that serves. `learn_seconds` and
    `predict_seconds` are means over the model's requests since the meter's oldest reading; None
    without requests.

    Args:
        model: the model.
        heads: head -> its part of the model's description.
        meter: that `read_counters` has read.
    """
    seconds, learned, predicted, learns, predicts, learn_total, predict_total = meter.growth()
    task = TASKS[model.spec.task]
    numbers: dict[str, float | None] = {
        "samples_per_second": _ratio(learned, seconds),
        "rows_per_second": _ratio(predicted, seconds),
        "learn_seconds": _ratio(learn_total, learns),
        "predict_seconds": _ratio(predict_total, predicts),
    }
    score = task.SCORE
    for head, stats in heads.items():
        scores = stats["prequential"]
        numbers[f"{head}.{score}"] = scores.get(f"recent_{score}")
        numbers |= {f"{head}.{name}": stats[name] for name in _PLOTTED_STATS if name in stats}
        if head == model.spec.serve:
            for baseline in task.BASELINES:
                numbers[f"{baseline}.{score}"] = scores[f"recent_{baseline}_{score}"]
    return {name: _rounded(value) for name, value in numbers.items()}


def console_state(
    model: Model, meter: Meter, waiting_samples: int, challengers: list[Model]
) -> dict[str, Any]:
    """Return the state of a model.

    Args:
        model: the model.
        meter: that `read_counters` has read.
        waiting_samples: how many are in the server's queue.
        challengers: that follow the model.
    """
    description = model.describe()
    heads = description["heads"]
    served = model.published.heads.get(model.spec.serve)
    latest = served.latest(_LATEST) if served else []
    return {
        "time": now_as_text(),
        **{name: description[name] for name in ("model", "sequence", "epoch", "status", "notice")},
        "task": model.spec.task,
        "serve": model.spec.serve,
        "drawn": TASKS[model.spec.task].SCORE,
        **{name: description[name] for name in ("rows", "features", "warning", "warnings")},
        "columns": _bounded_columns(description["columns"]),
        "snapshot_sequence": model.snapshot_sequence,
        "rolled_back": model.rolled_back,
        "follows": description["follows"],
        "challengers": scoreboard(model, challengers)["challengers"],
        "queue_samples": waiting_samples,
        "values": values(model, heads, meter),
        "heads": {name: _without_large_matrices(stats) for name, stats in heads.items()},
        "latest": [{"prediction": prediction, "label": label} for prediction, label in latest],
        "pending": description["pending"],
        "foretold": _awaiting_labels(model),
        "last_row": model.last_row.plain,
    }


def _bounded_columns(columns: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    return columns if columns is not None and len(columns) <= _MAX_COLUMNS else None


def _without_large_matrices(stats: dict[str, Any]) -> dict[str, Any]:
    if "scores" not in stats or len(stats["classes"]) <= _MAX_CONFUSION_CLASSES:
        return stats
    scores = {window: {**score, "confusion": None} for window, score in stats["scores"].items()}
    return {**stats, "scores": scores}


def _awaiting_labels(model: Model) -> list[dict[str, Any]]:
    """Return the last rows that were predicted under ids, with times as text."""
    pending, spec = model.pending, model.spec.pending
    if pending is None or spec is None:
        return []
    rows = latest_predicted(pending, round(1000 * time.time()), spec.max_age_seconds)
    return [row._asdict() | {"since": row.since and _time_as_text(row.since)} for row in rows]


def _ratio(part: float, whole: float) -> float | None:
    """Return a rate or a mean; None if the divisor is not positive."""
    return part / whole if whole > 0 else None


def now_as_text() -> str:
    """Return the present time in the format of RFC 3339."""
    return rfc3339(datetime.now(UTC))


def _time_as_text(milliseconds: float) -> str:
    return rfc3339(datetime.fromtimestamp(milliseconds / 1000.0, UTC))


def _rounded(value: float | None) -> float | None:
    return value if value is None or isinstance(value, int) else float(f"{value:.{_DIGITS}g}")
