"""A topology's switches as model switches: what the real controller connects to in tests and benchmarks."""

from __future__ import annotations

from switch.model import Fleet, ModelSwitch
from topologies.model import Network


def fleet_of(network: Network, *controllers: tuple[str, int]) -> Fleet:
    """Return a model switch for each switch of a network, and the links between them."""
    ports: dict[str, set[int]] = {name: set() for name in network.switches}
    links: dict[tuple[str, int], tuple[str, int]] = {}
    for arc in network.arcs():
        if arc.tail in ports:
            ports[arc.tail].add(arc.tail_port)
            if arc.head in ports:
                links[arc.tail, arc.tail_port] = arc.head, arc.head_port
    switches = {
        name: ModelSwitch(network.datapath_id(name), frozenset(numbers), name)
        for name, numbers in ports.items()
    }
    return Fleet(switches, links, controllers)
