"""A run as the simulator's description (docs/simulator.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments import protocols
from experiments.analysis.metrics import logs_wanted
from experiments.apps.config import flow_seed, start_jitter_s
from experiments.engines.sim.rerouting import Reroute
from experiments.engines.sim.routing import Route
from experiments.model.dynamics import NetworkChange
from experiments.model.plan import RunPlan
from experiments.model.scenario import ETHERNET_BYTES, IP_BYTES, Scenario
from experiments.model.settings import COUPLED_CONTROLS
from experiments.traces.base import SETTINGS
from experiments.workloads import Simulated
from topologies import Link

MAX_RATE_BPS = 1e13
"""The simulator's highest rate."""


def describe(
    plan: RunPlan,
    routes: Mapping[str, Route],
    homes: Mapping[str, str] | None = None,
    reroutes: Mapping[str, list[Reroute]] | None = None,
) -> dict[str, Any]:
    """Return the description of a run, without the flows that are not admitted.

    `reroutes` are the ways that flows take later; `homes` are hosts that are second interfaces, each with the
    host that it belongs to.
    """
    scenario = plan.scenario
    description: dict[str, Any] = {
        "format": 1,
        "seed": plan.seed,
        "duration_s": plan.duration_s,
        "warm_up_s": _measured_from_s(scenario),
        "packet_overhead_bytes": ETHERNET_BYTES + IP_BYTES[scenario.ip_version],
        "links": [*(_link(link, plan) for link in plan.network.links), *_interface_links(homes or {})],
        "tcp": tcp_of(plan),
        "flows": [
            _flow(plan, number, name, routes[name], (reroutes or {}).get(name, []))
            for number, name in enumerate(plan.case.flows)
            if routes[name].allocated
        ],
    }
    if scenario.sim.trace:
        description["trace"] = {
            "rows": bool({"csv", "parquet"} & set(scenario.sim.trace)),
            "captures": _captures(plan) if "pcap" in scenario.sim.trace else {},
        }
    if scenario.sim.sample_s:
        description["series_interval_s"] = scenario.sim.sample_s
    return description


def _measured_from_s(scenario: Scenario) -> float:
    """Return when the measurement begins, in the simulator's time."""
    return scenario.warm_up_s + scenario.sim.connects_ahead_s


def _link(link: Link, plan: RunPlan) -> dict[str, Any]:
    changes = [change for change in plan.changes if change.link == link.name]
    dynamics = _dynamics(link, changes, _measured_from_s(plan.scenario), plan.duration_s)
    if link.wifi is None:
        return link.model_dump() | dynamics
    return {"ends": link.ends, "queue_packets": link.queue_packets, "wifi": link.radio(), **dynamics}


def _dynamics(
    link: Link, changes: Sequence[NetworkChange], from_s: float, duration_s: float
) -> dict[str, Any]:
    """Return when a link is down, and what it becomes when; nothing where nothing happens."""
    down: list[list[float]] = []
    settings: list[dict[str, Any]] = []
    is_down, latest = False, {name: getattr(link, name) for name in SETTINGS}
    for change in changes:
        at_s = from_s + change.time_s
        if change.up is False and not is_down:
            down.append([at_s, from_s + duration_s + 1.0])
        if change.up is True and is_down:
            down[-1][1] = at_s
        is_down = is_down if change.up is None else not change.up
        if change.settings:
            latest = {**latest, **change.settings}
            settings.append({"at_s": at_s, **latest})
    kept = [span for span in down if span[0] < span[1]]
    return ({"down_s": kept} if kept else {}) | ({"changes": settings} if settings else {})


def _captures(plan: RunPlan) -> dict[str, str]:
    """Return the hosts at which flows begin or end, with their addresses."""
    ends = dict.fromkeys(host for flow in plan.case.flows.values() for host in (flow.src, flow.dst))
    return {host: plan.network.host_ip(host) for host in ends}


def _interface_links(homes: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what joins second interfaces to their hosts: it takes no time."""
    return [
        {"ends": [host, interface], "rate_bps": MAX_RATE_BPS, "delay_us": 0.0}
        for interface, host in homes.items()
    ]


def tcp_of(plan: RunPlan) -> dict[str, Any]:
    """Return TCP's part of the description of a plan's run."""
    scenario = plan.scenario
    tcp = scenario.tcp
    shared = {
        "congestion_control": _of_one_path(tcp.congestion_control),
        "send_buffer_bytes": tcp.send_buffer_bytes,
        "receive_buffer_bytes": tcp.receive_buffer_bytes,
        "slow_start_after_idle": tcp.slow_start_after_idle,
        "sack": True if "sack" in tcp.response else tcp.sack,
        "timestamps": tcp.timestamps if tcp.reordering is None else tcp.has_timestamps,
        "window_scaling": tcp.window_scaling,
        "reordering": tcp.reordering,
    }
    given = {key: value for key, value in shared.items() if value is not None}
    return {**given, **scenario.sim.tcp(), "mss_bytes": scenario.packet_bytes - scenario.overhead_bytes}


def _flow(plan: RunPlan, number: int, name: str, route: Route, reroutes: Sequence[Reroute]) -> dict[str, Any]:
    protocol, flow = protocols.get(plan.protocol_of(name)), plan.case.flows[name]
    delayed_s = number * plan.scenario.stagger_s + start_jitter_s(
        plan.scenario.sim.start_lateness_s, flow_seed(plan.seed, number)
    )
    described: dict[str, Any] = {
        "name": name,
        "src": flow.src,
        "dst": flow.dst,
        "traffic": flow.workload.simulated(_simulated(plan, number, name, route, delayed_s)),
        "start_s": flow.start_s + delayed_s,
        "write_from_s": flow.start_s + delayed_s + plan.scenario.sim.connects_ahead_s,
        **way(flow.src, flow.dst, route),
    }
    if reroutes:
        from_s = _measured_from_s(plan.scenario)
        described["reroutes"] = [
            {"at_s": from_s + each.at_s, **way(flow.src, flow.dst, each.route)} for each in reroutes
        ]
    if flow.congestion_control is not None:
        described["congestion_control"] = _of_one_path(flow.congestion_control)
    if logs_wanted(flow.workload):
        described["log"] = True
    described |= protocol.simulated(plan.scenario)
    control = plan.congestion_control_of(name)
    if control in COUPLED_CONTROLS and "mptcp" in described:
        described["mptcp"] = {**described["mptcp"], "congestion_control": control}
    return described


def _of_one_path(control: str) -> str:
    """Return what a control is to a single path, which is coupled with nothing."""
    return "reno" if control in COUPLED_CONTROLS else control


def way(src: str, dst: str, route: Route) -> dict[str, Any]:
    """Return the way of a flow between two hosts, as a description has it."""
    paths = []
    for path in route.allocated:
        # One that begins and ends at second interfaces leads between the hosts all the same.
        nodes = path.path if path.path[0] == src else [src, *path.path, dst]
        paths.append({"path": nodes} | ({} if path.rate_bps is None else {"rate_bps": path.rate_bps}))
    return {"paths": paths} | ({} if route.acks is None else {"ack_path": route.acks})


def _simulated(plan: RunPlan, number: int, name: str, route: Route, delayed_s: float) -> Simulated:
    """Return what a flow's workload has to know to be simulated."""
    scenario, protocol = plan.scenario, protocols.get(plan.protocol_of(name))
    assigned_bps = sum(path.rate_bps or 0.0 for path in route.allocated)
    assigned = assigned_bps if protocol.writes_at_assigned_rate else None
    return Simulated(
        rate_bps=assigned or plan.requested_bps(name),
        write_rate_bps=assigned,
        payload_bytes=scenario.packet_bytes - scenario.overhead_bytes - protocol.header_bytes,
        seed=flow_seed(plan.seed, number),
        duration_s=scenario.warm_up_s + plan.duration_s - plan.case.flows[name].start_s - delayed_s,
        when_full=scenario.sim.when_full,
        arrivals=scenario.sim.arrivals,
        tick_jitter=scenario.sim.tick_lateness,
    )
