"""The path of a packet on the default routes, read from the switches' own rules."""

from __future__ import annotations

import re
from collections.abc import Callable

from topologies.model import Network

DEFAULT_TABLE = 4
_OUTPUT = re.compile(r"\b(?:output|group):\"?(\d+)")
_PORT_GROUPS = 3
"""Upper byte of the number of a port's group (`controller.model.ways`); the rest is the port."""


def default_path(network: Network, src: str, dst: str, dump: Callable[[str], str]) -> list[str] | None:
    """Return the nodes from `src` to `dst` as the rules send them, or None where they do not lead there.

    Args:
        network: names and port numbers.
        src: host that sends.
        dst: host that is meant.
        dump: returns the rules for default routes of a switch, as `ovs-ofctl dump-flows` prints them.
    """
    heads = {(arc.tail, arc.tail_port): arc.head for arc in network.arcs()}
    path = [src, heads[src, 1]]
    while path[-1] in network.switches:
        port = _port_towards(dump(path[-1]), network.host_ip(dst))
        following = heads.get((path[-1], port)) if port is not None else None
        if following is None or following in path:
            return None
        path.append(following)
    return path if path[-1] == dst else None


def _port_towards(rules: str, address: str) -> int | None:
    for line in rules.splitlines():
        output = _OUTPUT.search(line)
        if output and re.search(rf"\bnw_dst={re.escape(address)}\b(?!/)", line):
            number = int(output[1])
            return number & 0xFFFFFF if number >> 24 == _PORT_GROUPS else number
    return None
