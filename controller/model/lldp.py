"""LLDP packets that probe links (IEEE 802.1AB), as bytes in and bytes out."""

from __future__ import annotations

import hmac
import re
import struct
from functools import lru_cache

from controller.model.rules import ETH_TYPE_LLDP

_DESTINATION = bytes.fromhex("0180c200000e")  # nearest bridge: no bridge between two switches passes it on
_ETHERNET = struct.Struct("!6s6sH")
_SOURCE_PREFIX = b"\x0a\x4d"  # locally administered
_CHASSIS, _PORT, _TTL = 1, 2, 3
_LOCALLY_ASSIGNED = 7
_PORT_COMPONENT = 2
_TTL_S = 120
_ORGANISATION = 127
_SIGNATURE_HEAD = b"\x0a\x4d\x53\x01"  # a locally administered identifier, and a subtype of our own
_CHASSIS_ID = re.compile(rb"dpid:([0-9a-f]{16})")


@lru_cache(maxsize=1 << 14)  # a network's probes are the same all the time
def build(datapath_id: int, port: int, key: bytes = b"") -> bytes:
    """Return the Ethernet frame that says which port of which switch it left, signed with a key."""
    source = _SOURCE_PREFIX + struct.pack("!HH", datapath_id & 0xFFFF, port & 0xFFFF)
    return (
        _ETHERNET.pack(_DESTINATION, source, ETH_TYPE_LLDP)
        + _field(_CHASSIS, bytes([_LOCALLY_ASSIGNED]) + b"dpid:%016x" % datapath_id)
        + _field(_PORT, struct.pack("!BI", _PORT_COMPONENT, port))
        + _field(_TTL, struct.pack("!H", _TTL_S))
        + _field(_ORGANISATION, _SIGNATURE_HEAD + _signature(datapath_id, port, key))
        + _field(0, b"")
    )


def parse(frame: bytes, key: bytes = b"") -> tuple[int, int] | None:
    """Return the datapath id and port that a frame left by; None if it is no probe signed with this key."""
    if len(frame) < _ETHERNET.size or _ETHERNET.unpack_from(frame)[2] != ETH_TYPE_LLDP:
        return None
    kind, chassis, rest = _take(frame[_ETHERNET.size :])
    matched = _CHASSIS_ID.fullmatch(chassis[1:])
    if kind != _CHASSIS or chassis[:1] != bytes([_LOCALLY_ASSIGNED]) or matched is None:
        return None
    kind, port, rest = _take(rest)
    if kind != _PORT or len(port) != struct.calcsize("!BI") or port[0] != _PORT_COMPONENT:
        return None
    end = int(matched[1], 16), int.from_bytes(port[1:], "big")
    _, _, rest = _take(rest)
    kind, signature, _ = _take(rest)
    expected = _SIGNATURE_HEAD + _signature(*end, key)
    return end if kind == _ORGANISATION and hmac.compare_digest(signature, expected) else None


@lru_cache(maxsize=1 << 14)
def _signature(datapath_id: int, port: int, key: bytes) -> bytes:
    return hmac.digest(key, struct.pack("!QI", datapath_id, port), "sha256")[:16]


def _field(kind: int, value: bytes) -> bytes:
    """Return a TLV: seven bits of type, nine of length, the value."""
    return struct.pack("!H", kind << 9 | len(value)) + value


def _take(data: bytes) -> tuple[int, bytes, bytes]:
    """Return type and value of the first TLV, and what follows; type 0 where there is none whole."""
    if len(data) < 2:
        return 0, b"", b""
    head = int.from_bytes(data[:2], "big")
    kind, end = head >> 9, 2 + (head & 0x1FF)
    return (kind, data[2:end], data[end:]) if end <= len(data) else (0, b"", b"")
