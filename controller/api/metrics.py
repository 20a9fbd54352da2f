"""The controller's figures, for Prometheus."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

from controller.model.api_field import api_field
from controller.model.views import Sizes

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_FAST_S = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_LATENCY_S = (0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class HistogramFigures:
    """Times that something took, since the start of the controller."""

    bounds_s: tuple[float, ...] = api_field("Upper bounds of the buckets; one without a bound follows.")
    counts: tuple[int, ...] = api_field("Of each bucket by itself.")
    sum_s: float


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures of `/metrics` that a page draws."""

    solve: HistogramFigures
    request_to_installed: HistogramFigures
    events: int = api_field("Events that clients were told, since the start of the controller.")
    refused_requests: int
    waiting_requests: int
    resident_bytes: int | None = api_field("Null where the system does not tell.")
    cpu_s: float | None


class Metrics:
    """All figures; they may be observed in any thread."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._process = ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._solve = self._histogram(
            "mstcp_solve_seconds", "Time of a solve of the routing problem.", ("objective",), _FAST_S
        )
        self._handling = self._histogram(
            "mstcp_handling_seconds", "Time that the core took for an event.", ("event",), _FAST_S
        )
        self._installed = self._histogram(
            "mstcp_request_to_installed_seconds",
            "From a request's arrival until all switches have confirmed its rules.",
            (),
            _LATENCY_S,
        )
        self._events = Counter(
            "mstcp_events", "Client events (GET /v1/events).", ("kind",), registry=self._registry
        )
        self._answers = Counter(
            "mstcp_http_answers", "Answers over REST.", ("method", "route", "status"), registry=self._registry
        )
        self._refused = Counter(
            "mstcp_refused_requests", "Requests for flows refused.", ("code",), registry=self._registry
        )
        self._queue = self._gauge("mstcp_queue_length", "Events that wait for the core.", ("queue",))
        self._dropped = self._gauge(
            "mstcp_dropped_packets", "Packets of hosts dropped because too many waited."
        )
        self._waiting = self._gauge("mstcp_waiting_requests", "Clients that wait for an answer.")

    def _histogram(
        self, name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]
    ) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self._registry)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(name, text, labels, registry=self._registry)

    def solved(self, objective: str, wall_s: float) -> None:
        """Record that a routing problem was solved."""
        self._solve.labels(objective).observe(wall_s)

    def handled(self, event: str, wall_s: float) -> None:
        """Record that the core handled an event."""
        self._handling.labels(event).observe(wall_s)

    def installed(self, wall_s: float) -> None:
        """Record that a request was granted and its rules are in."""
        self._installed.observe(wall_s)

    def refused(self, code: str) -> None:
        """Record that a request for a flow was refused."""
        self._refused.labels(code).inc()

    def happened(self, kind: str) -> None:
        """Record that clients were told of something."""
        self._events.labels(kind).inc()

    def answered(self, method: str, route: str, status: int) -> None:
        """Record that REST gave an answer; `route` is the path with its parameters' names."""
        self._answers.labels(method, route, str(status)).inc()

    def figures(self, waiting: int) -> Figures:
        """Return those that a page draws."""
        process = _values(self._process.collect())
        resident_bytes = process.get("process_resident_memory_bytes")
        return Figures(
            solve=_histogram(self._solve, _FAST_S),
            request_to_installed=_histogram(self._installed, _LATENCY_S),
            events=int(_values(self._events.collect()).get("mstcp_events_total", 0)),
            refused_requests=int(_values(self._refused.collect()).get("mstcp_refused_requests_total", 0)),
            waiting_requests=waiting,
            resident_bytes=None if resident_bytes is None else int(resident_bytes),
            cpu_s=process.get("process_cpu_seconds_total"),
        )

    def text(self, sizes: Sizes, queues: dict[str, int], waiting: int, dropped_packets: int) -> bytes:
        """Return all figures in Prometheus' text format, with these for what is counted only now."""
        for name, length in queues.items():
            self._queue.labels(name).set(length)
        self._dropped.set(dropped_packets)
        self._waiting.set(waiting)
        return generate_latest(self._registry) + generate_latest(_registry_of(sizes))


def _registry_of(sizes: Sizes) -> CollectorRegistry:
    """Return gauges of what there is; what is not measured has no value."""
    registry = CollectorRegistry()
    for field in dataclasses.fields(sizes):
        value, text = getattr(sizes, field.name), field.metadata["description"]
        is_many = isinstance(value, dict)
        labels = [field.name.split("_")[0]] if is_many else []
        gauge = Gauge(f"mstcp_{field.name}", text, labels, registry=registry)
        if not is_many:
            gauge.set(value)
            continue
        for name, number in value.items():
            if number is not None:
                gauge.labels(name).set(number)
    return registry


def _values(metrics: Iterable[Metric]) -> dict[str, float]:
    """Return the sum over the labels of each sample."""
    sums: dict[str, float] = {}
    for metric in metrics:
        for sample in metric.samples:
            sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
    return sums


def _histogram(histogram: Histogram, bounds_s: tuple[float, ...]) -> HistogramFigures:
    """Return the sum over the labels, which may have none yet."""
    cumulated = dict.fromkeys((*bounds_s, float("inf")), 0.0)
    sum_s = 0.0
    for metric in histogram.collect():
        for sample in metric.samples:
            if sample.name.endswith("_bucket"):
                bound_s = float(sample.labels["le"])
                cumulated[bound_s] += sample.value
            elif sample.name.endswith("_sum"):
                sum_s += sample.value
    totals = (0.0, *cumulated.values())
    return HistogramFigures(
        bounds_s=bounds_s,
        counts=tuple(int(after - before) for before, after in pairwise(totals)),
        sum_s=sum_s,
    )
