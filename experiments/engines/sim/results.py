"""What the simulator found, made into the common result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from experiments.analysis.logs import Log, Window
from experiments.analysis.metrics import measured_fields
from experiments.apps.config import flow_seed
from experiments.engines.sim.rerouting import Reroute
from experiments.engines.sim.routing import Route
from experiments.model.evidence import ConnectionEvidence, Evidence, FlowEvidence, PathEvidence
from experiments.model.plan import RunPlan
from experiments.model.results import (
    FlowResult,
    FlowSeries,
    LinkChange,
    LinkResult,
    LinkSeries,
    PathChange,
    RunResult,
    StreamSeries,
)
from experiments.model.scenario import Flow
from experiments.workloads import Cbr, Ended

FIELDS = (
    *("goodput_bps", "delay_s", "out_of_order_ratio", "reorder_buffer_max_bytes", "bytes_written"),
    *("bytes_read", "bytes_wrong", "ticks_skipped", "active_goodput_bps", "transfers", "completion_s"),
    "fct_s",
)
"""Fields of a flow's result that the simulator has by the same names."""
COUNTS = ("goodput_bps", "bytes_written", "bytes_read", "bytes_wrong", "ticks_skipped")
NOT_ADMITTED: dict[str, Any] = {
    **dict.fromkeys(FIELDS),
    **dict.fromkeys(COUNTS, 0),
    "series": None,
    "delay_cdf_s": [],
    "split_packets": [[]],
}


def run_result(
    plan: RunPlan,
    routes: Mapping[str, Route],
    reroutes: Mapping[str, list[Reroute]],
    simulated: dict[str, Any],
) -> RunResult:
    """Return the result of a run."""
    by_name = {flow["flow"]: flow for flow in simulated["flows"]}
    flows = [
        _flow(plan, name, flow, routes[name], by_name.get(name)) for name, flow in plan.case.flows.items()
    ]
    times_s: list[float] = next(
        (flow["series"]["time_s"] for flow in simulated["flows"] if flow["series"]), []
    )
    known = {f"{arc.tail}->{arc.head}" for arc in plan.network.arcs()}
    links = [_link(link, times_s) for link in simulated["links"] if link["link"] in known]
    return RunResult(
        protocol=plan.protocol,
        case=plan.case_name,
        seed=plan.seed,
        duration_s=plan.duration_s,
        started_at=None,
        valid=True,
        why_invalid=[],
        host_cpu_busy=None,
        sysctls={},
        flows=flows,
        links=links,
        evidence=Evidence(
            flows={name: _evidence(routes[name], flow) for name, flow in by_name.items()},
            network=simulated["counters"],
        ),
        link_changes=[LinkChange(**asdict(change)) for change in plan.changes],
        path_changes=sorted(
            (
                PathChange(time_s=each.at_s, flow=name, paths=list(each.route.allocated))
                for name, later in reroutes.items()
                for each in later
                if each.at_s < plan.duration_s
            ),
            key=lambda change: change.time_s,
        ),
    )


def _flow(plan: RunPlan, name: str, flow: Flow, route: Route, simulated: dict[str, Any] | None) -> FlowResult:
    common: dict[str, Any] = {
        "flow": name,
        "src": flow.src,
        "dst": flow.dst,
        "requested_bps": plan.requested_bps(name),
        "allocated": list(route.allocated),
        "workload": None if isinstance(flow.workload, Cbr) else flow.workload.model_dump(mode="json"),
        "group": flow.group,
        "protocol": flow.protocol,
    }
    simulated = simulated or NOT_ADMITTED
    measured = {name: simulated[name] for name in FIELDS}
    if "log" in simulated:
        measured |= measured_fields(flow.workload, _ended(plan, name, simulated["log"]))
    control = None if simulated is NOT_ADMITTED else plan.congestion_control_of(name)
    return FlowResult(**common, **measured, congestion_control=control, series=_series(route, simulated))


def _ended(plan: RunPlan, name: str, log: dict[str, Any]) -> Ended:
    """Return a flow's writes and reads; a write of a workload that is asked answers one request."""
    begun_ns, measured_ns = log["begun_ns"]
    writes, reads = (_log(log[end]) for end in ("writes", "reads"))
    seed = flow_seed(plan.seed, list(plan.case.flows).index(name))
    window = Window(measured_ns, plan.duration_s)
    asks = plan.case.flows[name].workload.asking is not None
    asked = writes if asks else _log([])
    return Ended(writes, reads, window, begun_ns, seed, asked.time_ns, asked.offset)


def _log(entries: list[list[int]]) -> Log:
    """Return a log; entries of one time and offset come once."""
    offset, time_ns = np.array(entries, dtype=np.int64).reshape(-1, 2).T
    return Log(offset, time_ns)


def _series(route: Route, simulated: dict[str, Any]) -> FlowSeries:
    series = simulated["series"] or {"time_s": [], "goodput_bps": [], "delay_mean_s": [], "streams_bps": []}
    return FlowSeries(
        time_s=series["time_s"],
        goodput_bps=series["goodput_bps"],
        delay_mean_s=series["delay_mean_s"],
        streams=_streams(route, simulated, series["streams_bps"]),
        delay_cdf_s=simulated["delay_cdf_s"],
    )


def _streams(route: Route, simulated: dict[str, Any], rates_bps: list[list[float]]) -> list[StreamSeries]:
    """Return the series of each path; a connection that is split is shared out as its packets were."""
    if not rates_bps:
        return []
    counted = simulated["split_packets"][0]
    windows, trips = (simulated["series"][name] for name in ("cwnd_bytes", "srtt_s"))
    if len(rates_bps) == 1 and counted:
        windows = trips = [[] for _ in counted]
        total = sum(counted) or 1
        rates_bps = [[rate * packets / total for rate in rates_bps[0]] for packets in counted]
    return [
        StreamSeries(source_port=None, path=path.path, rate_bps=rates, cwnd_bytes=cwnd, rtt_s=rtt_s)
        for path, rates, cwnd, rtt_s in zip(route.allocated, rates_bps, windows, trips, strict=True)
    ]


def _evidence(route: Route, simulated: dict[str, Any]) -> FlowEvidence:
    """Return what TCP counted on each connection, and the packets that each split path carried."""
    mptcp = dict(simulated.get("mptcp") or {})
    # One for each subflow, so that they stand beside what its TCP counted.
    unknown = [None] * len(simulated["streams"])
    rates = zip(mptcp.pop("window_rates_bps", unknown), mptcp.pop("logged_rates_bps", unknown), strict=True)
    return FlowEvidence(
        paths=_split(route, simulated["split_packets"][0]),
        split_by="packets" if simulated["split_packets"][0] else None,
        connections=[
            ConnectionEvidence(
                rtt_s=stream["srtt_s"],
                counters=_numbers({**stream, "window_rate_bps": window_bps, "logged_rate_bps": logged_bps}),
            )
            for stream, (window_bps, logged_bps) in zip(simulated["streams"], rates, strict=True)
        ],
        counters=_numbers(mptcp),
    )


def _numbers(counters: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in counters.items() if value is not None and name != "srtt_s"}


def _split(route: Route, packets: list[int]) -> list[PathEvidence]:
    if not packets:
        return []
    rates = [path.rate_bps or 0.0 for path in route.allocated]
    total_bps, total = sum(rates), sum(packets)
    return [
        PathEvidence(
            path=path.path,
            asked=rate / total_bps if total_bps else None,
            realised=count / total if total else None,
            packets=count,
        )
        for path, rate, count in zip(route.allocated, rates, packets, strict=True)
    ]


def _link(simulated: dict[str, Any], times_s: list[float]) -> LinkResult:
    return LinkResult(
        link=simulated["link"],
        capacity_bps=simulated["capacity_bps"],
        utilisation=simulated["utilisation"],
        packets_dropped=simulated["packets_dropped"],
        lateness_mean_us=None,
        lateness_p99_us=None,
        lateness_max_us=None,
        series=LinkSeries(time_s=times_s, utilisation=simulated["series"]) if simulated["series"] else None,
    )
