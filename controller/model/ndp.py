"""Neighbour discovery of IPv6 (RFC 4861), as bytes in and bytes out: solicitations and advertisements."""

from __future__ import annotations

import struct
from ipaddress import IPv6Address

from controller.model.neighbour import NO_IP6, PROBER_MAC, NeighbourMessage, mac_bytes
from controller.model.rules import ETH_TYPE_IPV6, ICMPV6_NEIGHBOUR_TYPES, IP_PROTO_ICMPV6

_ETHERNET = struct.Struct("!6s6sH")
_IPV6 = struct.Struct("!IHBB16s16s")  # version, payload length, next header, hop limit, addresses
_MESSAGE = struct.Struct("!BBHI16s")  # type, code, checksum, flags, target
_PSEUDO = struct.Struct("!16s16sII")
_SOLICITATION, _ADVERTISEMENT = ICMPV6_NEIGHBOUR_TYPES
_VERSION_6 = 6 << 28
_MAX_HOPS = 255  # what is less has come over a router
_SOLICITED_AND_OVERRIDES = 0x6000_0000  # and of no router
_SOURCE_MAC, _TARGET_MAC = 1, 2  # options
_OPTION_UNIT = 8  # bytes
_SOLICITED_NODE = int(IPv6Address("ff02::1:ff00:0"))

PROBER_IP = "fe80::841:52ff:fe50:0"
"""Source address of the controller's probes, made of `PROBER_MAC`. A probe from no address would be duplicate
address detection, which makes a host that is choosing the address give it up."""


def parse(frame: bytes) -> NeighbourMessage | None:
    """Read an Ethernet frame; None if it is no message that RFC 4861 (7.1) lets a host believe."""
    if len(frame) < _ETHERNET.size + _IPV6.size + _MESSAGE.size:
        return None
    _, ethernet_source, eth_type = _ETHERNET.unpack_from(frame)
    version, length, protocol, hops, source, destination = _IPV6.unpack_from(frame, _ETHERNET.size)
    if (eth_type, version >> 28, protocol, hops) != (ETH_TYPE_IPV6, 6, IP_PROTO_ICMPV6, _MAX_HOPS):
        return None
    body = frame[_ETHERNET.size + _IPV6.size :][:length]
    if not _MESSAGE.size <= length == len(body) or _checksum(source, destination, body):
        return None
    kind, code, _, _, target = _MESSAGE.unpack_from(body)
    options = _options(body[_MESSAGE.size :])
    if kind not in ICMPV6_NEIGHBOUR_TYPES or code or options is None or IPv6Address(target).is_multicast:
        return None
    if kind == _ADVERTISEMENT:
        mac, told = options.get(_TARGET_MAC, ethernet_source), IPv6Address(destination)
        is_told = not told.is_multicast
        return NeighbourMessage(
            False, mac.hex(":"), str(IPv6Address(target)), str(told) if is_told else NO_IP6
        )
    if not any(source) and (_SOURCE_MAC in options or destination != _solicited_node(target)):
        return None
    mac = options.get(_SOURCE_MAC, ethernet_source)
    return NeighbourMessage(True, mac.hex(":"), str(IPv6Address(source)), str(IPv6Address(target)))


def build_reply(request: NeighbourMessage, mac: str) -> bytes:
    """Return the frame that tells the asker that the target, which is no router, has this MAC address."""
    target, asker = IPv6Address(request.target_ip).packed, IPv6Address(request.sender_ip).packed
    body = _MESSAGE.pack(_ADVERTISEMENT, 0, 0, _SOLICITED_AND_OVERRIDES, target) + _option(_TARGET_MAC, mac)
    return _frame(mac, request.sender_mac, target, asker, body)


def build_probe(target_ip: str, mac: str | None = None) -> bytes:
    """Return the frame that asks who has an address, one MAC address or all that may have it."""
    target = IPv6Address(target_ip).packed
    group = _solicited_node(target)
    body = _MESSAGE.pack(_SOLICITATION, 0, 0, 0, target) + _option(_SOURCE_MAC, PROBER_MAC)
    to_mac = mac or f"33:33:{group[-4:].hex(':')}"
    return _frame(PROBER_MAC, to_mac, IPv6Address(PROBER_IP).packed, target if mac else group, body)


def _solicited_node(target: bytes) -> bytes:
    """Return the group of all hosts whose addresses end as one does (RFC 4291, 2.7.1)."""
    return IPv6Address(_SOLICITED_NODE | int.from_bytes(target[-3:], "big")).packed


def _options(data: bytes) -> dict[int, bytes] | None:
    """Read the MAC addresses in options; None if one is malformed."""
    found, place = {}, 0
    while place < len(data):
        size = data[place + 1] * _OPTION_UNIT if place + 1 < len(data) else 0
        if not size or place + size > len(data):
            return None
        found[data[place]] = data[place + 2 : place + _OPTION_UNIT]
        place += size
    return found


def _option(kind: int, mac: str) -> bytes:
    return bytes((kind, 1)) + mac_bytes(mac)


def _frame(mac: str, to_mac: str, source: bytes, destination: bytes, body: bytes) -> bytes:
    head = _ETHERNET.pack(mac_bytes(to_mac), mac_bytes(mac), ETH_TYPE_IPV6)
    head += _IPV6.pack(_VERSION_6, len(body), IP_PROTO_ICMPV6, _MAX_HOPS, source, destination)
    return head + body[:2] + _checksum(source, destination, body).to_bytes(2, "big") + body[4:]


def _checksum(source: bytes, destination: bytes, body: bytes) -> int:
    """Return the checksum of a message that has none yet; 0 if it has the right one (RFC 4443, 2.3)."""
    data = _PSEUDO.pack(source, destination, len(body), IP_PROTO_ICMPV6) + body + bytes(len(body) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
