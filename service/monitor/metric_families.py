"""Makes metric families, whose names get the prefix of all metrics of this server."""

from collections.abc import Iterable, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

from wolfstream.service.diagnostics.metrics import Histogram

_PREFIX = "wolfstream"


def gauge(name: str, description: str, value: float) -> GaugeMetricFamily:
    """Return a gauge without labels.

    Args:
        name: its name without the prefix.
        description: its `HELP` line.
        value: its value.
    """
    return GaugeMetricFamily(f"{_PREFIX}_{name}", description, value)


def gauges(name: str, description: str, labels: Sequence[str]) -> GaugeMetricFamily:
    """Return an empty family of gauges with labels, to be filled with `add_metric`."""
    return GaugeMetricFamily(f"{_PREFIX}_{name}", description, labels=labels)


def counters(name: str, description: str, labels: Sequence[str]) -> CounterMetricFamily:
    """Return an empty family of counters with labels, to be filled with `add_metric`."""
    return CounterMetricFamily(f"{_PREFIX}_{name}", description, labels=labels)


def counters_by_status(
    name: str, description: str, by_status: dict[str, int]
) -> CounterMetricFamily:
    """Return a family with a counter for each status.

    Args:
        name: its name without the prefix.
        description: its `HELP` line.
        by_status: status -> count.
    """
    family = counters(name, description, ("status",))
    for status, count in by_status.items():
        family.add_metric((status,), count)
    return family


def durations(name: str, description: str, labels: Sequence[str] = ()) -> HistogramMetricFamily:
    """Return an empty family of histograms of seconds, to be filled with `add_histogram`."""
    return HistogramMetricFamily(f"{_PREFIX}_{name}_duration_seconds", description, labels=labels)


def add_histogram(
    family: HistogramMetricFamily, labels: Iterable[str], histogram: Histogram
) -> None:
    """Add a histogram to a family, with the cumulative counts that Prometheus expects."""
    cumulative, buckets = 0, []
    bounds = [*map(str, histogram.bounds), "+Inf"]
    # A copy, because other threads go on counting.
    for bound, count in zip(bounds, histogram.counts.copy(), strict=True):
        cumulative += count
        buckets.append((bound, cumulative))
    family.add_metric(tuple(labels), buckets, histogram.total)
