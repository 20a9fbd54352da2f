"""Reads whose a DHCP message is (RFC 2131), in an Ethernet frame of IPv4."""

from __future__ import annotations

from dataclasses import dataclass

from controller.model.rules import ETH_TYPE_IPV4, IP_PROTO_UDP

SERVER_PORT, CLIENT_PORT = 67, 68
_IP_AT, _PROTOCOL_AT = 14, 23
_REQUEST, _REPLY = 1, 2
_CLIENT_MAC = slice(28, 34)  # in the message
_COOKIE = slice(236, 240)
_MAGIC = bytes.fromhex("63825363")


@dataclass(frozen=True)
class DhcpMessage:
    """A message of a client to servers, or of a server to a client."""

    is_request: bool
    client_mac: str


def parse(frame: bytes) -> DhcpMessage | None:
    """Read an Ethernet frame; None if it is no DHCP message over IPv4."""
    if len(frame) <= _PROTOCOL_AT or frame[12:14] != ETH_TYPE_IPV4.to_bytes(2, "big"):
        return None
    udp = frame[_IP_AT + (frame[_IP_AT] & 0xF) * 4 :]
    message, port = udp[8:], int.from_bytes(udp[2:4], "big")
    if frame[_PROTOCOL_AT] != IP_PROTO_UDP or message[_COOKIE] != _MAGIC:
        return None
    if (message[0], port) not in ((_REQUEST, SERVER_PORT), (_REPLY, CLIENT_PORT)):
        return None
    return DhcpMessage(message[0] == _REQUEST, message[_CLIENT_MAC].hex(":"))
