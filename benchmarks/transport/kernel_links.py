"""Links made of netem and redirection: a packet costs less in a virtual kernel than in the link emulator."""

from __future__ import annotations

from benchmarks.transport.network import Shape
from topologies.commands import run

FRAME_BITS = 1514 * 8


class KernelLinks:
    """Makes links of pairs of network interfaces, as `LinkEmulator` does.

    netem counts the packets on their way among those that wait: its limit is larger by what the delay holds.
    """

    def add(self, wire: str, a: str, b: str, a_to_b: Shape, b_to_a: Shape) -> None:
        """Make a link; each shape has rate_bps, delay_us, queue_packets, and may have loss and jitter_us."""
        del wire
        for interface in (a, b):
            _run(f"ip link set {interface} up")
        for source, target, shape in ((a, b, a_to_b), (b, a, b_to_a)):
            rate_bps, delay_us, queue_packets = (
                float(str(shape[key])) for key in ("rate_bps", "delay_us", "queue_packets")
            )
            loss, jitter_us = (float(str(shape.get(key, 0))) for key in ("loss", "jitter_us"))
            on_their_way = rate_bps * (delay_us + jitter_us) * 1e-6 / FRAME_BITS
            limit = queue_packets + on_their_way + 1
            _run(
                f"tc qdisc add dev {target} root handle 1: netem rate {rate_bps:.0f}bit "
                f"delay {delay_us + jitter_us / 2:.0f}us {jitter_us / 2:.0f}us loss {100 * loss:g}% "
                f"limit {limit:.0f}"
            )
            if jitter_us:
                # Its own queue is sorted by time, which reorders packets.
                _run(f"tc qdisc add dev {target} parent 1:1 pfifo limit {limit:.0f}")
            _run(f"tc qdisc add dev {source} clsact")
            _run(f"tc filter add dev {source} ingress matchall action mirred egress redirect dev {target}")

    def remove(self, wire: str) -> None:
        """Do nothing: a link ends with its interfaces."""


def _run(command: str) -> None:
    run(command.split())
