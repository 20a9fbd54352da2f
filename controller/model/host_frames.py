"""Reads and makes the frames of hosts that the controller knows, of IPv4 and of IPv6."""

from __future__ import annotations

import ipaddress

from controller.model import arp, ndp
from controller.model.neighbour import NeighbourMessage
from controller.model.rules import ETH_TYPE_IPV4, ETH_TYPE_IPV6
from topologies.model import ip_version

_BUILD_REPLY = {4: arp.build_reply, 6: ndp.build_reply}
_BUILD_PROBE = {4: arp.build_probe, 6: ndp.build_probe}
_DESTINATIONS = {ETH_TYPE_IPV4: slice(30, 34), ETH_TYPE_IPV6: slice(38, 54)}  # in Ethernet frames


def destination_of(frame: bytes) -> str | None:
    """Return the destination address of an Ethernet frame; None if it is no IP packet."""
    place = _DESTINATIONS.get(int.from_bytes(frame[12:14], "big"))
    if place is None or len(frame) < place.stop:
        return None
    return str(ipaddress.ip_address(frame[place]))


def parse_neighbour(frame: bytes) -> NeighbourMessage | None:
    """Read a message of ARP or of neighbour discovery; None if it is neither."""
    return arp.parse(frame) or ndp.parse(frame)


def reply(request: NeighbourMessage, mac: str) -> bytes:
    """Return the frame that tells the asker that the target has this MAC address."""
    return _BUILD_REPLY[ip_version(request.target_ip)](request, mac)


def probe(ip: str, mac: str | None = None) -> bytes:
    """Return the frame that asks who has an address, one MAC address or all, and claims none itself."""
    return _BUILD_PROBE[ip_version(ip)](ip, mac)
