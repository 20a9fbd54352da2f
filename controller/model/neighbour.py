"""What ARP and IPv6's neighbour discovery say alike: who has an address, and who asks for it."""

from __future__ import annotations

from dataclasses import dataclass

NO_IP, NO_IP6 = "0.0.0.0", "::"  # noqa: S104 (nobody's address)
PROBER_MAC = "0a:41:52:50:00:00"
"""Source of the controller's probes; switches send the answers to it as they send all."""
ALL_MACS = "ff:ff:ff:ff:ff:ff"


@dataclass(frozen=True)
class NeighbourMessage:
    """A question for a host's MAC address, or an answer; addresses as text.

    The target of an answer is who is told: no address where all are.
    """

    is_request: bool
    sender_mac: str
    sender_ip: str
    target_ip: str

    @property
    def is_probe(self) -> bool:
        """Whether it asks whether an address is in use, without having one (RFC 5227; RFC 4862, 5.4)."""
        return self.is_request and self.sender_ip in (NO_IP, NO_IP6)

    @property
    def answers_probe(self) -> bool:
        """Whether it tells one that has no address yet."""
        return not self.is_request and self.target_ip in (NO_IP, NO_IP6)


def mac_bytes(text: str) -> bytes:
    """Return a MAC address as bytes."""
    return bytes.fromhex(text.replace(":", ""))
