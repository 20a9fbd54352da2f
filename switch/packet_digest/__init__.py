"""A digest of all packets and their times, kept by a BPF socket filter."""

from switch.packet_digest.digest import InterfaceDigest, PacketDigest

__all__ = ["InterfaceDigest", "PacketDigest"]
