"""Metric families of this server, by the names without their common prefix."""

from collections.abc import Iterable, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

from wolfstream.service.diagnostics.metrics import Histogram

_PREFIX = "wolfstream"


def gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    """Return a gauge without labels. text: what HELP says, here and below."""
    return GaugeMetricFamily(f"{_PREFIX}_{name}", text, value)


def gauges(name: str, text: str, labels: Sequence[str]) -> GaugeMetricFamily:
    """Gauges with labels, to be filled with `add_metric`."""
    return GaugeMetricFamily(f"{_PREFIX}_{name}", text, labels=labels)


def counters(name: str, text: str, labels: Sequence[str]) -> CounterMetricFamily:
    """Counters with labels, to be filled with `add_metric`."""
    return CounterMetricFamily(f"{_PREFIX}_{name}", text, labels=labels)


def counters_by_status(name: str, text: str, by_status: dict[str, int]) -> CounterMetricFamily:
    """Return one counter for each status."""
    family = counters(name, text, ("status",))
    for status, number in by_status.items():
        family.add_metric((status,), number)
    return family


def durations(name: str, text: str, labels: Sequence[str] = ()) -> HistogramMetricFamily:
    """Histograms of seconds, to be filled with `add_histogram`."""
    return HistogramMetricFamily(f"{_PREFIX}_{name}_duration_seconds", text, labels=labels)


def add_histogram(
    family: HistogramMetricFamily, labels: Iterable[str], histogram: Histogram
) -> None:
    """Add a histogram under its labels, with the cumulative counts that Prometheus expects."""
    total, buckets = 0, []
    bounds = [*map(str, histogram.bounds), "+Inf"]
    for bound, number in zip(bounds, histogram.counts.copy(), strict=True):
        total += number
        buckets.append((bound, total))
    family.add_metric(tuple(labels), buckets, histogram.total)
