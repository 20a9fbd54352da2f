"""Switches and links that the topology file does not have: faults to report, and not used."""

from __future__ import annotations

from collections.abc import Mapping

from controller.model.journal import Journaled, JournaledDict, JournaledSet

_Port = tuple[int, int]  # datapath id, port number

_MAX = 64
"""Switches, and ports with links, that are kept."""


class Strangers(Journaled):
    """Remembers them, up to a number of each."""

    def __init__(self, switches: Mapping[int, str]) -> None:
        self._names = switches
        self._switches: JournaledSet[int] = JournaledSet()
        self._links: JournaledDict[_Port, _Port] = JournaledDict()  # by head: the tail last seen

    def add_switch(self, datapath_id: int) -> None:
        """Note that a switch is connected."""
        if len(self._switches) < _MAX:
            self._switches.add(datapath_id)

    def remove_switch(self, datapath_id: int) -> None:
        """Note that a switch has gone."""
        self._switches.discard(datapath_id)

    def add_link(self, tail: _Port, head: _Port) -> str | None:
        """Note that discovery saw a link; returns the fault as a sentence, unless there are too many."""
        if head not in self._links and len(self._links) >= _MAX:
            return None
        self._links[head] = tail
        return self._link(tail, head)

    def remove_link(self, tail: _Port, head: _Port) -> None:
        """Note that discovery sees a link no more."""
        if self.has_link(tail, head):
            del self._links[head]

    def has_link(self, tail: _Port, head: _Port) -> bool:
        """Return whether this link is known."""
        return self._links.get(head) == tail

    def leads_to(self, port: _Port) -> bool:
        """Return whether a link is known that ends at a port."""
        return port in self._links

    def forget_end(self, port: _Port) -> None:
        """Forget the link that ends at a port."""
        self._links.pop(port, None)

    def forget_port(self, port: _Port) -> None:
        """Forget the links at a port, whichever end it is."""
        for head, tail in list(self._links.items()):
            if port in (head, tail):
                del self._links[head]

    def faults(self) -> tuple[str, ...]:
        """Return all as sentences."""
        switches = [
            f"A switch with datapath id {datapath_id} is connected that is not in the topology file; "
            "it is not used."
            for datapath_id in sorted(self._switches)
        ]
        return (*switches, *(self._link(tail, head) for head, tail in sorted(self._links.items())))

    def _link(self, tail: _Port, head: _Port) -> str:
        return (
            f"A link from {self._describe(tail)} to {self._describe(head)} was found but is not in the "
            "topology file; it is not used."
        )

    def _describe(self, end: _Port) -> str:
        return f"{self._names.get(end[0], f'datapath {end[0]}')} port {end[1]}"
