"""The path of a packet on the default routes, read from the switches' own rules."""

from __future__ import annotations

import re
from collections.abc import Callable

from controller.model.labels import mac_value
from controller.model.rules import TABLE_DEFAULT, port_of_group
from controller.state.live_network import LiveNetwork
from topologies.model import IpVersion, Network

DEFAULT_TABLE = TABLE_DEFAULT
_LABEL = re.compile(r"\bset_field:([0-9a-f:]{17})->eth_dst")
_OUTPUT = re.compile(r"\b(output|group):\"?(\d+)")


def default_path(
    network: Network, src: str, dst: str, dump: Callable[[str], str], version: IpVersion = 4
) -> list[str] | None:
    """Return the nodes from `src` to `dst` as the rules send them, or None where they do not lead there.

    `dump` returns a switch's rules for default routes, as `ovs-ofctl dump-flows` prints them.
    """
    ways = LiveNetwork(network).ports
    heads = {(arc.tail, arc.tail_port): arc.head for arc in network.arcs()}
    neighbours = {(switch, number): head for (switch, head), number in ways.numbers.items()}
    path, label = [src, heads[src, 1]], 0
    while path[-1] in network.switches:
        field, label = ways.format.first(label)
        following = neighbours.get((path[-1], field))
        if following is None:
            port, label = _towards(dump(path[-1]), network.host_ip(dst, version))
            following = heads.get((path[-1], port))
        if following is None or following in path:
            return None
        path.append(following)
    return path if path[-1] == dst else None


def _towards(rules: str, address: str) -> tuple[int, int]:
    """Return the port out of which a switch sends packets to an address, and their label; 0 for none."""
    for line in rules.splitlines():
        output, label = _OUTPUT.search(line), _LABEL.search(line)
        if output and re.search(rf"\b(nw|ipv6)_dst={re.escape(address)}[ ,]", line):
            number = int(output[2])
            port = number if output[1] == "output" else port_of_group(number)
            return port or 0, mac_value(label[1]) if label else 0
    return 0, 0
