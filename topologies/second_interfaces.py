"""Hosts with a second interface, as networks that have none are extended by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from topologies.check import check_network
from topologies.model import Link, Network, Node

SUFFIX = "_2"


@dataclass(frozen=True)
class SecondLink:
    """Where a host's second interface leads: the switch, and rate and delay of the link, as in `Link`."""

    switch: str
    rate_bps: float
    delay_us: float


def second_name(host: str) -> str:
    """Return what a host's second interface is called as a node of the network."""
    return f"{host}{SUFFIX}"


def with_second_interfaces(network: Network, links: Mapping[str, SecondLink]) -> Network:
    """Return the network with a second interface for some hosts.

    Each is a host of its own to the controller, with an address of its own, and comes after all others, so
    that datapath ids, port numbers and addresses of the rest stay as they are. The emulation puts it into the
    namespace of the host it belongs to.

    Args:
        network: the network.
        links: of the second interfaces, by host.

    Raises:
        InvalidTopology: a host or switch does not exist, or the name of a second interface is taken.
    """
    nodes = tuple(Node(name=second_name(host), kind="host") for host in links)
    added = tuple(
        Link(ends=(second_name(host), link.switch), rate_bps=link.rate_bps, delay_us=link.delay_us)
        for host, link in links.items()
    )
    extended = Network(
        name=network.name,
        description=network.description,
        nodes=(*network.nodes, *nodes),
        links=(*network.links, *added),
    )
    check_network(extended)
    return extended
