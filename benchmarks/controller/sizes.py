"""Large networks for the benchmark, and what a controller and its switches hold of them."""

from __future__ import annotations

import ipaddress
import statistics
import time

import topologies
from benchmarks.controller.process import Controller
from switch.model import ModelSwitch
from topologies.model import Network

__all__ = ["come_up", "core_rules_per_switch", "spec_of"]

_DENSE_UP_TO = 500
"""Switches of a Waxman graph of the usual density, at most: the next size would have 85,000 links."""

_LINKS_A_SWITCH = 3
"""Of larger graphs."""

_BETA = 0.4


def spec_of(switches: int, seed: int, link_rate_bps: float) -> str:
    """Return a Waxman graph of `switches` switches, a host at each, in which links limit flows."""
    plain = f"waxman:{switches}:seed={seed}"
    beta = _BETA
    if switches > _DENSE_UP_TO:
        dense = len(topologies.load(f"{plain}:beta={_BETA}").links) - switches
        beta *= _LINKS_A_SWITCH * switches / dense
    return f"{plain}:beta={beta:.4g}:rate_bps={link_rate_bps:g}:host_rate_bps=1e10"


async def come_up(running: Controller, started: float) -> dict[str, float]:
    """Wait until a network is there; returns when it was discovered, and when all rules were confirmed."""
    await running.discovered()
    discovery_s = time.perf_counter() - started
    await running.ready()
    return {"discovery_s": discovery_s, "ready_s": time.perf_counter() - started}


def core_rules_per_switch(network: Network, switches: dict[str, ModelSwitch]) -> float:
    """Return how many rules a switch has, on average, that name none of the hosts behind it."""
    addresses: dict[str, set[bytes]] = {name: set() for name in switches}
    for arc in network.arcs():
        if arc.head in network.hosts and arc.tail in addresses:
            ips = network.host_ips(arc.head).values()
            addresses[arc.tail] |= {ipaddress.ip_address(ip).packed for ip in ips}
            addresses[arc.tail].add(bytes.fromhex(network.host_mac(arc.head).replace(":", "")))
    return statistics.fmean(
        sum(addresses[name].isdisjoint(value for _, value in rule.change.match) for rule in of.tables.rules())
        for name, of in switches.items()
    )
