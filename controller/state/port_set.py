"""A set of ports that finds those of one switch without looking at all others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from controller.model.journal import JournaledDict, JournaledSet

_Port = tuple[int, int]  # datapath id, port number


class PortSet:
    """Pairs of a datapath id and a port number; changes are undone when the event that made them fails."""

    def __init__(self) -> None:
        self._by_switch: JournaledDict[int, JournaledSet[int]] = JournaledDict()

    def __contains__(self, port: _Port) -> bool:
        numbers = self._by_switch.get(port[0])
        return numbers is not None and port[1] in numbers

    def __iter__(self) -> Iterator[_Port]:
        return ((switch, number) for switch, numbers in self._by_switch.items() for number in numbers)

    def add_all(self, ports: Iterable[_Port]) -> None:
        """Add several ports."""
        for port in ports:
            self.add(port)

    def add(self, port: _Port) -> None:
        """Add a port."""
        self._by_switch.setdefault(port[0], JournaledSet()).add(port[1])

    def discard(self, port: _Port) -> None:
        """Remove a port if it is there."""
        numbers = self._by_switch.get(port[0])
        if numbers is not None:
            numbers.discard(port[1])

    def of(self, datapath_id: int) -> list[_Port]:
        """Return those of one switch."""
        return [(datapath_id, number) for number in self._by_switch.get(datapath_id, ())]
