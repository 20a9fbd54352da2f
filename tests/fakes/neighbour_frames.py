"""What hosts send of ARP and of neighbour discovery, made without the controller's own code."""

from __future__ import annotations

import socket
import struct
from ipaddress import IPv6Address

from os_ken.lib.packet import ethernet, icmpv6, ipv6
from os_ken.lib.packet.packet import Packet

NOWHERE = "00:00:00:00:00:00"
ALL_NODES = "ff02::1"


def arp_frame(operation: int, mac: str, ip: str, target: str, to: str = NOWHERE) -> bytes:
    """Return an ARP request (1) or reply (2)."""
    macs = [bytes.fromhex(each.replace(":", "")) for each in (mac, to)]
    head = b"\xff" * 6 + macs[0] + struct.pack("!HHHBBH", 0x0806, 1, 0x0800, 6, 4, operation)
    return head + macs[0] + socket.inet_aton(ip) + macs[1] + socket.inet_aton(target)


def solicitation(mac: str, source: str, target: str, destination: str | None = None) -> bytes:
    """Return a neighbour solicitation; without a source it is one of duplicate address detection."""
    group = IPv6Address(int(IPv6Address("ff02::1:ff00:0")) | int(IPv6Address(target)) & 0xFFFFFF)
    option = None if source == "::" else icmpv6.nd_option_sla(hw_src=mac)
    message = icmpv6.nd_neighbor(dst=target, option=option)
    return _frame(mac, source, destination or str(group), icmpv6.ND_NEIGHBOR_SOLICIT, message)


def advertisement(mac: str, target: str, destination: str = ALL_NODES) -> bytes:
    """Return a neighbour advertisement, to one who has asked or to all."""
    flags = 3 if destination != ALL_NODES else 1
    message = icmpv6.nd_neighbor(res=flags, dst=target, option=icmpv6.nd_option_tla(hw_src=mac))
    return _frame(mac, target, destination, icmpv6.ND_NEIGHBOR_ADVERT, message)


def _frame(mac: str, source: str, destination: str, kind: int, message: icmpv6.nd_neighbor) -> bytes:
    packet = Packet()
    packet.add_protocol(ethernet.ethernet("33:33:00:00:00:01", mac, 0x86DD))
    packet.add_protocol(ipv6.ipv6(src=source, dst=destination, nxt=58, hop_limit=255))
    packet.add_protocol(icmpv6.icmpv6(type_=kind, data=message))
    packet.serialize()
    return bytes(packet.data)
