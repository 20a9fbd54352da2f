"""Reads where an IPv4 packet goes (RFC 791)."""

from __future__ import annotations

import ipaddress

from controller.model.rules import ETH_TYPE_IPV4

_ETHERNET_BYTES, _HEADER_BYTES, _DESTINATION_AT = 14, 20, 16


def destination_of(frame: bytes) -> str | None:
    """Return the destination address of an Ethernet frame; None if it is no IPv4 packet."""
    if frame[12:14] != ETH_TYPE_IPV4.to_bytes(2, "big") or len(frame) < _ETHERNET_BYTES + _HEADER_BYTES:
        return None
    start = _ETHERNET_BYTES + _DESTINATION_AT
    return str(ipaddress.IPv4Address(frame[start : start + 4]))
