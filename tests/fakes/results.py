"""Synthetic results documents: realistic in shape and size, every number from a seeded generator."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from experiments.model.evidence import Evidence
from experiments.model.results import (
    AskedRuns,
    DelayStatistics,
    Environment,
    FlowResult,
    FlowSeries,
    LinkResult,
    LinkSeries,
    PathAllocation,
    Results,
    RunResult,
    StreamSeries,
)
from experiments.model.scenario import load as load_scenario
from experiments.report.terminal import print_table
from topologies import Network, load

PATHS = {
    "1": (["T0", "S0", "S4", "T2"], ["T0", "S0", "S2", "S3", "S4", "T2"]),
    "2": (["T1", "S1", "S5", "T3"], ["T1", "S1", "S2", "S3", "S5", "T3"]),
}
ENDS = {"1": ("T0", "T2"), "2": ("T1", "T3")}
REQUESTED_BPS = {("1", "1"): 8.5e6, ("1", "2"): 4.5e6, ("2", "1"): 9.08e6, ("2", "2"): 31.8e6}
MULTIPATH = {"mstcp", "ppfs", "mptcp"}


def make_results(
    protocols: Sequence[str] = ("ospf", "mstcp"),
    scenarios: Sequence[str] = ("1", "2"),
    seeds: int = 1,
    duration_s: float = 20.0,
    **changes: Any,
) -> Results:
    """Return a document of the butterfly with one run for each protocol, scenario and seed.

    Args:
        protocols: Names of protocols; those not in `MULTIPATH` use one path.
        scenarios: `1` or `2` for the paper's, anything else is a scenario that the paper does not have.
        seeds: Runs of each protocol and scenario.
        duration_s: Of each run; one sample of the series per 0.25 s.
        changes: Fields of the document to set.
    """
    network = load("butterfly")
    runs = [
        make_run(protocol, scenario, seed, duration_s, network)
        for scenario in scenarios
        for protocol in protocols
        for seed in range(1, seeds + 1)
    ]
    fields: dict[str, Any] = {
        "scenario": "butterfly",
        "engine": "live",
        "variant": "a",
        "overrides": {},
        "settings": settings_with(),
        "asked": AskedRuns(protocols=list(protocols), seeds=list(range(1, seeds + 1))),
        "network": network.model_dump(mode="json"),
        "environment": make_environment(),
        "runs": runs,
    }
    return Results(**{**fields, **changes})


def printed(results: Results, *, terminal: bool = False, width: int = 100) -> str:
    """Return the table that a terminal shows."""
    out = io.StringIO()
    print_table(results, Console(file=out, force_terminal=terminal, width=width, color_system=None))
    return out.getvalue()


def settings_with(**tcp: Any) -> dict[str, Any]:
    """Return the settings of a document whose hosts have other settings of TCP."""
    settings = load_scenario("butterfly").model_dump(mode="json")
    return {**settings, "tcp": {**settings["tcp"], **tcp}}


def make_run(protocol: str, scenario: str, seed: int, duration_s: float, network: Network) -> RunResult:
    """Return one run of both flows."""
    rng = random.Random(f"{protocol} {scenario} {seed}")
    flows = [make_flow(protocol, scenario, flow, duration_s, rng) for flow in PATHS]
    return RunResult(
        protocol=protocol,
        case=scenario,
        seed=seed,
        duration_s=duration_s,
        started_at=f"2026-01-15T10:{seed:02d}:00Z",
        valid=True,
        why_invalid=[],
        host_cpu_busy=rng.uniform(0.3, 0.5),
        sysctls={"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_timestamps": "0", "net.ipv4.tcp_recovery": "0"},
        flows=flows,
        links=[_link(arc.tail, arc.head, arc.rate_bps, flows, rng, duration_s) for arc in network.arcs()],
        evidence=Evidence(further={"rules": 14, "streams": [len(flow.series.streams) for flow in flows]}),
    )


def make_flow(protocol: str, scenario: str, flow: str, duration_s: float, rng: random.Random) -> FlowResult:
    """Return one flow that received somewhat less than it asked for; multipath protocols lose least."""
    requested = REQUESTED_BPS.get((scenario, flow), 6e6)
    paths = list(PATHS[flow]) if protocol in MULTIPATH else [PATHS[flow][0]]
    share = rng.uniform(0.97, 1.0) if protocol in MULTIPATH else rng.uniform(0.4, 0.55)
    samples = round(duration_s / 0.25)
    goodput = [requested * share * rng.uniform(0.94, 1.04) for _ in range(samples)]
    mean = sum(goodput) / samples
    scale_s = 0.012 if protocol in MULTIPATH else 0.15
    quantiles = sorted(0.003 + rng.lognormvariate(0, 0.5) * scale_s for _ in range(101))
    src, dst = ENDS[flow]
    received = round(mean * duration_s / 8)
    return FlowResult(
        flow=flow,
        src=src,
        dst=dst,
        requested_bps=requested,
        allocated=[
            PathAllocation(path=path, rate_bps=requested / len(paths) if protocol in MULTIPATH else None)
            for path in paths
        ],
        goodput_bps=mean,
        delay_s=DelayStatistics(
            mean=sum(quantiles) / 101,
            p50=quantiles[50],
            p95=quantiles[95],
            p99=quantiles[99],
            max=quantiles[100],
        ),
        out_of_order_ratio=rng.uniform(0.1, 0.3) if protocol in MULTIPATH else None,
        reorder_buffer_max_bytes=rng.randrange(20_000, 90_000) if protocol in MULTIPATH else None,
        bytes_written=received,
        bytes_read=received,
        bytes_wrong=0,
        ticks_skipped=rng.randrange(100),
        congestion_control="reno",
        series=FlowSeries(
            time_s=[0.25 * (i + 1) for i in range(samples)],
            goodput_bps=goodput,
            delay_mean_s=[quantiles[rng.randrange(101)] for _ in range(samples)],
            streams=[
                StreamSeries(
                    source_port=40000 + index,
                    path=path,
                    rate_bps=[rate / len(paths) * rng.uniform(0.9, 1.1) for rate in goodput],
                )
                for index, path in enumerate(paths)
            ],
            delay_cdf_s=quantiles,
        ),
    )


def make_environment() -> Environment:
    """Return an environment without complaints."""
    return Environment(
        kernel="Linux 6.1.0-18-amd64",
        machine="x86_64, Intel Xeon",
        cpus=2,
        versions={
            "mininet": "2.3.0",
            "openvswitch": "3.1.0",
            "python": "3.11.2",
            "os-ken": "4.2.2",
            "mstcp": "0.1.0",
        },
        sysctls={"net.core.rmem_max": "212992", "net.ipv4.tcp_congestion_control": "bbr"},
        qdiscs=["htb", "tbf", "pfifo"],
        link_backend="emulator",
        datapath="netdev",
        git_revision="0123456789abcdef",
        host_load=[0.4, 0.3, 0.2],
        valid=True,
        why=[],
    )


def _link(
    tail: str, head: str, capacity_bps: float, flows: list[FlowResult], rng: random.Random, duration_s: float
) -> LinkResult:
    load_bps = 0.0
    for flow in flows:
        for entry in flow.allocated:
            hops = list(zip(entry.path, entry.path[1:], strict=False))
            wire = flow.goodput_bps / len(flow.allocated) * 590 / 536
            if (tail, head) in hops:
                load_bps += wire
            elif (head, tail) in hops:
                load_bps += 0.0458 * wire
    utilisation = min(load_bps / capacity_bps, 1.0)
    samples = round(duration_s / 0.25)
    return LinkResult(
        link=f"{tail}->{head}",
        capacity_bps=capacity_bps,
        utilisation=utilisation,
        packets_dropped=0,
        lateness_mean_us=rng.uniform(15, 30),
        lateness_p99_us=rng.uniform(60, 200),
        lateness_max_us=rng.uniform(400, 2000),
        series=LinkSeries(
            time_s=[0.25 * (i + 1) for i in range(samples)], utilisation=[utilisation] * samples
        ),
    )
