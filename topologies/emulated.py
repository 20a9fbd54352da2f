"""Links by the link emulator: a veth pair at each end, and one process that relays between all of them."""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Sequence
from typing import Any

from topologies.commands import disable_ipv6, interface_names, ip, remove_interfaces, run
from topologies.errors import EmulationError, LinkNotFaithful
from topologies.link_emulator import LinkEmulator
from topologies.model import Link
from topologies.wires import DirectionCounters, End, Lateness, Wire

Shape = dict[str, Any]
DIRECTIONS = ("a_to_b", "b_to_a")


class EmulatorBackend:
    """Makes links with one process of the link emulator.

    Args:
        seed: of loss and jitter, for which each direction of each link draws from a sequence of its own, and
            of Wi-Fi, for which each medium does.
        exact_clock: whether sleeps end on time, as in virtual time.

    Raises:
        EmulationError: the emulator is not built or does not start.
    """

    name = "emulator"

    def __init__(self, seed: int, exact_clock: bool = False) -> None:
        self._seed = seed
        self._carried: set[str] = set()
        self._emulator = LinkEmulator(exact_clock=exact_clock)

    def make(self, wires: Sequence[Wire]) -> None:
        """Make the two veth pairs of each wire."""
        before = interface_names()
        try:
            ip(_veth_line(*pair) for wire in wires for pair in zip(wire.ends, wire.relays, strict=True))
            here = [relay for wire in wires for relay in wire.relays]
            here += [end.interface for wire in wires for end in wire.ends if end.pid is None]
            disable_ipv6(here)
            ip(f"link set dev {interface} up" for interface in here)
        except BaseException:
            # What could not be made may be an interface that was there before.
            remove_interfaces(relay for wire in wires for relay in wire.relays if relay not in before)
            raise

    def shape(self, wire: Wire) -> None:
        """Give the wire to the emulator, unless it has it already."""
        if wire.link.name not in self._carried:
            a, b = wire.relays
            self._emulator.add(wire.link.name, a, b, **self._described(wire.link))
            self._carried.add(wire.link.name)

    def change(self, wire: Wire) -> None:
        """Tell the emulator; packets in flight stay."""
        if wire.link.wifi is not None:
            raise EmulationError(f"{wire.link.name} is a Wi-Fi link, which can only go down and up")
        told = self._described(wire.link)
        self._emulator.set(wire.link.name, a_to_b=told["a_to_b"], b_to_a=told["b_to_a"])

    def set_up(self, wire: Wire, up: bool, silent: bool) -> None:
        """Cut or restore the wire; the ends lose their carrier unless `silent`."""
        if up:
            ip(f"link set dev {relay} up" for relay in wire.relays)
        self._emulator.set(wire.link.name, up=up)
        if not up and not silent:
            ip(f"link set dev {relay} down" for relay in wire.relays)

    def check(self, wires: list[Wire]) -> None:
        """See that the emulator carries every wire both ways, and that its interfaces have a carrier."""
        carried = {(entry["wire"], entry["direction"]) for entry in self._statistics()}
        states = {
            entry["ifname"]: entry["operstate"] for entry in json.loads(run(["ip", "-j", "link", "show"]))
        }
        for wire in wires:
            if not all((wire.link.name, direction) in carried for direction in DIRECTIONS):
                raise LinkNotFaithful(wire.link.name, self.name, "the link emulator does not carry it")
            for relay in wire.relays:
                state = states.get(relay, "not there").lower()
                if state != "up":
                    raise LinkNotFaithful(wire.link.name, self.name, f"its interface {relay} is {state}")

    def counters(self, wires: list[Wire]) -> list[DirectionCounters]:
        """Read the emulator's counters; its lateness is that since the last reading."""
        entries = {(entry["wire"], entry["direction"]): entry for entry in self._statistics()}
        return [
            direction_counters(wire, index, entries[wire.link.name, direction])
            for wire in wires
            for index, direction in enumerate(DIRECTIONS)
        ]

    def describe(self, wire: Wire) -> list[str]:
        """Return what the emulator was told."""
        told = self._described(wire.link)
        return [
            f"link-emulator {wire.ends[index].node}->{wire.ends[1 - index].node}: "
            + " ".join(f"{key} {value}" for key, value in shape.items() if value is not None)
            for index, direction in enumerate(DIRECTIONS)
            for shape in [told[direction] if direction in told else told["wifi"]["link"]]
        ]

    def remove(self, wires: Sequence[Wire]) -> None:
        """Take the wires from the emulator and remove their veth pairs."""
        for wire in wires:
            if wire.link.name in self._carried:
                self._carried.discard(wire.link.name)
                # An emulator that has died carries nothing any more; its interfaces must go all the same.
                with contextlib.suppress(EmulationError):
                    self._emulator.remove(wire.link.name)
        remove_interfaces(relay for wire in wires for relay in wire.relays)

    def begin_close(self) -> None:
        """Tell the emulator to end."""
        self._carried.clear()
        self._emulator.begin_stop()

    def close(self) -> None:
        """End the emulator, and with it all it carries."""
        self._carried.clear()
        self._emulator.stop()

    def _described(self, link: Link) -> dict[str, Shape]:
        if link.wifi is None:
            return {direction: shape(link, self._seed, direction) for direction in DIRECTIONS}
        queue_packets = link.queue_packets
        told = {
            "stations": link.ends,
            "seed": self._seed,
            "queue_packets": queue_packets,
            "link": link.radio(),
        }
        return {"wifi": told}

    def _statistics(self) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self._emulator.stats()["directions"]
        return entries


def shape(link: Link, seed: int, direction: str) -> Shape:
    """Return what the emulator is told about one direction of a link (docs/architecture.md).

    Args:
        link: the link.
        seed: of the run.
        direction: `a_to_b` or `b_to_a`.
    """
    return {
        "rate_bps": link.rate_bps,
        "delay_us": link.delay_us,
        "queue_packets": link.queue_packets,
        "queue_bytes": link.queue_bytes,
        "loss": link.loss,
        "jitter_us": link.jitter_us,
        "seed": zlib.crc32(f"{seed}/{link.name}/{direction}".encode()),
    }


def direction_counters(wire: Wire, index: int, entry: dict[str, Any]) -> DirectionCounters:
    """Return an entry of the emulator's statistics as counters of direction `index` of a link."""
    late = entry.get("lateness_us") or {}
    return DirectionCounters(
        link=wire.link.name,
        tail=wire.ends[index].node,
        head=wire.ends[1 - index].node,
        packets=entry["packets"],
        bytes=entry["bytes"],
        dropped=entry["dropped_queue"],
        lost=entry["dropped_loss"] + entry["dropped_down"],
        dropped_by_machine=entry["dropped_receive"] + entry["dropped_send"],
        queued_packets=entry["queued_packets"],
        queued_bytes=entry["queued_bytes"],
        lateness=Lateness(late["mean"], late["p50"], late["p99"], late["max"]) if late else None,
    )


def _veth_line(end: End, relay: str) -> str:
    """Return the line of `ip` that makes a relay with a node's interface as its other end."""
    place = "" if end.pid is None else f" netns {end.pid}"
    return f"link add name {relay} type veth peer name {end.interface} address {end.mac}{place}"
