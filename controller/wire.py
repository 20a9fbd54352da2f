"""Wire accounting: how much of a link a goodput takes, and back.

Requests and answers are goodput (application bytes); links and the linear programme count whole Ethernet
frames. A full segment is one frame of `packet_bytes`, of which `segment_overhead_bytes` are Ethernet, IP and
TCP headers. An MSTCP frame spends `IDENTIFIER_BYTES` more on its 64-bit identifier (paper, section II); a
flow over one path is plain TCP and spends none, nor does one of UDP. With the paper's 590-byte packets, 10
Mbit/s of wire carry 10 * 528 / 590 = 8.95 Mbit/s over several paths and 10 * 536 / 590 = 9.08 over one.

    wire     =  goodput * packet_bytes / (packet_bytes - segment_overhead_bytes - identifier)
    ACKs     =  wire * ack_ratio              on the reverse path
    ack_ratio = ack_bytes / (packets_per_ack * packet_bytes)   of IPv4; of IPv6 more, as headers are longer
    for flows =  capacity * (1 - reserved_share)

A share of every link can be kept from flows, for traffic without an allocation: routing protocols, DNS, the
control channel, hosts that do not ask.
"""

from __future__ import annotations

from dataclasses import dataclass

from topologies.model import IpVersion

IDENTIFIER_BYTES = 8

_HEADER_BYTES = {"tcp": 54, "udp": 42}
_MORE_BYTES: dict[IpVersion, int] = {4: 0, 6: 20}
_ACK_SCALES: dict[IpVersion, float] = {4: 1.0, 6: (54 + 20) / 54}

DEFAULT_ACK_RATIO = 0.0458
"""Load of the ACKs on the reverse path per bit of data: one of 54 bytes for two 590-byte packets."""


def header_bytes(protocol: str, version: IpVersion) -> int:
    """Return how many bytes Ethernet, IP and a protocol above it put before data, without options."""
    return _HEADER_BYTES[protocol] + _MORE_BYTES[version]


def allocatable_bps(capacity_bps: float, reserved_share: float) -> float:
    """Return what flows may take of a link's wire rate beside the share reserved for default traffic."""
    return capacity_bps * (1 - reserved_share)


@dataclass(frozen=True)
class Framing:
    """How a flow's bytes are put on the wire.

    Attributes:
        packet_bytes: Ethernet frame of a full segment, without checksum.
        segment_overhead_bytes: Ethernet, IP and TCP (or UDP) headers and options in it.
        identifier_bytes: In each packet of a flow over several paths.
        ip_version: Whose headers these are.
    """

    packet_bytes: int = 1514
    segment_overhead_bytes: int = 54
    identifier_bytes: int = IDENTIFIER_BYTES
    ip_version: IpVersion = 4

    @property
    def ack_scale(self) -> float:
        """How much larger its acknowledgements are than those of IPv4."""
        return _ACK_SCALES[self.ip_version]

    def wire_per_goodput(self, streams: int) -> float:
        """Return the wire rate of a goodput of 1 bit/s over a number of streams (one: plain TCP).

        Raises:
            ValueError: if no application byte fits into a packet.
        """
        payload = (
            self.packet_bytes - self.segment_overhead_bytes - (self.identifier_bytes if streams > 1 else 0)
        )
        if payload <= 0:
            raise ValueError(
                f"packets of {self.packet_bytes} bytes hold no application data beside "
                f"{self.packet_bytes - payload} bytes of headers"
            )
        return self.packet_bytes / payload

    def wire_bps(self, goodput_bps: float, streams: int) -> float:
        """Return the wire rate (bit/s) that a goodput needs over a number of streams."""
        return goodput_bps * self.wire_per_goodput(streams)

    def ack_ratio(self, ack_bytes: int = 54, packets_per_ack: int = 2) -> float:
        """Return the load of acknowledgements per bit of data on the wire.

        Args:
            ack_bytes: Ethernet frame of an acknowledgement.
            packets_per_ack: Full segments that each acknowledges; 2 with delayed ACKs (RFC 5681, 4.2).
        """
        return ack_bytes / (packets_per_ack * self.packet_bytes)

    def goodput_bps(self, wire_bps: float, streams: int) -> float:
        """Return the goodput (bit/s) that a wire rate carries over a number of streams."""
        return wire_bps / self.wire_per_goodput(streams)


def framing_of(
    protocol: str, packet_bytes: int, segment_overhead_bytes: int, version: IpVersion = 4
) -> Framing:
    """Return how the bytes of a flow of TCP (MSTCP, where there are several paths) or UDP are framed."""
    identifier_bytes = IDENTIFIER_BYTES if protocol == "tcp" else 0
    return Framing(packet_bytes, segment_overhead_bytes, identifier_bytes, version)
