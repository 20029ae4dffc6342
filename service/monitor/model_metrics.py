"""Metrics of each model and each of its heads.

They are read from the existing models, so a deleted model leaves no labels behind. Labels are fixed
words, the names of models, whose number is bounded, and the classes of models with at most 20
classes. Clients cannot create other labels.
"""

import logging
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any
from weakref import WeakSet

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from wolfstream.service.boot_clock import boot_seconds
from wolfstream.service.engine.facade import Engine
from wolfstream.service.heads.protocol import HeadView
from wolfstream.service.model.live import Model
from wolfstream.service.monitor.metric_families import counters, gauge, gauges

logger = logging.getLogger(__name__)

_HEAD = ("model", "head")


class ModelCollector(Collector):
    """Collects the metrics that exist once per model or once per head.

    Args:
        followed: returns the models that other replicas lead and this one predicts with.
    """

    def __init__(self, engine: Engine, followed: Callable[[], list[Model]]) -> None:
        self._engine, self._followed = engine, followed
        # Models whose failure has been logged; the references are weak, to free deleted models.
        self._failed = WeakSet[Model]()

    def collect(self) -> Iterator[Metric]:
        """Yield all families; a model whose metrics cannot be collected is left out."""
        models = sorted(self._engine.recovered(), key=lambda model: model.name)
        yield gauge("models", "Models on this server.", len(models))
        led = {model.name for model in models}
        followed = [model for model in self._followed() if model.name not in led]
        families = {family.name: family for family in _all_families([])}
        n_omitted = 0
        sources = [(m, _all_families) for m in models] + [(m, _counts) for m in followed]
        for model, families_of in sources:
            try:
                added = list(families_of([model]))
                _check(added)
            except Exception:  # a model that fails must not hide the others
                n_omitted += 1
                self._log_once(model)
                continue
            for family in added:
                families[family.name].samples += family.samples
        yield from families.values()
        yield gauge(
            "models_without_metrics",
            "Models that are left out here, because their metrics failed; the log says which.",
            n_omitted,
        )

    def _log_once(self, model: Model) -> None:
        if model not in self._failed:
            self._failed.add(model)
            logger.exception("metrics failed, model left out: model=%s", model.name)


def _all_families(models: list[Model]) -> Iterator[Metric]:
    """Yield all families, with the metrics of models that learn here."""
    yield from _counts(models)
    yield from _states(models)
    yield from _late_labels(models)
    yield from _challengers(models)
    yield from _heads(models)
    yield from _scores(models)
    yield from _class_scores(models)
    yield from _changes(models)
    yield from _calibrations(models)


def _check(families: list[Metric]) -> None:
    """Raise TypeError or ValueError for values and labels that cannot be encoded.

    The library would fail only later, when it encodes the metrics of all models.
    """
    for family in families:
        for sample in family.samples:
            float(sample.value)
            if not all(isinstance(label, str) for label in sample.labels.values()):
                raise TypeError(f"a label of {family.name} is no text")


def _counts(models: list[Model]) -> Iterator[Metric]:
    """Yield how many samples each head received, and how many rows it predicted."""
    families = [
        counters(name, text, _HEAD)
        for name, text in (
            ("samples_received", "Samples of requests that could be read."),
            ("samples_learned", "Samples that are on disk and in the model."),
            ("samples_rejected", "Samples received that were not learned."),
            ("samples_duplicate", "Samples received that had been learned before."),
        )
    ]
    predicted = counters("rows_predicted", "Rows that were predicted.", _HEAD)
    for model in models:
        called = set(model.head_of.values()) & set(model.spec.heads)
        for head, counts in model.counts.items():
            if head in model.spec.heads or counts.predicted:
                predicted.add_metric((model.name, head), counts.predicted)
            # A head that learns the samples of another head's call receives none itself.
            if head in called or counts.received:
                # These are read before `received`, which includes them: their sum never exceeds it.
                parts = (counts.learned, counts.rejected + counts.refused, counts.duplicates)
                for family, value in zip(families, (counts.received, *parts), strict=True):
                    family.add_metric((model.name, head), value)
    yield from (*families, predicted)


def _states(models: list[Model]) -> Iterator[Metric]:
    """Yield the state of each model, and the age of its newest snapshot."""
    now = boot_seconds()
    values: dict[str, Any] = {
        "model_sequence": ("Samples logged so far.", lambda m: m.published.sequence),
        "model_broken": ("1 if learning has failed, else 0.", lambda m: bool(m.broken)),
        "model_log_faults": (
            "What the log has that cannot be; the model learns nothing until somebody decides.",
            lambda m: len(m.log_faults),
        ),
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


def _late_labels(models: list[Model]) -> Iterator[Metric]:
    """Yield how many rows wait for their labels, and the outcomes of labels."""
    waiting = gauges("rows_waiting", "Predicted rows that wait for their labels.", ("model",))
    n_bytes = gauges("rows_waiting_bytes", "Memory of the rows that wait.", ("model",))
    expired = counters("rows_expired", "Rows that left without a label.", ("model",))
    labels = counters("labels", "Labels for predicted rows.", ("model", "status"))
    for model in models:
        if model.pending is not None:
            waiting.add_metric((model.name,), model.pending.rows)
            n_bytes.add_metric((model.name,), model.pending.n_bytes)
            expired.add_metric((model.name,), model.pending.expired)
            for status, number in model.labels.items():
                labels.add_metric((model.name, status), number)
    yield from (waiting, n_bytes, expired, labels)


def _challengers(models: list[Model]) -> Iterator[Metric]:
    """Yield how challengers compare with their champions."""
    lag = gauges(
        "challenger_lag_samples",
        "Samples of its champion's log that a challenger has not learned yet.",
        ("model",),
    )
    skipped = gauges(
        "challenger_passed_over_samples",
        "Samples of its champion's log that a challenger's spec cannot take.",
        ("model",),
    )
    difference = gauges(
        "challenger_difference",
        "Mean difference of losses, above zero where the challenger is better, and the bounds "
        "that hold at all times together.",
        ("model", "bound"),
    )
    for model in models:
        if model.champion is None:
            continue
        lag.add_metric((model.name,), model.lag)
        skipped.add_metric((model.name,), model.following.passed_over)
        comparison = model.following.comparison
        if (interval := comparison.interval) is not None:
            mean = comparison.difference or 0.0
            bounds = {"low": interval.low, "mean": mean, "high": interval.high}
            for bound, value in bounds.items():
                difference.add_metric((model.name, bound), value)
    yield from (lag, skipped, difference)


def _heads(models: list[Model]) -> Iterator[Metric]:
    """Yield gauges of each head: its size, its memory, whether its kernel is indefinite."""
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


# Metric -> (description, label `rule` -> score); the rule is "" if the metric does not have this
# label. Accuracies are shown as error ratios.
_SCORES: dict[str, tuple[str, dict[str, str]]] = {
    "error_ratio": ("Share of samples whose label was predicted wrongly", {"": "accuracy"}),
    "log_loss": ("Mean of -log p of the true label", {"": "log_loss"}),
    "kappa": ("Agreement with the labels beyond chance", {"": "kappa"}),
    "kappa_temporal": (
        "Share of the errors of repeating the last label that are avoided",
        {"": "kappa_temporal"},
    ),
    "absolute_error": ("Mean absolute error", {"": "mae"}),
    "root_mean_square_error": ("Root of the mean square error", {"": "rmse"}),
    "r_squared": ("Share of the variance that is explained", {"": "r2"}),
    "baseline_error_ratio": (
        "Share of samples whose label a rule without features predicted wrongly",
        {rule: f"{rule}_accuracy" for rule in ("majority", "last_label")},
    ),
    "baseline_absolute_error": (
        "Mean absolute error of a rule without features",
        {rule: f"{rule}_mae" for rule in ("last_value", "running_mean")},
    ),
}


def _changes(models: list[Model]) -> Iterator[Metric]:
    """Yield how often the predictions of each head have become worse."""
    family = counters(
        "prequential_changes",
        "Rises of the loss just before learning, since the model began.",
        _HEAD,
    )
    for model, head, view in _views(models):
        family.add_metric((model, head), view.n_changes)
    yield family


def _scores(models: list[Model]) -> Iterator[Metric]:
    """Yield the prequential scores of each head, over all samples and over the last 1,000."""
    scores = [(model, head, view.stats["prequential"]) for model, head, view in _views(models)]
    for name, (text, keys) in _SCORES.items():
        rules = [] if "" in keys else ["rule"]
        family = gauges(
            f"prequential_{name}",
            f"{text} just before learning: over all samples, or over the last 1,000.",
            (*_HEAD, *rules, "over"),
        )
        for model, head, head_scores in scores:
            for rule, key in keys.items():
                for over, prefix in (("all", ""), ("recent", "recent_")):
                    if (value := head_scores.get(f"{prefix}{key}")) is not None:
                        shown = 1.0 - value if key.endswith("accuracy") else value
                        labels = (model, head, rule, over) if rules else (model, head, over)
                        family.add_metric(labels, shown)
        yield family


# Metrics of the head that a model serves, as score -> description: means over all classes, and
# metrics of each class.
_MEAN_SCORES = {
    "balanced_accuracy": "Mean recall of the classes",
    "roc_auc": "Mean over classes of the area under the ROC curve",
    "average_precision": "Mean average precision of the classes, of two that of the rarer one",
}
_CLASS_SCORES = {
    "precision": "Share of the predictions of a class that were right",
    "recall": "Share of the samples of a class that were found",
    "f1": "Harmonic mean of precision and recall of a class",
}
_MAX_CLASSES = 20


def _class_scores(models: list[Model]) -> Iterator[Metric]:
    """Yield the scores by class, which accuracy hides if one class is far more frequent."""
    when = "just before learning: over all samples, or over the last 1,000."
    families = {
        name: gauges(f"prequential_{name}", f"{text} {when}", (*_HEAD, "over"))
        for name, text in _MEAN_SCORES.items()
    }
    by_class = {
        name: gauges(f"prequential_{name}", f"{text} {when}", (*_HEAD, "class", "over"))
        for name, text in _CLASS_SCORES.items()
    }
    for model in models:
        view = model.published.heads.get(model.spec.serve)
        for over, scores in ({} if view is None else view.scores).items():
            head, window = (model.name, model.spec.serve), "all" if over == "overall" else over
            for name, family in families.items():
                if (value := scores[name]) is not None:
                    family.add_metric((*head, window), value)
            classes = scores["classes"] if len(scores["classes"]) <= _MAX_CLASSES else {}
            for (label, class_scores), name in product(classes.items(), by_class):
                if (value := class_scores[name]) is not None:
                    by_class[name].add_metric((*head, label, window), value)
    yield from (*families.values(), *by_class.values())


# Metric -> (description, field of a calibration that it shows).
_CALIBRATION = {
    "log_loss": ("Mean of -log p of the true label", "log_loss"),
    "brier_score": ("Mean square error of the probabilities", "brier_score"),
    "calibration_error": ("Expected calibration error", "calibration_error"),
}


def _calibrations(models: list[Model]) -> Iterator[Metric]:
    """Yield how good probabilities were, and how often sets and intervals covered the truth."""
    calibrations = [(model, head, view.calibration) for model, head, view in _views(models)]
    over = {"all": "", "recent": "recent_"}
    when = "just before learning: over all samples, or over the last 1,000."
    for name, (text, key) in _CALIBRATION.items():
        family = gauges(f"calibration_{name}", f"{text} {when}", (*_HEAD, "over"))
        for model, head, numbers in calibrations:
            for label, prefix in over.items():
                if (value := numbers.get(f"{prefix}{key}")) is not None:
                    family.add_metric((model, head, label), value)
        yield family
    family = gauges(
        "calibration_coverage",
        f"Share of sets or intervals of a confidence that had the truth {when}",
        (*_HEAD, "confidence", "over"),
    )
    for model, head, numbers in calibrations:
        for level in numbers.get("sets") or numbers.get("intervals") or ():
            for label, prefix in over.items():
                if (value := level[f"{prefix}coverage"]) is not None:
                    family.add_metric((model, head, str(level["confidence"]), label), value)
    yield family


def _views(models: list[Model]) -> Iterator[tuple[str, str, HeadView]]:
    for model in models:
        for head, view in model.published.heads.items():
            yield model.name, head, view
