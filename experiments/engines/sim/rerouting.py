"""What the controller makes of links that fail and come back, for simulated runs: new paths."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from experiments.engines.sim.routing import Route, routes
from experiments.model.plan import RunPlan
from experiments.model.results import PathAllocation
from topologies.model import Network

FAILOVER_S = 0.001
"""From a port that goes down to the detour on which the switch itself puts what comes for it."""
SILENT_S = 0.5
"""From a link that fails without its ports to new rules: probes have to stay away."""


@dataclass(frozen=True)
class Reroute:
    """The way that a flow takes from a time on; `at_s` is from the start of the measurement."""

    at_s: float
    route: Route


def reroutes(plan: RunPlan, before: Mapping[str, Route]) -> dict[str, list[Reroute]]:
    """Return the ways that flows take after changes of links, by the flow's name.

    A flow that is cut off keeps the way that it had. As in the other engines the controller learns of links
    that fail and come back, and not of their rates.
    """
    found: dict[str, list[Reroute]] = {name: [] for name in before}
    latest = dict(before)
    failed: set[str] = set()
    for change in plan.changes:
        if change.up is None:
            continue
        (failed.discard if change.up else failed.add)(change.link)
        for name, route in _routes_without(plan, failed, latest).items():
            if route != latest[name]:
                latest[name] = route
                reaction_s = SILENT_S if change.silent else FAILOVER_S
                found[name].append(Reroute(change.time_s + reaction_s, route))
    return found


def _routes_without(plan: RunPlan, failed: Collection[str], before: Mapping[str, Route]) -> dict[str, Route]:
    """Return the ways of the flows that have any, with as many paths as they have streams."""
    parts = _connected_parts(plan.network, failed)
    flows = [
        name
        for name, flow in plan.case.flows.items()
        if before[name].allocated and parts[flow.src] == parts[flow.dst]
    ]
    if not flows:
        return {}
    return {
        name: Route(_onto_streams(before[name].allocated, route.allocated), route.acks)
        for name, route in routes(plan.with_flows(flows), failed).items()
        if route.allocated
    }


def _onto_streams(
    before: tuple[PathAllocation, ...], after: tuple[PathAllocation, ...]
) -> tuple[PathAllocation, ...]:
    """Give each stream one of the new paths: its own if that is among them, else one that is left."""
    left = list(after)
    chosen: list[PathAllocation | None] = []
    for stream in before:
        same = next((path for path in left if path.path == stream.path), None)
        if same is not None:
            left.remove(same)
        chosen.append(same)
    largest = max(after, key=lambda path: path.rate_bps or 0.0)
    idle = largest.model_copy(update={"rate_bps": None if largest.rate_bps is None else 0.0})
    return tuple(path or (left.pop(0) if left else idle) for path in chosen)


def _connected_parts(network: Network, failed: Collection[str]) -> dict[str, str]:
    """Return for each node the name of the part of the network that it is in."""
    part = {node.name: node.name for node in network.nodes}

    def root(node: str) -> str:
        while part[node] != node:
            part[node] = node = part[part[node]]
        return node

    for a, b in (link.ends for link in network.links if link.name not in failed):
        part[root(a)] = root(b)
    return {node: root(node) for node in part}
