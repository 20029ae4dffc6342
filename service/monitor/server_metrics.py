"""Metrics of the server as a whole: requests, queue, writer, refits, disk and fleet."""

import platform
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from prometheus_client.core import InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from wolfstream.service.diagnostics.metrics import RequestDurations
from wolfstream.service.engine.facade import Engine
from wolfstream.service.monitor.metric_families import (
    add_histogram,
    counters,
    counters_by_status,
    durations,
    gauge,
    gauges,
)
from wolfstream.service.storage.data_directory import DiskUse, disk_use


class ServerCollector(Collector):
    """Collects the metrics that exist once per server.

    Args:
        data: the data directory.
        requests: the histograms of `Observer`.
        fleet: returns the response of `GET /v1/fleet`; None on a server without a fleet.

    Attributes:
        connections: number of open connections; set before each `collect`, like the others.
        streams: number of open streams.
        workers: number of workers.
    """

    def __init__(
        self,
        engine: Engine,
        data: Path,
        requests: RequestDurations,
        fleet: Callable[[], dict[str, Any]] | None = None,
    ) -> None:
        self._engine = engine
        self._fleet = fleet
        self._data = data
        self._requests = requests
        self.connections = self.streams = self.workers = 0

    def collect(self) -> Iterator[Metric]:
        """Yield all families."""
        yield _build()
        yield gauge("ready", "1 while the server is ready, else 0.", self._engine.readiness.reached)
        yield gauge(
            "journal_obstacle",
            "1 while the journal cannot be written, as far as is known, else 0; /readyz says why.",
            bool(self._engine.obstacle),
        )
        yield gauge("connections", "Open connections, including streams.", self.connections)
        yield gauge("streams", "Open websocket streams.", self.streams)
        yield gauge("workers", "Worker processes that answer requests.", self.workers)
        yield from _request_metrics(self._requests)
        yield from self._queue_metrics()
        yield from self._stage_metrics()
        yield from self._refit_metrics()
        yield from _disk_metrics(disk_use(self._data))
        if self._fleet is not None:
            yield from _fleet_metrics(self._fleet())

    def _queue_metrics(self) -> Iterator[Metric]:
        waiting = self._engine.waiting()
        yield gauge("queue_samples", "Samples waiting to be learned.", waiting.samples)
        yield gauge("queue_bytes", "Memory of the samples waiting to be learned.", waiting.n_bytes)
        yield gauge(
            "queue_age_seconds", "How long the oldest request has been waiting.", waiting.seconds
        )
        since = self._engine.busy_since
        busy = 0.0 if since is None else time.monotonic() - since
        yield gauge(
            "writer_busy_seconds", "How long the writer has been working on its group.", busy
        )

    def _stage_metrics(self) -> Iterator[Metric]:
        metrics = self._engine.metrics
        for name, text, histogram in (
            ("learn", "Requests to learn, from submission to acknowledgement.", metrics.learn),
            ("commit", "Groups of requests, appended to the journal and fsynced.", metrics.commit),
            ("absorb", "Blocks of samples, learned and published.", metrics.absorb),
            ("predict", "Predictions, including the wait for min_sequence.", metrics.predict),
        ):
            family = durations(name, text)
            add_histogram(family, (), histogram)
            yield family
        delay = durations("label_delay", "From the prediction of a row to its label.")
        add_histogram(delay, (), metrics.label_delay)
        yield delay
        snapshots = {"saved": metrics.snapshots_saved, "failed": metrics.snapshots_failed}
        yield counters_by_status("snapshots", "Snapshots, by whether they were saved.", snapshots)

    def _refit_metrics(self) -> Iterator[Metric]:
        active, ended = self._engine.refits.active(), self._engine.refits.ended
        jobs = gauges("refit_jobs", "Refits that are queued or running.", ("status",))
        for status in ("queued", "running"):
            jobs.add_metric((status,), active[status])
        yield jobs
        finished = {status: ended[status] for status in ("done", "failed")}
        yield counters_by_status("refits", "Refits that have ended.", finished)


def _request_metrics(requests: RequestDurations) -> Iterator[Metric]:
    labels = ("route", "method", "status")
    total = counters("http_requests", "Requests, by route, method and class of status.", labels)
    seconds = durations(
        "http_request",
        "From a request's head to its response's head; not of streams.",
        labels,
    )
    for values, histogram in requests.copy().items():
        total.add_metric(values, sum(histogram.counts))
        if not values[-1].startswith("1"):  # a stream has the status 101
            add_histogram(seconds, values, histogram)
    yield total
    yield seconds


def _build() -> Metric:
    versions = {"version": version("wolfstream"), "python": platform.python_version()}
    versions |= {name: version(name) for name in ("numpy", "numba")}
    return InfoMetricFamily(
        "wolfstream_build", "Versions of the server and what it runs on.", versions
    )


def _disk_metrics(use: DiskUse) -> Iterator[Metric]:
    """Yield the size of the data directory, and the free space on its file system."""
    sizes = gauges("data_bytes", "Size of the files in the data directory.", ("part",))
    sizes.add_metric(("log",), use.log)
    sizes.add_metric(("snapshots",), use.snapshots)
    yield sizes
    yield gauge("data_free_bytes", "Free space on the file system of the data directory.", use.free)


def _fleet_metrics(fleet: dict[str, Any]) -> Iterator[Metric]:
    replicas = fleet["replicas"]
    this = next(replica for replica in replicas if replica["url"] == fleet["replica"])
    yield gauge("fleet_replicas", "Replicas of the fleet that are alive.", len(replicas))
    yield gauge("fleet_leads", "Models that this replica leads.", len(this["leads"]))
    yield gauge("fleet_follows", "Models for which this replica stands by.", len(this["follows"]))
    yield gauge("fleet_lag_seconds", "For how long NATS is not reached.", fleet["lag_seconds"])
    lags = [view["lag_seconds"] for view in fleet["views"].values()]
    yield gauge("fleet_views", "Models of others whose views this replica holds.", len(lags))
    text = "For how long it is not known whether the oldest of these views is the newest."
    yield gauge("fleet_view_lag_seconds", text, max(lags, default=0.0))
    silent = [each for each in replicas if each["http"] and not each["http"]["answers"]]
    text = "Replicas that live, as NATS says, and do not answer this one over HTTP."
    yield gauge("fleet_unreachable_replicas", text, len(silent))
    text = "Calls that were given up because a replica did not answer them."
    unanswered = counters("fleet_unanswered_calls", text, [])
    unanswered.add_metric([], fleet["unanswered"])
    yield unanswered
    yield from _stream_metrics(fleet["streams"])
    refusals = counters(
        "fleet_nats_refusals",
        "Connections that NATS servers have refused, such as for a password or a certificate.",
        [],
    )
    refusals.add_metric([], fleet["refusals"])
    yield refusals
    takeovers = counters("fleet_takeovers", "Terms that this replica has begun.", [])
    takeovers.add_metric([], fleet["takeovers"])
    yield takeovers


def _stream_metrics(streams: dict[str, dict[str, int]]) -> Iterator[Metric]:
    """Yield the metrics of the streams in NATS, as their leaders report them."""
    for name, key, text in (
        ("missing_copies", "missing_copies", "Copies that are gone, or have not caught up."),
        ("bytes", "n_bytes", "Bytes that the messages of a stream take."),
        ("most_bytes", "most_bytes", "Bytes that they may take; above it the stream is full."),
    ):
        family = gauges(f"fleet_stream_{name}", text, ("stream",))
        for stream, state in sorted(streams.items()):
            family.add_metric((stream,), state[key])
        yield family
