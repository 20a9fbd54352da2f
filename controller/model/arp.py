"""ARP for IPv4 over Ethernet (RFC 826), as bytes in and bytes out."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass

from controller.model.rules import ETH_TYPE_ARP

_ETHERNET = struct.Struct("!6s6sH")
_ARP = struct.Struct("!HHBBH6s4s6s4s")
_HARDWARE_ETHERNET = 1
_PROTOCOL_IPV4 = 0x0800
_REQUEST = 1
_REPLY = 2
NO_ADDRESS = str(ipaddress.IPv4Address(0))
_PROBER_MAC = "0a:41:52:50:00:00"  # of the controller: answers to it come back as all ARP does
_BROADCAST = "ff:ff:ff:ff:ff:ff"


@dataclass(frozen=True)
class ArpPacket:
    """An ARP request or reply; addresses as text."""

    is_request: bool
    sender_mac: str
    sender_ip: str
    target_ip: str

    @property
    def is_probe(self) -> bool:
        """Whether it asks for an address without having one (RFC 5227)."""
        return self.is_request and self.sender_ip == NO_ADDRESS


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
    return _frame(
        _REPLY, (mac, request.target_ip), (request.sender_mac, request.sender_ip), request.sender_mac
    )


def build_probe(target_ip: str, mac: str = _BROADCAST) -> bytes:
    """Return the frame that asks who has an address, to one MAC address or to all, and claims none itself."""
    return _frame(_REQUEST, (_PROBER_MAC, NO_ADDRESS), ("00:00:00:00:00:00", target_ip), mac)


def _frame(operation: int, sender: tuple[str, str], target: tuple[str, str], to_mac: str) -> bytes:
    ends = [part for mac, ip in (sender, target) for part in (_mac(mac), ipaddress.IPv4Address(ip).packed)]
    head = _ETHERNET.pack(_mac(to_mac), _mac(sender[0]), ETH_TYPE_ARP)
    return head + _ARP.pack(_HARDWARE_ETHERNET, _PROTOCOL_IPV4, 6, 4, operation, *ends)


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))
