"""The controller's figures, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

from controller.model.described import described
from controller.model.views import Sizes

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_FAST_S = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_LATENCY_S = (0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class HistogramFigures:
    """Times that something took, since the start of the controller."""

    bounds_s: tuple[float, ...] = described("Upper bounds of the buckets; one without a bound follows.")
    counts: tuple[int, ...] = described("Of each bucket by itself.")
    sum_s: float


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures of `/metrics` that a page draws."""

    solve: HistogramFigures
    request_to_installed: HistogramFigures
    events: int = described("Events that clients were told, since the start of the controller.")
    refused_requests: int
    waiting_requests: int
    resident_bytes: int | None = described("Null where the system does not tell.")
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
        self._rules = self._gauge("mstcp_switch_rules", "Rules that a switch should have.", ("switch",))
        self._queue = self._gauge("mstcp_queue_length", "Events that wait for the core.", ("queue",))
        self._dropped = self._gauge(
            "mstcp_dropped_packets", "Packets of hosts dropped because too many waited."
        )
        self._dropped_groups = self._gauge(
            "mstcp_switch_dropped_group_packets",
            "Packets to multicast and broadcast addresses that a switch has dropped.",
            ("switch",),
        )
        self._waiting = self._gauge("mstcp_waiting_requests", "Clients that wait for an answer.")
        self._flows = self._gauge("mstcp_flows", "Flows.")
        self._degraded = self._gauge(
            "mstcp_degraded_flows", "Flows that carry less than before a link was lost."
        )
        self._links_down = self._gauge("mstcp_links_down", "Links of the topology file that are down.")
        self._switches = self._gauge("mstcp_connected_switches", "Switches that are connected.")
        self._hosts = self._gauge("mstcp_learned_hosts", "Hosts learned from their ARP packets.")
        self._allocated = self._gauge("mstcp_allocated_bps", "Goodput of all flows, bit/s.")
        self._requested = self._gauge("mstcp_requested_bps", "Goodput that all flows have asked for, bit/s.")

        link = ("link",)
        self._link_loads = {
            "capacity_bps": self._gauge("mstcp_link_capacity_bps", "Of one direction of a link.", link),
            "allocated_bps": self._gauge(
                "mstcp_link_allocated_bps", "Wire rate of all flows over it, with acknowledgements.", link
            ),
            "measured_bps": self._gauge(
                "mstcp_link_measured_bps", "Wire rate that its switch has counted.", link
            ),
            "unrequested_bps": self._gauge(
                "mstcp_link_unrequested_bps", "Wire rate of lasting traffic that belongs to no flow.", link
            ),
        }

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
        for switch, rules in sizes.rules.items():
            self._rules.labels(switch).set(rules)
        for switch, packets in sizes.dropped_group_packets.items():
            self._dropped_groups.labels(switch).set(packets)
        for name, length in queues.items():
            self._queue.labels(name).set(length)
        self._dropped.set(dropped_packets)
        self._waiting.set(waiting)
        self._flows.set(sizes.flows)
        self._degraded.set(sizes.degraded_flows)
        self._links_down.set(sizes.links_down)
        self._switches.set(sizes.switches_connected)
        self._hosts.set(sizes.learned_hosts)
        self._allocated.set(sizes.allocated_bps)
        self._requested.set(sizes.requested_bps)
        for gauge in self._link_loads.values():
            gauge.clear()  # what is not measured any more has no value
        for load in sizes.link_loads:
            for name, gauge in self._link_loads.items():
                value = getattr(load, name)
                if value is not None:
                    gauge.labels(load.link).set(value)
        return generate_latest(self._registry)


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
