"""A run as the simulator's description (docs/simulator.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments import protocols
from experiments.engines.base import RunPlan
from experiments.engines.sim.routing import Route
from experiments.protocols.mptcp import DSS_BYTES, Mptcp
from experiments.scenario import ETHERNET_BYTES, Flow
from experiments.workloads.schema import Bulk, EmpiricalSize, NamedSize, OnOff, Requests, Sizes
from experiments.workloads.sizes import cdf_of
from topologies import Link

IPV4_BYTES = 20
MAX_RATE_BPS = 1e13
"""The simulator's highest rate."""


def describe(
    plan: RunPlan, routes: Mapping[str, Route], homes: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the description of a run, without the flows that are not admitted.

    Args:
        plan: what is run.
        routes: of all its flows.
        homes: hosts that are second interfaces, each with the host that it belongs to.
    """
    scenario = plan.scenario
    description: dict[str, Any] = {
        "format": 1,
        "seed": plan.seed,
        "duration_s": plan.duration_s,
        "warm_up_s": scenario.warm_up_s,
        "packet_overhead_bytes": ETHERNET_BYTES + IPV4_BYTES,
        "links": [*(_link(link) for link in plan.network.links), *_interface_links(homes or {})],
        "tcp": tcp_of(plan),
        "flows": [
            _flow(plan, name, flow, routes[name], number * scenario.stagger_s)
            for number, (name, flow) in enumerate(plan.case.flows.items())
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


def _link(link: Link) -> dict[str, Any]:
    if link.wifi is None:
        return link.model_dump()
    wireless = {"standard": link.wifi, **link.wireless_settings()}
    return {"ends": link.ends, "queue_packets": link.queue_packets, "wifi": wireless}


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
        "congestion_control": tcp.congestion_control,
        "send_buffer_bytes": tcp.send_buffer_bytes,
        "receive_buffer_bytes": tcp.receive_buffer_bytes,
        "sack": tcp.sack,
        "timestamps": tcp.timestamps,
        "window_scaling": tcp.window_scaling,
    }
    given = {key: value for key, value in shared.items() if value is not None}
    option_bytes = DSS_BYTES if is_mptcp(plan) else 0
    mss_bytes = scenario.packet_bytes - scenario.overhead_bytes - option_bytes
    return {**given, **scenario.sim.tcp(), "mss_bytes": mss_bytes}


def is_mptcp(plan: RunPlan) -> bool:
    """Return whether a plan's protocol is MPTCP of some kind."""
    return isinstance(protocols.get(plan.protocol), Mptcp)


def _flow(plan: RunPlan, name: str, flow: Flow, route: Route, delayed_s: float) -> dict[str, Any]:
    settings = plan.scenario.sim
    paths = [{"path": _from_host(flow, path.path)} | _rate(path.rate_bps) for path in route.allocated]
    described: dict[str, Any] = {
        "name": name,
        "src": flow.src,
        "dst": flow.dst,
        "protocol": "mstcp" if plan.protocol == "mstcp" else "mptcp" if is_mptcp(plan) else "tcp",
        "traffic": _traffic(plan, flow),
        "start_s": flow.start_s + delayed_s,
        "paths": paths,
    }
    if route.acks is not None:
        described["ack_path"] = route.acks
    if plan.protocol == "mstcp":
        described["mstcp"] = {
            "binding": settings.binding,
            "scheduler": plan.scenario.mstcp.scheduler,
            "reorder_buffer_bytes": settings.reorder_buffer_bytes,
            "identify_single": settings.identify_single,
            "trust_streams": plan.scenario.mstcp.trust_streams,
        }
    if is_mptcp(plan):
        described["mptcp"] = {
            **settings.mptcp.model_dump(exclude_none=True),
            "receive_buffer_bytes": plan.scenario.mptcp_receive_buffer_bytes,
        }
    return described


def _from_host(flow: Flow, path: list[str]) -> list[str]:
    """Return a path that may begin and end at second interfaces as one between the hosts."""
    return path if path[0] == flow.src else [flow.src, *path, flow.dst]


def _rate(rate_bps: float | None) -> dict[str, float]:
    return {} if rate_bps is None else {"rate_bps": rate_bps}


def _traffic(plan: RunPlan, flow: Flow) -> dict[str, Any]:
    workload, settings = flow.workload, plan.scenario.sim
    if isinstance(workload, Bulk):
        return {"kind": "bulk", "total_bytes": workload.size_bytes}
    if isinstance(workload, Requests):
        return {
            **workload.model_dump(exclude={"sizes"}, exclude_none=True),
            "sizes": _sizes(workload.sizes),
        }
    rate = {"rate_bps": flow.requested_for(plan.protocol), "when_full": settings.when_full}
    if isinstance(workload, OnOff):
        return {**workload.model_dump(), **rate}
    return {"kind": "cbr" if settings.arrivals == "constant" else "poisson", **rate}


def _sizes(sizes: Sizes) -> dict[str, Any]:
    if isinstance(sizes, NamedSize | EmpiricalSize):
        cdf, scale = cdf_of(sizes)
        return {"kind": "empirical", "cdf": list(cdf), "scale": scale}
    return sizes.model_dump()
