"""Metrics of each model and each of its heads.

They are read from the models that exist, so a deleted model leaves no labels. Labels are names of
models, whose number is bounded, and words of this program; nothing else of a request becomes one.
"""

import time
from collections.abc import Iterator
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from service.engine.facade import Engine
from service.heads.protocol import HeadView
from service.model.live import Model
from service.web.metrics.families import counters, gauge, gauges

_HEAD = ("model", "head")


class ModelCollector(Collector):
    """Metrics that exist once per model or once per head."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        """All families."""
        models = sorted(self._engine.recovered(), key=lambda model: model.name)
        yield gauge("models", "Models on this server.", len(models))
        yield from _counts(models)
        yield from _states(models)
        yield from _heads(models)
        yield from _scores(models)


def _counts(models: list[Model]) -> Iterator[Metric]:
    """The number of samples and rows that each head received."""
    families = [
        counters(name, text, _HEAD)
        for name, text in (
            ("samples_received", "Samples of requests that could be read."),
            ("samples_learned", "Samples that are on disk and in the model."),
            ("samples_rejected", "Samples received that were not learned."),
            ("samples_duplicate", "Samples received that had been learned before."),
            ("rows_predicted", "Rows that were predicted."),
        )
    ]
    for model in models:
        for head, counts in model.counts.items():
            if head in model.spec.heads or counts.received:
                # Read before `received`, of which these are parts.
                parts = (
                    counts.learned,
                    counts.rejected + counts.refused,
                    counts.duplicates,
                    counts.predicted,
                )
                for family, value in zip(families, (counts.received, *parts), strict=True):
                    family.add_metric((model.name, head), value)
    yield from families


def _states(models: list[Model]) -> Iterator[Metric]:
    """The state of each model, and the age of its newest snapshot."""
    now = time.monotonic()
    values: dict[str, Any] = {
        "model_sequence": ("Samples logged so far.", lambda m: m.published.sequence),
        "model_broken": ("1 if learning has failed, else 0.", lambda m: bool(m.broken)),
        "snapshot_lag_samples": (
            "Samples learned since the newest snapshot.",
            lambda m: max(0, m.published.sequence - m.snapshot_sequence),
        ),
        "snapshot_age_seconds": (
            "Time since the newest snapshot, if there is one.",
            lambda m: None if m.snapshot_time is None else now - m.snapshot_time,
        ),
    }
    for name, (text, value_of) in values.items():
        family = gauges(name, text, ("model",))
        for model in models:
            if (value := value_of(model)) is not None:
                family.add_metric((model.name,), value)
        yield family


def _heads(models: list[Model]) -> Iterator[Metric]:
    """The numbers of a head that are worth watching."""
    for name, text in (
        ("set_size", "Samples in the working set."),
        ("window_samples", "Samples that a refit would use."),
        ("support_vectors", "Support vectors of the published head."),
        ("head_memory_bytes", "Memory of the learner."),
        ("indefinite", "1 if the kernel is not positive semidefinite on the samples, else 0."),
    ):
        family = gauges(name, text, _HEAD)
        for model, head, view in _views(models):
            value = view.gauges.get(name)
            if value is not None:
                family.add_metric((model, head), value)
        yield family


def _scores(models: list[Model]) -> Iterator[Metric]:
    """Prequential errors: over all samples, and over the last 1,000."""
    for name, text, key in (
        ("error_ratio", "Share of samples whose label was predicted wrongly", "accuracy"),
        ("absolute_error", "Mean absolute error", "mae"),
        ("root_mean_square_error", "Root of the mean square error", "rmse"),
    ):
        family = gauges(
            f"prequential_{name}",
            f"{text} just before learning: over all samples, or over the last 1,000.",
            (*_HEAD, "over"),
        )
        for model, head, view in _views(models):
            scores = view.stats["prequential"]
            for over, value in (
                ("all", scores.get(key)),
                ("recent", scores.get(f"recent_{key}")),
            ):
                if value is not None:
                    error = 1.0 - value if key == "accuracy" else value
                    family.add_metric((model, head, over), error)
        yield family


def _views(models: list[Model]) -> Iterator[tuple[str, str, HeadView]]:
    for model in models:
        for head, view in model.published.heads.items():
            yield model.name, head, view
