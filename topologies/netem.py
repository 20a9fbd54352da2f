"""Links by the kernel: a netem queueing discipline at each end of a veth pair.

netem keeps a virtual clock: with `rate` each packet leaves after the one before it, and after its own
serialisation and the delay. That is a link to the nanosecond, where a token bucket (tbf, htb) lets the first
packets after a pause pass at once. Its one limit counts the packets in propagation too, so a queue of N
packets becomes N plus what the link holds at its full rate.

A host's TCP hands several segments to its interface as one packet (GSO), which netem would delay and drop as
one. There a token bucket that is always full stands above it: it cuts what is longer than a frame.

netem draws losses and jitter from the kernel's random numbers, which take no seed before Linux 6.6: runs with
loss differ from each other here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from switch.capabilities import probe_link_qdiscs
from topologies.commands import disable_ipv6, ip, remove_interface, run, within
from topologies.errors import LinkNotFaithful
from topologies.model import Link
from topologies.wires import DirectionCounters, End, Wire

UNLIMITED_PACKETS = 10_000_000
TBF_RATE = "1tbit"
"""More than any link has: the bucket holds nothing back."""
TIME_STEP_S = 2e-6 + 64e-9
"""tc cuts times to whole microseconds, then to ticks of 64 ns, and what it shows to microseconds again: of
100 us it makes 99.968 and shows 99."""
RATE_STEP_BPS = 8
"""tc shows rates in whole bytes per second."""
LOSS_STEP = 1e-9
"""tc is told losses with seven digits of a per cent, and the kernel keeps 32 bits."""
PRINTED_DIGITS = 1e-5
"""tc prints six digits of a number that is not whole."""


class NetemBackend:
    """Makes links of veth pairs with netem.

    Args:
        frame_bytes: size of a full Ethernet frame, by which queues are converted.

    Raises:
        LinkNotFaithful: the kernel has no netem, or no tbf.
    """

    name = "netem"

    def __init__(self, frame_bytes: int) -> None:
        self._frame_bytes = frame_bytes
        for qdisc in probe_link_qdiscs():
            if not qdisc.available:
                reason = f"{qdisc.detail}: {qdisc.remedy}, or use the link emulator (link_backend=emulator)"
                raise LinkNotFaithful("all links", self.name, reason)

    def make(self, wires: Sequence[Wire]) -> None:
        """Make a veth pair between the two nodes of each."""
        made: list[Wire] = []
        try:
            for wire in wires:
                a, b = (_veth_end(end) for end in wire.ends)
                ip([f"link add {a} type veth peer {b}"])
                made.append(wire)
            outside = [end.interface for wire in wires for end in wire.ends if end.pid is None]
            disable_ipv6(outside)
            ip(f"link set dev {interface} up" for interface in outside)
        except BaseException:
            self.remove(made)
            raise

    def shape(self, wire: Wire) -> None:
        """Put netem on both ends."""
        self._replace(wire, netem_options(wire.link, self._frame_bytes))

    def change(self, wire: Wire) -> None:
        """Change netem on both ends; packets in flight stay."""
        self._replace(wire, netem_options(wire.link, self._frame_bytes))
        self.check([wire])

    def set_up(self, wire: Wire, up: bool, silent: bool) -> None:
        """Take the ends down, or lose every packet."""
        if silent and not up:
            self._replace(wire, ["limit", str(UNLIMITED_PACKETS), "loss", "random", "100%"])
            return
        for end in wire.ends:
            ip([f"link set dev {end.interface} {'up' if up else 'down'}"], end.pid)
        if up:
            self.shape(wire)

    def check(self, wires: list[Wire]) -> None:
        """Compare the queueing disciplines with what was asked for."""
        netems = _netems(wires)
        for wire in wires:
            for end in wire.ends:
                netem = _netem(netems, end)
                problem = netem_difference(netem, wire.link, self._frame_bytes)
                if not problem and _segments(end) and netem.get("root"):
                    problem = "no tbf above its netem"
                if problem:
                    raise LinkNotFaithful(wire.link.name, self.name, f"{end.interface} has {problem}")

    def counters(self, wires: list[Wire]) -> list[DirectionCounters]:
        """Read the counters of the queueing disciplines."""
        netems = _netems(wires)
        return [_direction(netems, wire, index) for wire in wires for index in (0, 1)]

    def describe(self, wire: Wire) -> list[str]:
        """Return the lines of `tc qdisc show`."""
        return [run(within(e.pid, ["tc", "qdisc", "show", "dev", e.interface])).strip() for e in wire.ends]

    def remove(self, wires: Sequence[Wire]) -> None:
        """Remove the veth pairs; either end takes the other with it."""
        for wire in wires:
            first = wire.ends[0]
            remove_interface(first.interface, first.pid)

    def begin_close(self) -> None:
        """Nothing runs besides the kernel."""

    def close(self) -> None:
        """Nothing runs besides the kernel."""

    def _replace(self, wire: Wire, options: list[str]) -> None:
        for end in wire.ends:
            lines, parent = [], "root"
            if _segments(end):
                bucket = f"rate {TBF_RATE} burst {self._frame_bytes} limit {self._frame_bytes}"
                lines, parent = [f"root handle 1: tbf {bucket}"], "parent 1:1"
            lines.append(f"{parent} handle 2: netem {' '.join(options)}")
            batch = "".join(f"qdisc replace dev {end.interface} {line}\n" for line in lines)
            run(within(end.pid, ["tc", "-batch", "-"]), batch)


def _segments(end: End) -> bool:
    """Return whether packets of several segments come to an end: to a host's, in a namespace of its own."""
    return end.pid is not None


_Netems: TypeAlias = dict[tuple[int | None, str], dict[str, Any]]
"""netem's entries in `tc -j -s qdisc show` by the process that holds the namespace, and the interface."""


def _netems(wires: list[Wire]) -> _Netems:
    """Return the netems at the ends of links, asked for once in each namespace."""
    netems: _Netems = {}
    for pid in dict.fromkeys(end.pid for wire in wires for end in wire.ends):
        text = run(within(pid, ["tc", "-j", "-s", "qdisc", "show"]))
        shown = json.loads(text or "[]")
        netems.update({(pid, each["dev"]): each for each in shown if each["kind"] == "netem"})
    return netems


def _netem(netems: _Netems, end: End) -> dict[str, Any]:
    return netems.get((end.pid, end.interface), {"kind": "another qdisc"})


def _direction(netems: _Netems, wire: Wire, index: int) -> DirectionCounters:
    tail, head = wire.ends[index], wire.ends[1 - index]
    netem = _netem(netems, tail)
    return DirectionCounters(
        link=wire.link.name,
        tail=tail.node,
        head=head.node,
        packets=netem.get("packets", 0),
        bytes=netem.get("bytes", 0),
        dropped=netem.get("drops", 0),
        lost=None,
        dropped_by_machine=0,
        queued_packets=netem.get("qlen", 0),
        queued_bytes=netem.get("backlog", 0),
        lateness=None,
    )


def _veth_end(end: End) -> str:
    place = "" if end.pid is None else f" netns {end.pid}"
    return f"name {end.interface} address {end.mac}{place}"


def netem_limit(link: Link, frame_bytes: int) -> int:
    """Return netem's limit in packets: the queue and what is in propagation at the full rate.

    Raises:
        LinkNotFaithful: the queue is bounded in bytes.
    """
    if link.queue_bytes is not None:
        reason = "netem bounds no queue in bytes: take the link emulator (link_backend=emulator)"
        raise LinkNotFaithful(link.name, NetemBackend.name, reason)
    if link.queue_packets is None:
        return UNLIMITED_PACKETS
    propagating = math.ceil(link.rate_bps * (link.delay_us + link.jitter_us) * 1e-6 / (8 * frame_bytes))
    return link.queue_packets + propagating


def netem_options(link: Link, frame_bytes: int) -> list[str]:
    """Return the options of `tc ... netem` for one direction of a link (tc-netem(8)).

    Args:
        link: the link.
        frame_bytes: size of a full Ethernet frame.
    """
    options = ["limit", str(netem_limit(link, frame_bytes)), "delay", f"{link.delay_us:.3f}us"]
    if link.jitter_us:
        options.append(f"{link.jitter_us:.3f}us")
    if link.loss:
        options += ["loss", "random", f"{link.loss * 100:.7f}%"]
    return [*options, "rate", f"{round(link.rate_bps)}bit"]


def netem_difference(qdisc: dict[str, Any], link: Link, frame_bytes: int) -> str | None:
    """Return what about a queueing discipline is not what was asked for; None if it is.

    Args:
        qdisc: an entry of `tc -j qdisc show`.
        link: what was asked for.
        frame_bytes: size of a full Ethernet frame.
    """
    if qdisc.get("kind") != "netem":
        return f"{qdisc.get('kind')} instead of netem"
    options = qdisc.get("options", {})
    delay = options.get("delay", {})
    # tc prints rates in bytes per second and times in seconds.
    settings = {
        "limit": (options.get("limit", 0), netem_limit(link, frame_bytes), 0),
        "rate (bit/s)": (options.get("rate", {}).get("rate", 0) * 8, link.rate_bps, RATE_STEP_BPS),
        "delay (s)": (delay.get("delay", 0), link.delay_us * 1e-6, TIME_STEP_S),
        "jitter (s)": (delay.get("jitter", 0), link.jitter_us * 1e-6, TIME_STEP_S),
        "loss": (options.get("loss-random", {}).get("loss", 0), link.loss, LOSS_STEP),
    }
    for name, (is_now, asked, step) in settings.items():
        if abs(is_now - asked) > step + PRINTED_DIGITS * abs(asked):
            return f"{name} {is_now:g} instead of {asked:g}"
    return None
