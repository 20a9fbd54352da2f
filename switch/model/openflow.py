"""OpenFlow 1.3.5 messages as bytes, as far as a model switch needs them (ONF TS-023, section 7)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

__all__ = [
    "ALL_TABLES",
    "ANY",
    "Action",
    "Bucket",
    "Count",
    "ErrorReason",
    "FlowMod",
    "GroupMod",
    "GroupType",
    "Instructions",
    "Kind",
    "MalformedMessage",
    "MatchFields",
    "Multipart",
    "PortState",
    "error",
    "flow_stats_entry",
    "message",
    "packet_in",
    "parse_flow_mod",
    "parse_group_mod",
    "parse_instructions",
    "parse_match",
    "parse_packet_out",
    "port_description",
    "port_stats_entry",
    "take_messages",
]

VERSION = 4
ALL_TABLES = 0xFF
ANY = 0xFFFF_FFFF
"""Any port, any group; as a group of a removal it means all groups (`OFPG_ANY`)."""
ALL_GROUPS = 0xFFFF_FFFC
_NO_BUFFER = 0xFFFF_FFFF

_HEADER = struct.Struct("!BBHI")
_FLOW_MOD = struct.Struct("!QQBBHHHIIIH2x")
_GROUP_MOD = struct.Struct("!HBxI")
_BUCKET = struct.Struct("!HHII4x")
_PACKET_OUT = struct.Struct("!IIH6x")
_PACKET_IN = struct.Struct("!IHBBQ")
_FLOW_STATS = struct.Struct("!HBxIIHHHH4xQQQ")
_PORT_STATS = struct.Struct("!I4x4Q72x")
_PORT = struct.Struct("!I4x6s2x16sIIIIIIII")
_BASIC_CLASS = 0x8000
_IN_PORT = 0
_EXPERIMENTER, _NICIRA, _REG_MOVE, _REG_LOAD, _RESUBMIT = 0xFFFF, 0x2320, 6, 7, 14
_NXM_FIELDS = {0x0206: 3, 0x0406: 4}
"""Nicira's heads of fields: the Ethernet destination and source."""


class MalformedMessage(ValueError):
    """Bytes that are no OpenFlow 1.3 message."""


class Kind(IntEnum):
    """Types of messages."""

    HELLO = 0
    ERROR = 1
    ECHO_REQUEST = 2
    ECHO_REPLY = 3
    FEATURES_REQUEST = 5
    FEATURES_REPLY = 6
    PACKET_IN = 10
    PORT_STATUS = 12
    PACKET_OUT = 13
    FLOW_MOD = 14
    GROUP_MOD = 15
    MULTIPART_REQUEST = 18
    MULTIPART_REPLY = 19
    BARRIER_REQUEST = 20
    BARRIER_REPLY = 21
    ROLE_REQUEST = 24
    ROLE_REPLY = 25
    METER_MOD = 29


class Multipart(IntEnum):
    """Types of multipart requests."""

    DESCRIPTION = 0
    FLOW = 1
    AGGREGATE = 2
    PORT_STATISTICS = 4
    GROUP_DESCRIPTION = 7
    METER_CONFIGURATION = 10
    METER_FEATURES = 11
    PORT_DESCRIPTION = 13


class GroupType(IntEnum):
    """How a group chooses its bucket."""

    SELECT = 1
    FAST_FAILOVER = 3


class ErrorReason(IntEnum):
    """Type and code of an error, one number: type << 16 | code."""

    BAD_REQUEST_TYPE = 1 << 16 | 1
    BAD_OUT_GROUP = 2 << 16 | 9
    BAD_TABLE = 5 << 16 | 2
    TABLE_FULL = 5 << 16 | 1
    GROUP_EXISTS = 6 << 16 | 0
    UNKNOWN_GROUP = 6 << 16 | 8
    OUT_OF_GROUPS = 6 << 16 | 3
    STALE_ROLE = 11 << 16 | 0
    IS_SLAVE = 1 << 16 | 10
    METER_EXISTS = 12 << 16 | 1
    UNKNOWN_METER = 12 << 16 | 3


class PortState(IntEnum):
    """State of a port."""

    UP = 0
    DOWN = 1


MatchFields = tuple[tuple[int, bytes], ...]
"""(field number, value) pairs, sorted: OXM fields of the basic class; a mask follows its value."""


@dataclass
class Count:
    """Packets, and their bytes, that a rule or a port has seen."""

    packets: int = 0
    bytes: int = 0

    def add(self, packets: int, size_bytes: int) -> None:
        """Count this many packets of one size."""
        self.packets += packets
        self.bytes += packets * size_bytes


@dataclass(frozen=True)
class Move:
    """Copies bits (Nicira's `NXAST_REG_MOVE`); bit 0 of a field is its lowest."""

    bits: int
    source: int
    source_bit: int
    target: int
    target_bit: int


@dataclass(frozen=True)
class Load:
    """Sets bits to a number (Nicira's `NXAST_REG_LOAD`)."""

    bits: int
    target: int
    target_bit: int
    value: int


@dataclass(frozen=True)
class Action:
    """Output to a port or group, a field's new value, bits that are copied or set, or what a table does."""

    port: int | None = None
    group: int | None = None
    set_field: tuple[int, bytes] | None = None
    move: Move | None = None
    load: Load | None = None
    also_table: int | None = None


@dataclass(frozen=True)
class Instructions:
    """What a rule does: actions in order, then the next table; `meter` limits nothing here."""

    actions: tuple[Action, ...] = ()
    goto_table: int | None = None
    meter: int | None = None


@dataclass(frozen=True)
class FlowMod:
    """A change of a flow table."""

    cookie: int
    cookie_mask: int
    table: int
    command: int
    idle_s: int
    priority: int
    flags: int
    match: MatchFields
    match_bytes: bytes
    instruction_bytes: bytes


@dataclass(frozen=True)
class Bucket:
    """One choice of a group; `watch_port` must be up for a fast-failover bucket to be live."""

    weight: int
    watch_port: int
    actions: tuple[Action, ...]


@dataclass(frozen=True)
class GroupMod:
    """A change of a group; `bucket_bytes` as they came."""

    command: int
    type: int
    number: int
    bucket_bytes: bytes

    def buckets(self) -> tuple[Bucket, ...]:
        """Read the buckets."""
        data, buckets = self.bucket_bytes, []
        while data:
            length, weight, watch_port, _ = _BUCKET.unpack_from(data)
            if length < _BUCKET.size or length > len(data):
                raise MalformedMessage(f"a bucket of {length} bytes")
            buckets.append(Bucket(weight, watch_port, tuple(_actions(data[_BUCKET.size : length]))))
            data = data[length:]
        return tuple(buckets)


def message(kind: Kind, xid: int, body: bytes = b"") -> bytes:
    """Return a message with its header."""
    return _HEADER.pack(VERSION, kind, _HEADER.size + len(body), xid) + body


def take_messages(buffer: bytearray) -> Iterator[tuple[int, int, bytes]]:
    """Take the whole messages from the front of a buffer: (type, transaction id, whole message).

    Raises:
        MalformedMessage: a header has another version or an impossible length.
    """
    start = 0
    try:
        while len(buffer) - start >= _HEADER.size:
            version, kind, length, xid = _HEADER.unpack_from(buffer, start)
            if length < _HEADER.size or (version != VERSION and kind != Kind.HELLO):
                raise MalformedMessage(f"version {version}, type {kind}, length {length}")
            if len(buffer) - start < length:
                break
            whole = bytes(buffer[start : start + length])
            start += length
            yield kind, xid, whole
    finally:
        del buffer[:start]


def error(xid: int, reason: ErrorReason, offending: bytes) -> bytes:
    """Return the error that answers a message."""
    return message(Kind.ERROR, xid, struct.pack("!HH", reason >> 16, reason & 0xFFFF) + offending[:64])


def parse_flow_mod(whole: bytes) -> FlowMod:
    """Read a flow mod."""
    try:
        cookie, mask, table, command, idle_s, _, priority, _, _, _, flags = _FLOW_MOD.unpack_from(
            whole, _HEADER.size
        )
        match, end = parse_match(whole, _HEADER.size + _FLOW_MOD.size)
    except struct.error as error_:
        raise MalformedMessage(f"a flow mod: {error_}") from None
    match_bytes = whole[_HEADER.size + _FLOW_MOD.size : end]
    return FlowMod(cookie, mask, table, command, idle_s, priority, flags, match, match_bytes, whole[end:])


def parse_match(data: bytes, start: int) -> tuple[MatchFields, int]:
    """Read the match at `start`; returns its fields and where it ends, padding included."""
    kind, length = struct.unpack_from("!HH", data, start)
    end = start + length
    if kind != 1 or length < 4 or end > len(data):
        raise MalformedMessage(f"a match of type {kind} and {length} bytes")
    return _match_fields(data[start + 4 : end]), start + (length + 7) // 8 * 8


@lru_cache(maxsize=1 << 14)  # the same match comes to all switches on a path
def _match_fields(data: bytes) -> MatchFields:
    fields, place = [], 0
    while place < len(data):
        oxm_class, field, size = struct.unpack_from("!HBB", data, place)
        if oxm_class != _BASIC_CLASS or place + 4 + size > len(data):
            raise MalformedMessage(f"a match field {field >> 1} of class {oxm_class:#x}")
        fields.append((field >> 1, data[place + 4 : place + 4 + size]))
        place += 4 + size
    return tuple(sorted(fields))


@lru_cache(maxsize=1 << 14)
def parse_instructions(data: bytes) -> Instructions:
    """Read apply-actions, goto-table and meter."""
    actions: tuple[Action, ...] = ()
    goto, meter = None, None
    while data:
        kind, length = struct.unpack_from("!HH", data)
        if length < 8 or length > len(data):
            raise MalformedMessage(f"an instruction of {length} bytes")
        if kind == 1:
            goto = data[4]
        elif kind == 6:
            meter = int.from_bytes(data[4:8], "big")
        elif kind in (3, 4):
            actions += tuple(_actions(data[8:length]))
        data = data[length:]
    return Instructions(actions, goto, meter)


def _actions(data: bytes) -> Iterator[Action]:
    while data:
        kind, length = struct.unpack_from("!HH", data)
        if length < 8 or length > len(data):
            raise MalformedMessage(f"an action of {length} bytes")
        if kind == 0:
            yield Action(port=int.from_bytes(data[4:8], "big"))
        elif kind == 22:
            yield Action(group=int.from_bytes(data[4:8], "big"))
        elif kind == 25:
            yield Action(set_field=(data[6] >> 1, data[8 : 8 + data[7]]))
        elif kind == _EXPERIMENTER:
            yield from _nicira(data[4:length])
        data = data[length:]


def _nicira(body: bytes) -> Iterator[Action]:
    """Read what Open vSwitch has beside OpenFlow; the port a packet came in by may be forgotten unnoticed."""
    vendor, subtype = struct.unpack_from("!IH", body)
    if vendor != _NICIRA:
        raise MalformedMessage(f"an action of vendor {vendor:#x}")
    if subtype == _REG_MOVE:
        bits, source_bit, target_bit, source, target = struct.unpack_from("!HHHII", body, 6)
        yield Action(move=Move(bits, _NXM_FIELDS[source], source_bit, _NXM_FIELDS[target], target_bit))
    elif subtype == _REG_LOAD:
        place, target, value = struct.unpack_from("!HIQ", body, 6)
        if target in _NXM_FIELDS:
            yield Action(load=Load((place & 0x3F) + 1, _NXM_FIELDS[target], place >> 6, value))
    elif subtype == _RESUBMIT:
        yield Action(also_table=body[8])
    else:
        raise MalformedMessage(f"a Nicira action of type {subtype}")


def parse_group_mod(whole: bytes) -> GroupMod:
    """Read a group mod."""
    command, kind, number = _GROUP_MOD.unpack_from(whole, _HEADER.size)
    return GroupMod(command, kind, number, whole[_HEADER.size + _GROUP_MOD.size :])


def parse_packet_out(whole: bytes) -> tuple[tuple[Action, ...], bytes]:
    """Read a packet-out: its actions and the frame."""
    _, _, size = _PACKET_OUT.unpack_from(whole, _HEADER.size)
    start = _HEADER.size + _PACKET_OUT.size
    return tuple(_actions(whole[start : start + size])), whole[start + size :]


def packet_in(port: int, frame: bytes, cookie: int = 0) -> bytes:
    """Return the message that hands a frame to the controller."""
    oxm = struct.pack("!HBBI", _BASIC_CLASS, _IN_PORT << 1, 4, port)
    match = struct.pack("!HH", 1, 4 + len(oxm)) + oxm
    match += bytes(-len(match) % 8)
    body = _PACKET_IN.pack(_NO_BUFFER, len(frame), 1, 0, cookie) + match + bytes(2) + frame
    return message(Kind.PACKET_IN, 0, body)


def port_description(number: int, state: PortState, name: str) -> bytes:
    """Return a port as a description or a status has it."""
    address = b"\x0a\x70" + number.to_bytes(4, "big")
    return _PORT.pack(number, address, name.encode()[:15], 0, state, 0, 0, 0, 0, 0, 0)


def flow_stats_entry(change: FlowMod, count: Count) -> bytes:
    """Return a rule as flow statistics have it."""
    length = _FLOW_STATS.size + len(change.match_bytes) + len(change.instruction_bytes)
    head = _FLOW_STATS.pack(
        length,
        change.table,
        0,
        0,
        change.priority,
        change.idle_s,
        0,
        0,
        change.cookie,
        count.packets,
        count.bytes,
    )
    return head + change.match_bytes + change.instruction_bytes


def port_stats_entry(number: int, received: Count, sent: Count) -> bytes:
    """Return a port as port statistics have it; nothing is dropped, and its age is unknown."""
    return _PORT_STATS.pack(number, received.packets, sent.packets, received.bytes, sent.bytes)
