"""ARP for IPv4 over Ethernet (RFC 826), as bytes in and bytes out."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass

from controller.model.rules import ETH_TYPE_ARP

__all__ = ["ArpPacket", "build_reply", "parse"]

_ETHERNET = struct.Struct("!6s6sH")
_ARP = struct.Struct("!HHBBH6s4s6s4s")
_HARDWARE_ETHERNET = 1
_PROTOCOL_IPV4 = 0x0800
_REQUEST = 1
_REPLY = 2


@dataclass(frozen=True)
class ArpPacket:
    """An ARP request or reply; addresses as text."""

    is_request: bool
    sender_mac: str
    sender_ip: str
    target_ip: str


def parse(frame: bytes) -> ArpPacket | None:
    """Read an Ethernet frame; None if it is not a well-formed ARP packet for IPv4."""
    if len(frame) < _ETHERNET.size + _ARP.size:
        return None
    _, _, eth_type = _ETHERNET.unpack_from(frame)
    hardware, protocol, mac_length, ip_length, operation, mac, ip, _, target = _ARP.unpack_from(
        frame, _ETHERNET.size
    )
    expected = (ETH_TYPE_ARP, _HARDWARE_ETHERNET, _PROTOCOL_IPV4, 6, 4)
    if (eth_type, hardware, protocol, mac_length, ip_length) != expected:
        return None
    if operation not in (_REQUEST, _REPLY):
        return None
    return ArpPacket(
        is_request=operation == _REQUEST,
        sender_mac=mac.hex(":"),
        sender_ip=str(ipaddress.IPv4Address(ip)),
        target_ip=str(ipaddress.IPv4Address(target)),
    )


def build_reply(request: ArpPacket, mac: str) -> bytes:
    """Return the Ethernet frame that tells the asker that the target has this MAC address."""
    answer = bytes.fromhex(mac.replace(":", ""))
    asker = bytes.fromhex(request.sender_mac.replace(":", ""))
    return _ETHERNET.pack(asker, answer, ETH_TYPE_ARP) + _ARP.pack(
        _HARDWARE_ETHERNET,
        _PROTOCOL_IPV4,
        6,
        4,
        _REPLY,
        answer,
        ipaddress.IPv4Address(request.target_ip).packed,
        asker,
        ipaddress.IPv4Address(request.sender_ip).packed,
    )
