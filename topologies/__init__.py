"""Networks as data: load, generate, change and place them. `topologies.mininet_builder` builds them."""

from topologies.check import check_network
from topologies.errors import TopologyError
from topologies.layout import positions
from topologies.load import builtin_names, load
from topologies.model import Arc, Link, Network, Node
from topologies.overrides import apply_overrides

__all__ = [
    "Arc",
    "Link",
    "Network",
    "Node",
    "TopologyError",
    "apply_overrides",
    "builtin_names",
    "check_network",
    "load",
    "positions",
]
