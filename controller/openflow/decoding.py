"""What switches say of their own accord, and the parts that many of their messages share, read from bytes."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from os_ken.ofproto import ofproto_v1_3 as ofp

from controller.model.rules import Match
from controller.openflow.encoding import FLOW_MOD, MATCH_FIELDS, TAG_PRESENT

_HEADER_BYTES = 8
_PACKET_IN = struct.Struct("!8xIHBBQHH")  # buffer, bytes, reason, table, cookie; match: type, length
_OXM = struct.Struct("!HBB")
_FLOW_REMOVED = struct.Struct("!18xB29xHH")  # reason; match: type, length
_MAC_BYTES = 6
_IDLE_TIMEOUT = 0
_BASIC_CLASS = 0x8000
_IN_PORT = 0
_ERROR = struct.Struct("!8xHH")
_QUOTED = struct.Struct("!BBHIQ")  # a header and, of a flow mod, the cookie
_FULL = frozenset({(5, 1), (6, 3)})  # OFPFMFC_TABLE_FULL, OFPGMFC_OUT_OF_GROUPS


class Malformed(ValueError):
    """Bytes that are not what their header says."""


@dataclass(frozen=True)
class Refusal:
    """Type and code of an error, and the cookie of the rule that it is about; None: it is about no rule."""

    type: int
    code: int
    cookie: int | None

    @property
    def is_table_full(self) -> bool:
        """Whether the switch has no room for another rule or group."""
        return (self.type, self.code) in _FULL


def read_packet_in(whole: bytes) -> tuple[int, bytes]:
    """Read at which port a packet has arrived, and the packet, of a packet-in with its header.

    Raises:
        Malformed: it is cut off, or does not say which port.
    """
    try:
        *_, kind, length = _PACKET_IN.unpack_from(whole)
        place, end = _PACKET_IN.size, _PACKET_IN.size - 4 + length
        if kind != 1 or length < 4 or end > len(whole):
            raise Malformed(f"a packet-in with a match of type {kind} and {length} bytes")
        while place + _OXM.size <= end:
            oxm_class, field, size = _OXM.unpack_from(whole, place)
            place += _OXM.size + size
            if (oxm_class, field >> 1, size) == (_BASIC_CLASS, _IN_PORT, 4) and place <= end:
                port = int.from_bytes(whole[place - 4 : place], "big")
                frame_at = _PACKET_IN.size - 4 + (length + 7) // 8 * 8 + 2
                return port, whole[frame_at:]
    except struct.error as error:
        raise Malformed(f"a packet-in: {error}") from None
    raise Malformed("a packet-in that does not say which port")


def read_expired(whole: bytes) -> str | None:
    """Read for packets to which address a rule was that was removed, the message's header included.

    None if it did not expire, or was for other packets.

    Raises:
        Malformed: it is cut off.
    """
    try:
        reason, _, length = _FLOW_REMOVED.unpack_from(whole)
    except struct.error as error:
        raise Malformed(f"a rule that was removed: {error}") from None
    match = read_match(whole[_FLOW_REMOVED.size :][: max(0, length - 4)])
    return None if match is None or reason != _IDLE_TIMEOUT else match.destination_ip


def parts(whole: bytes, start: int, end: int, length_at: int, least: int) -> Iterator[tuple[int, int]]:
    """Yield where parts begin and end, whose length, `least` or more, stands at an offset.

    Raises:
        Malformed: a part is too short or too long.
    """
    while start < end:
        length = int.from_bytes(whole[start + length_at : start + length_at + 2], "big")
        if length < least or start + length > end:
            raise Malformed(f"a part of {length} bytes where {end - start} are left")
        yield start, start + length
        start += length


@lru_cache(maxsize=1 << 16)
def read_match(fields: bytes) -> Match | None:
    """Read the fields of a match; None where it is none that this controller makes."""
    found: dict[str, Any] = {}
    place = 0
    while place + _OXM.size <= len(fields):
        oxm_class, number, size = _OXM.unpack_from(fields, place)
        value = fields[place + _OXM.size : place + _OXM.size + size]
        place += _OXM.size + size
        name, wanted = MATCH_FIELDS.get(number >> 1, ("", 0))
        parts = 1 + (number & 1)  # the value, and its mask
        if oxm_class != _BASIC_CLASS or len(value) != size or size != wanted * parts:
            return None
        if name.endswith("_mac"):
            found[name] = "/".join(value[at : at + _MAC_BYTES].hex(":") for at in range(0, size, _MAC_BYTES))
        elif parts > 1:
            return None
        else:
            is_address = name.endswith("_ip")
            number = int.from_bytes(value, "big")
            if name == "tag":
                if not number & TAG_PRESENT:
                    return None
                number ^= TAG_PRESENT
            found[name] = str(ipaddress.ip_address(value)) if is_address else number
    return Match(**found) if place == len(fields) else None


def read_refusal(whole: bytes) -> Refusal:
    """Read an error, its header included.

    Raises:
        Malformed: it is cut off.
    """
    try:
        kind, code = _ERROR.unpack_from(whole)
    except struct.error as error:
        raise Malformed(f"an error: {error}") from None
    quoted = whole[_ERROR.size :]
    if len(quoted) < _QUOTED.size or quoted[1] != FLOW_MOD:
        return Refusal(kind, code, None)
    return Refusal(kind, code, _QUOTED.unpack_from(quoted)[-1])


def reason_of(refusal: Refusal) -> str:
    """Return the names of an error's type and code."""
    kind = ofp.ofp_error_type_to_str(refusal.type)
    return f"{kind}, {ofp.ofp_error_code_to_str(refusal.type, refusal.code)}"
