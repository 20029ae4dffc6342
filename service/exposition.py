"""`GET /metrics`: what the server counts and how it stands, for Prometheus and OpenMetrics.

Everything is read when it is asked for, from the models that are there: a model that was deleted
leaves no labels behind. Labels are names of models, of which there is a bound, and words of this
program; nothing of a request becomes one.
"""

import asyncio
import platform
import shutil
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from service.engine import Engine
from service.metrics import BOUNDS, Histogram
from service.model import Model
from service.requests import Requests
from service.settings import Settings
from service.stream import Streams

_BUCKETS = [*map(str, BOUNDS), "+Inf"]
_HEAD = ("model", "head")


def add_metrics(
    app: FastAPI, engine: Engine, settings: Settings, streams: Streams, requests: Requests
) -> None:
    """Add the route."""
    registry = CollectorRegistry(auto_describe=False)
    server = ServerCollector(engine, settings, streams, requests)
    for collector in (server, ModelCollector(engine)):
        registry.register(collector)
    ProcessCollector(registry=registry)

    @app.get(
        "/metrics",
        tags=["health"],
        response_class=PlainTextResponse,
        responses={200: _told()},
    )
    async def metrics(request: Request) -> Response:
        """Counters, durations and gauges of the server and of each model, for Prometheus.

        As text, or in the OpenMetrics format where Accept asks for it. Once the server has keys
        it needs one for all models, with the scope predict.
        """
        encode, media_type = choose_encoder(request.headers.get("accept", ""))
        server.connections = len(request.state.connections)
        # A thousand models are a hundred thousand lines.
        content = await asyncio.to_thread(encode, registry)
        return Response(content, headers={"Content-Type": media_type})


def _told() -> dict[str, Any]:
    example = "# TYPE wolfstream_ready gauge\nwolfstream_ready 1.0\n"
    schema = {"type": "string"}
    return {
        "description": "The metrics.",
        "content": {
            "text/plain": {"schema": schema, "example": example},
            "application/openmetrics-text": {"schema": schema, "example": f"{example}# EOF\n"},
        },
    }


class ServerCollector(Collector):
    """What there is one of in a server.

    connections: that are open; set before it is asked.
    """

    def __init__(
        self, engine: Engine, settings: Settings, streams: Streams, requests: Requests
    ) -> None:
        self._engine = engine
        self._data = settings.data
        self._streams = streams
        self._requests = requests
        self.connections = 0

    def collect(self) -> Iterator[Metric]:
        """All families."""
        yield _build()
        yield _gauge("ready", "1 where requests are answered, else 0.", self._engine.accepting)
        yield _gauge("connections", "Open connections, streams too.", self.connections)
        yield _gauge("streams", "Open websocket streams.", len(self._streams))
        yield from self._of_requests()
        yield from self._of_writer()
        yield from self._of_refits()
        yield from _of_data(self._data)

    def _of_requests(self) -> Iterator[Metric]:
        labels = ("route", "method", "status")
        requests = CounterMetricFamily(
            "wolfstream_http_requests", "Requests, by the route that serves them.", labels=labels
        )
        durations = HistogramMetricFamily(
            "wolfstream_http_request_duration_seconds",
            "From a request's head to the head of its answer; not of streams.",
            labels=labels,
        )
        for answered, histogram in self._requests.copy().items():
            requests.add_metric(answered, sum(histogram.counts))
            if not answered[-1].startswith("1"):
                _add(durations, answered, histogram)
        yield requests
        yield durations

    def _of_writer(self) -> Iterator[Metric]:
        metrics = self._engine.metrics
        waiting = self._engine.waiting()
        yield _gauge("queue_samples", "Samples that wait to be learned.", waiting.samples)
        yield _gauge("queue_bytes", "Memory of what waits to be learned.", waiting.n_bytes)
        yield _gauge("queue_age_seconds", "How long the oldest request waits.", waiting.seconds)
        since = metrics.busy_since
        busy = 0.0 if since is None else time.monotonic() - since
        yield _gauge("writer_busy_seconds", "For how long the writer works on its group.", busy)
        for name, told, histogram in (
            ("learn", "Requests to learn, from submitted to acknowledged.", metrics.learn),
            ("commit", "Groups of requests, appended to the log and fsynced.", metrics.commit),
            ("absorb", "Blocks of samples, learned and published.", metrics.absorb),
            ("predict", "Predictions, with the wait for min_sequence.", metrics.predict),
        ):
            family = HistogramMetricFamily(f"wolfstream_{name}_duration_seconds", told, labels=())
            _add(family, (), histogram)
            yield family
        yield _counter(
            "snapshots",
            "Snapshots that were written, or not.",
            {"saved": metrics.snapshots_saved, "failed": metrics.snapshots_failed},
        )

    def _of_refits(self) -> Iterator[Metric]:
        active, ended = self._engine.refits.active(), self._engine.refits.ended
        jobs = GaugeMetricFamily(
            "wolfstream_refit_jobs", "Refits that are to end.", labels=("status",)
        )
        for status in ("queued", "running"):
            jobs.add_metric((status,), active[status])
        yield jobs
        told = {status: ended[status] for status in ("done", "failed")}
        yield _counter("refits", "Refits that ended.", told)


class ModelCollector(Collector):
    """What there is one of in each model, or in each of its heads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        """All families."""
        models = sorted(self._engine.recovered(), key=lambda model: model.name)
        yield _gauge("models", "Models that there are.", len(models))
        yield from _counts(models)
        yield from _states(models)
        yield from _heads(models)
        yield from _scores(models)


def _counts(models: list[Model]) -> Iterator[Metric]:
    """What passed through each head."""
    families = [
        CounterMetricFamily(f"wolfstream_{name}", told, labels=_HEAD)
        for name, told in (
            ("samples_received", "Samples of requests that could be read."),
            ("samples_learned", "Samples that are on disk and in the model."),
            ("samples_rejected", "Samples received that were not learned."),
            ("samples_duplicate", "Samples received that had been learned before."),
            ("rows_predicted", "Rows that were predicted."),
        )
    ]
    for model in models:
        for head, counts in model.counts.items():
            if head in model.heads or counts.received:
                # What is part of received is read before it.
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
    """How each model stands, and how far its snapshots are behind."""
    now = time.monotonic()
    values: dict[str, Any] = {
        "model_sequence": ("Samples logged so far.", lambda m: m.published.sequence),
        "model_broken": ("1 where learning has failed, else 0.", lambda m: bool(m.broken)),
        "snapshot_lag_samples": (
            "Samples learned since the newest snapshot.",
            lambda m: max(0, m.published.sequence - m.snapshot_sequence),
        ),
        "snapshot_age_seconds": (
            "Since the newest snapshot, where there is one.",
            lambda m: None if m.snapshot_time is None else now - m.snapshot_time,
        ),
    }
    for name, (told, value_of) in values.items():
        family = GaugeMetricFamily(f"wolfstream_{name}", told, labels=("model",))
        for model in models:
            if (value := value_of(model)) is not None:
                family.add_metric((model.name,), value)
        yield family


def _heads(models: list[Model]) -> Iterator[Metric]:
    """What a description says of each head, as far as it is a number to be watched."""
    for name, told, key in (
        ("set_size", "Samples in the working set.", "size"),
        ("window_samples", "Samples that a refit would be over.", "window"),
        ("support_vectors", "Support vectors of what is served.", "support_vectors"),
        ("head_memory_bytes", "Memory of the learner.", "bytes"),
    ):
        family = GaugeMetricFamily(f"wolfstream_{name}", told, labels=_HEAD)
        for model, head, stats in _stats(models):
            # Those of a semiparametric head are its fit's.
            value = stats.get(key, (stats.get("fit") or {}).get(key))
            if value is not None:
                family.add_metric((model, head), value)
        yield family


def _scores(models: list[Model]) -> Iterator[Metric]:
    """Prequential errors: of all samples, and of the last 1,000."""
    for name, told, key in (
        ("error_ratio", "Share of samples whose label was predicted wrongly", "accuracy"),
        ("absolute_error", "Mean absolute error", "mae"),
        ("root_mean_square_error", "Root of the mean square error", "rmse"),
    ):
        family = GaugeMetricFamily(
            f"wolfstream_prequential_{name}",
            f"{told} just before learning: of all samples, or of the last 1,000.",
            labels=(*_HEAD, "over"),
        )
        for model, head, stats in _stats(models):
            scores = stats["prequential"]
            for over, value in (
                ("all", scores.get(key)),
                ("recent", scores.get(f"recent_{key}")),
            ):
                if value is not None:
                    error = 1.0 - value if key == "accuracy" else value
                    family.add_metric((model, head, over), error)
        yield family


def _stats(models: list[Model]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for model in models:
        for head, view in model.published.heads.items():
            yield model.name, head, view.stats


def _build() -> Metric:
    told = {"version": version("wolfstream"), "python": platform.python_version()}
    told |= {name: version(name) for name in ("numpy", "numba")}
    return InfoMetricFamily("wolfstream_build", "What runs.", told)


def _of_data(data: Path) -> Iterator[Metric]:
    """What the data directory takes, and what its file system has left."""
    family = GaugeMetricFamily("wolfstream_data_bytes", "Size of files.", labels=("part",))
    family.add_metric(("log",), _size(data.glob("log.sqlite*")))
    family.add_metric(("snapshots",), _size(data.glob("snapshots/*/*")))
    yield family
    yield _gauge("data_free_bytes", "Free on the file system.", shutil.disk_usage(data).free)


def _size(files: Iterable[Path]) -> int:
    total = 0
    for file in files:
        try:
            total += file.stat().st_size
        except OSError:  # it was replaced meanwhile
            continue
    return total


def _gauge(name: str, told: str, value: float) -> Metric:
    return GaugeMetricFamily(f"wolfstream_{name}", told, value)


def _counter(name: str, told: str, by_status: dict[str, int]) -> Metric:
    family = CounterMetricFamily(f"wolfstream_{name}", told, labels=("status",))
    for status, number in by_status.items():
        family.add_metric((status,), number)
    return family


def _add(family: HistogramMetricFamily, labels: Iterable[str], histogram: Histogram) -> None:
    total, below = 0, []
    for bound, number in zip(_BUCKETS, histogram.counts.copy(), strict=True):
        total += number
        below.append((bound, total))
    family.add_metric(tuple(labels), below, histogram.total)
