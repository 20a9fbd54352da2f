"""How a switch sends a packet to a neighbour: out of a port, or by a group that knows another way.

Each port towards another switch has a fast-failover group. Its first bucket is the port, watched by the
switch itself; its second, where the network has a way around the link, is the bypass to the link's other end
(`rules.bypass`). All rules that lead over the link name the group, so a port that goes down is healed for all
of them before the controller has heard of it.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from controller.model.journal import JournaledDict
from controller.model.rules import Output, ToGroup, port_group_number

__all__ = ["Ways"]


class Ways(JournaledDict[tuple[str, str], int]):
    """The port of each node towards each neighbour, by (node, neighbour).

    Attributes:
        guarded: The pairs whose ports have a group.
    """

    guarded: Collection[tuple[str, str]] = frozenset()

    def action(self, node: str, following: str) -> Output | ToGroup:
        """Return what a rule of a node does to send packets to a neighbour."""
        port = self[node, following]
        return to_group(port) if (node, following) in self.guarded else output(port)


@lru_cache(maxsize=1 << 12)
def output(port: int) -> Output:
    """Return the action that sends packets out of a port, the same object each time."""
    return Output(port)


@lru_cache(maxsize=1 << 12)
def to_group(port: int) -> ToGroup:
    """Return the action that leads to a port's group, the same object each time."""
    return ToGroup(port_group_number(port))
