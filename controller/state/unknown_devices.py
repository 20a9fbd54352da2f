"""Switches and links that the topology file does not have: faults to report, and not used."""

from __future__ import annotations

from collections.abc import Mapping

from controller.model.journal import Journaled, JournaledDict, JournaledSet

_Port = tuple[int, int]  # datapath id, port number

_MAX = 64
"""Switches, and ports with links, that are kept at most."""


class UnknownDevices(Journaled):
    """Keeps unknown switches and links, up to `_MAX` of each.

    Attributes:
        switches: Those that are connected.
        links: By the port where one ends: the one where it was last seen to begin.
    """

    def __init__(self, switches: Mapping[int, str]) -> None:
        self._names = switches
        self.switches: JournaledSet[int] = JournaledSet()
        self.links: JournaledDict[_Port, _Port] = JournaledDict()

    def add_switch(self, datapath_id: int) -> None:
        """Note that a switch is connected."""
        if len(self.switches) < _MAX:
            self.switches.add(datapath_id)

    def add_link(self, tail: _Port, head: _Port) -> str | None:
        """Note that discovery saw a link; returns the fault as a sentence, unless there are too many."""
        if head not in self.links and len(self.links) >= _MAX:
            return None
        self.links[head] = tail
        return self._link(tail, head)

    def forget_port(self, port: _Port) -> None:
        """Forget the links at a port, whichever end it is."""
        for head, tail in list(self.links.items()):
            if port in (head, tail):
                del self.links[head]

    def faults(self) -> tuple[str, ...]:
        """Return all as sentences."""
        switches = [
            f"A switch with datapath id {datapath_id} is connected that is not in the topology file; "
            "it is not used."
            for datapath_id in sorted(self.switches)
        ]
        return (*switches, *(self._link(tail, head) for head, tail in sorted(self.links.items())))

    def _link(self, tail: _Port, head: _Port) -> str:
        return (
            f"A link from {self._describe(tail)} to {self._describe(head)} was found but is not in the "
            "topology file; it is not used."
        )

    def _describe(self, end: _Port) -> str:
        return f"{self._names.get(end[0], f'datapath {end[0]}')} port {end[1]}"
