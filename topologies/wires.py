"""What a link is made of on this machine, and what a way of making links (a backend) has to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from topologies.model import Link

ETHERNET_HEADER_BYTES = 14


@dataclass(frozen=True)
class End:
    """One end of a link: an interface in the namespace of a process (None: the current one)."""

    node: str
    interface: str
    mac: str
    pid: int | None


@dataclass(frozen=True)
class Wire:
    """A link as it is built. `relays` are two more interfaces for a backend that carries packets itself."""

    link: Link
    ends: tuple[End, End]
    relays: tuple[str, str]

    def with_link(self, link: Link) -> Wire:
        """Return the same wire with other settings."""
        return Wire(link, self.ends, self.relays)


@dataclass(frozen=True)
class Lateness:
    """How much later than they should packets left a link, in microseconds, since the last reading."""

    mean_us: float
    p50_us: float
    p99_us: float
    max_us: float


@dataclass(frozen=True)
class DirectionCounters:
    """What one direction of a link has carried since it was built.

    `dropped` counts what found the queue full, `lost` what the link's loss took or found the link cut (None
    where a backend counts all of it as dropped). `dropped_by_machine` counts what the machine was too slow
    for: anything above 0 makes a run invalid.
    """

    link: str
    tail: str
    head: str
    packets: int
    bytes: int
    dropped: int
    lost: int | None
    dropped_by_machine: int
    queued_packets: int
    queued_bytes: int
    lateness: Lateness | None


class LinkBackend(Protocol):
    """A way of making links. One object serves all links of a network."""

    name: str

    def make(self, wires: Sequence[Wire]) -> None:
        """Make the interfaces of links, up on the side of the switches.

        Raises:
            EmulationError: one can't be made, or would not be what was asked for; nothing of them remains.
        """

    def shape(self, wire: Wire) -> None:
        """Give the link rate, delay, queue, loss and jitter; again after the ports joined their switches."""

    def change(self, wire: Wire) -> None:
        """Bring new settings of a link that is there into force."""

    def set_up(self, wire: Wire, up: bool, silent: bool) -> None:
        """Cut or restore a link; `silent` keeps the carrier, so that only missing packets tell."""

    def check(self, wires: list[Wire]) -> None:
        """Read links back.

        Raises:
            LinkNotFaithful: one is not what was asked for.
        """

    def counters(self, wires: list[Wire]) -> list[DirectionCounters]:
        """Return both directions of all links, in order."""

    def describe(self, wire: Wire) -> list[str]:
        """Return how the link is made, one line for each direction."""

    def remove(self, wires: Sequence[Wire]) -> None:
        """Remove what `make` made, as far as it is still there."""

    def begin_close(self) -> None:
        """Tell what the backend itself runs to end, without waiting: no link works from then on."""

    def close(self) -> None:
        """End what the backend itself runs."""
