"""How the ends of a network's links are numbered and named when it is built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from topologies.check import check_numbered, check_symmetric
from topologies.interface_names import InterfaceNames
from topologies.model import Network


def link_parameters(network: Network, names: InterfaceNames) -> Iterator[dict[str, Any]]:
    """Yield what `Mininet.addLink` and `EmulatedLink` need for each link, in file order.

    Mininet numbers the ports of hosts from 0, so that their first interface is `eth0`, and those of switches
    from 1.

    Args:
        network: the network.
        names: of its interfaces.

    Raises:
        InvalidTopology: a link is not alike in both directions.
    """
    check_symmetric(network)
    check_numbered(network)
    hosts = set(network.hosts)
    forward = list(network.arcs())[::2]
    for index, (link, arc) in enumerate(zip(network.links, forward, strict=True)):
        ends = ((arc.tail, arc.tail_port), (arc.head, arc.head_port))
        numbers = [port - 1 if node in hosts else port for node, port in ends]
        a, b = (names.port(node, port) for node, port in ends)
        mac_a, mac_b = (_mac(network, node, port, node in hosts) for node, port in ends)
        yield {
            "node1": arc.tail,
            "node2": arc.head,
            "port1": numbers[0],
            "port2": numbers[1],
            "link": link,
            "interfaces": (a, b),
            "macs": (mac_a, mac_b),
            "relays": names.wire(index),
        }


def _mac(network: Network, node: str, port: int, is_host: bool) -> str:
    """Return the MAC address of a port: a host's own at its first, else one made of node and port."""
    if is_host and port == 1:
        return network.host_mac(node)
    number = network.hosts.index(node) if is_host else network.datapath_id(node)
    kind = 2 if is_host else 1
    return ":".join(f"{byte:02x}" for byte in (2, kind, number >> 8, number & 255, port >> 8, port & 255))
