"""How a switch forwards to a neighbour: out of a port, or by a group with a bypass.

Each port towards another switch has a fast-failover group. Its first bucket is the port, watched by the
switch itself; its second, where the network has one, is the bypass to the link's other end
(`compile.bypass`). All rules that lead over the link name the group, so a port that goes down is healed for
all of them before the controller has heard of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from controller.model.journal import JournaledDict
from controller.model.labels import LabelFormat
from controller.model.rules import Output, ToGroup, port_group_number


class NextHops(JournaledDict[tuple[str, str], int]):
    """The port of each node towards each neighbour, by (node, neighbour).

    Attributes:
        guarded: The pairs whose ports have a group.
        numbers: What labels call each neighbour of a switch that is a switch, by (switch, neighbour).
        format: Of labels.
        tags: The VLAN of each host that has one, by (switch, host).
        ingress_actions: What ingresses do with packets of a path, as `compile.pinned` has made it before.
    """

    guarded: Collection[tuple[str, str]] = frozenset()
    numbers: Mapping[tuple[str, str], int] = {}
    format = LabelFormat(1)
    tags: Mapping[tuple[str, str], int] = {}

    def __init__(self, ports: Mapping[tuple[str, str], int] | None = None) -> None:
        super().__init__(ports or {})
        self.ingress_actions: dict[tuple[object, ...], Output | ToGroup] = {}

    def __setitem__(self, link: tuple[str, str], port: int) -> None:
        super().__setitem__(link, port)
        self.ingress_actions.clear()

    def number_links(self, links: Iterable[tuple[str, str]]) -> None:
        """Number the neighbours of each switch, in the order of the (switch, neighbour) given."""
        degrees: dict[str, int] = {}
        numbers: dict[tuple[str, str], int] = {}
        for link in links:
            numbers[link] = degrees[link[0]] = degrees.get(link[0], 0) + 1
        self.numbers, self.format = numbers, LabelFormat.of_degree(max(degrees.values(), default=0))

    def action(self, node: str, following: str) -> Output | ToGroup:
        """Return what a rule of a node does to send packets to a neighbour."""
        return self.labelled(node, following, None)

    def labelled(
        self, node: str, following: str, label: str | None, source_mac: str | None = None
    ) -> Output | ToGroup:
        """Return what sends packets to a neighbour with a label, and another Ethernet source if given."""
        port = self[node, following]
        if (node, following) in self.guarded:
            return _to_group(port, label, source_mac)
        return _output(port, label, source_mac, self.tags.get((node, following)))


@lru_cache(maxsize=1 << 14)
def _output(port: int, label: str | None, source_mac: str | None, tag: int | None) -> Output:
    """Return an action, the same object each time."""
    return Output(port, source_mac, destination_mac=label, tag=tag)


@lru_cache(maxsize=1 << 14)
def _to_group(port: int, label: str | None, source_mac: str | None) -> ToGroup:
    return ToGroup(port_group_number(port), source_mac, label)
