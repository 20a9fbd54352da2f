"""ARP for IPv4 over Ethernet (RFC 826), as bytes in and bytes out."""

from __future__ import annotations

import ipaddress
import struct

from controller.model.neighbour import ALL_MACS, NO_IP, PROBER_MAC, NeighbourMessage, mac_bytes
from controller.model.rules import ETH_TYPE_ARP, ETH_TYPE_IPV4

_ETHERNET = struct.Struct("!6s6sH")
_ARP = struct.Struct("!HHBBH6s4s6s4s")
_HARDWARE_ETHERNET = 1
_REQUEST = 1
_REPLY = 2


def parse(frame: bytes) -> NeighbourMessage | None:
    """Read an Ethernet frame; None if it is not a well-formed ARP packet for IPv4."""
    if len(frame) < _ETHERNET.size + _ARP.size:
        return None
    _, _, eth_type = _ETHERNET.unpack_from(frame)
    hardware, protocol, mac_length, ip_length, operation, mac, ip, _, target = _ARP.unpack_from(
        frame, _ETHERNET.size
    )
    expected = (ETH_TYPE_ARP, _HARDWARE_ETHERNET, ETH_TYPE_IPV4, 6, 4)
    if (eth_type, hardware, protocol, mac_length, ip_length) != expected:
        return None
    if operation not in (_REQUEST, _REPLY):
        return None
    return NeighbourMessage(
        is_request=operation == _REQUEST,
        sender_mac=mac.hex(":"),
        sender_ip=str(ipaddress.IPv4Address(ip)),
        target_ip=str(ipaddress.IPv4Address(target)),
    )


def build_reply(request: NeighbourMessage, mac: str) -> bytes:
    """Return the Ethernet frame that tells the asker that the target has this MAC address."""
    return _frame(
        _REPLY, (mac, request.target_ip), (request.sender_mac, request.sender_ip), request.sender_mac
    )


def build_probe(target_ip: str, mac: str | None = None) -> bytes:
    """Return the frame that asks who has an address, one MAC address or all, and claims none itself."""
    return _frame(_REQUEST, (PROBER_MAC, NO_IP), ("00:00:00:00:00:00", target_ip), mac or ALL_MACS)


def _frame(operation: int, sender: tuple[str, str], target: tuple[str, str], to_mac: str) -> bytes:
    ends = [
        part for mac, ip in (sender, target) for part in (mac_bytes(mac), ipaddress.IPv4Address(ip).packed)
    ]
    head = _ETHERNET.pack(mac_bytes(to_mac), mac_bytes(sender[0]), ETH_TYPE_ARP)
    return head + _ARP.pack(_HARDWARE_ETHERNET, ETH_TYPE_IPV4, 6, 4, operation, *ends)
