"""A model as the console shows it: its state at one moment, as plain data."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from wolfstream.service.model.live import Model, rfc3339
from wolfstream.service.model.predicted_rows import latest_predicted
from wolfstream.service.model.scoreboard import scoreboard
from wolfstream.service.monitor.meters import Meter, ratio

# task -> the score that is plotted; and baselines that use no features, whose scores are, too.
_DRAWN = {"classification": "accuracy", "regression": "mae"}
_RULES = {
    "classification": ("majority", "last_label"),
    "regression": ("running_mean", "last_value"),
}
_PLOTTED_STATS = ("size", "gap", "support_vectors")
_LATEST = 10
# Nobody would fill in a form with more fields (`model.last_row`). Each listener that reads slowly
# has an event of its own in memory: with 16,000 long names it would take 4 MB.
_MAX_COLUMNS = 64
# Nobody would read a larger confusion matrix: with 100 classes it would take 50 kB of each event.
_MAX_CONFUSION_CLASSES = 25
# Significant digits of what is plotted.
_DIGITS = 6


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
    task = model.spec.task
    numbers: dict[str, float | None] = {
        "samples_per_second": ratio(learned, seconds),
        "rows_per_second": ratio(predicted, seconds),
        "learn_seconds": ratio(learn_total, learns),
        "predict_seconds": ratio(predict_total, predicts),
    }
    drawn = _DRAWN[task]
    for head, stats in heads.items():
        scores = stats["prequential"]
        numbers[f"{head}.{drawn}"] = scores.get(f"recent_{drawn}")
        numbers |= {f"{head}.{name}": stats[name] for name in _PLOTTED_STATS if name in stats}
        if head == model.spec.serve:
            for rule in _RULES[task]:
                numbers[f"{rule}.{drawn}"] = scores[f"recent_{rule}_{drawn}"]
    return {name: _short(value) for name, value in numbers.items()}


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
        "drawn": _DRAWN[model.spec.task],
        **{name: description[name] for name in ("rows", "features", "warning", "warnings")},
        "columns": _few(description["columns"]),
        "snapshot_sequence": model.snapshot_sequence,
        "rolled_back": model.rolled_back,
        "follows": description["follows"],
        "challengers": scoreboard(model, challengers)["challengers"],
        "queue_samples": waiting_samples,
        "values": values(model, heads, meter),
        "heads": {name: _without_large_matrices(stats) for name, stats in heads.items()},
        "latest": [{"prediction": prediction, "label": label} for prediction, label in latest],
        "pending": description["pending"],
        "foretold": _foretold(model),
        "last_row": model.last_row.plain,
    }


def _few(columns: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    return columns if columns is not None and len(columns) <= _MAX_COLUMNS else None


def _without_large_matrices(stats: dict[str, Any]) -> dict[str, Any]:
    if "scores" not in stats or len(stats["classes"]) <= _MAX_CONFUSION_CLASSES:
        return stats
    scores = {window: {**score, "confusion": None} for window, score in stats["scores"].items()}
    return {**stats, "scores": scores}


def _foretold(model: Model) -> list[dict[str, Any]]:
    """Return the last rows that were predicted under ids, with times as text."""
    counts, spec = model.pending, model.spec.pending
    if counts is None or spec is None:
        return []
    rows = latest_predicted(counts, round(1000 * time.time()), spec.max_age_seconds)
    return [row._asdict() | {"since": row.since and _as_text(row.since / 1000.0)} for row in rows]


def now_as_text() -> str:
    """Return the present time in the format of RFC 3339."""
    return rfc3339(datetime.now(UTC))


def _as_text(seconds: float) -> str:
    return rfc3339(datetime.fromtimestamp(seconds, UTC))


def _short(value: float | None) -> float | None:
    return value if value is None or isinstance(value, int) else float(f"{value:.{_DIGITS}g}")
