"""The core's messages as OpenFlow 1.3 bytes (ONF TS-012, section 7).

os-ken builds each message as a tree of objects, some 0.2 ms a rule; a controller that installs thousands of
rules a second packs them itself. Everything of one `InstallRules` has one transaction number, that of its
barrier: so an error names the barrier, and the cookie in the message that it quotes names the flow.
"""

from __future__ import annotations

import ipaddress
import struct
from functools import lru_cache

from controller.model.labels import LABEL_BITS
from controller.model.messages import (
    DatapathMessage,
    InstallRules,
    PacketOut,
    RemoveGroup,
    RemoveMeter,
    RemoveRule,
    RemoveRules,
)
from controller.model.rules import (
    ETH_TYPE_ARP,
    ETH_TYPE_IPV4,
    ETH_TYPE_IPV6,
    IP_PROTO_TCP,
    IP_PROTO_UDP,
    Action,
    Bucket,
    Drop,
    Entry,
    GotoTable,
    GroupChange,
    Match,
    Meter,
    MeterChange,
    Output,
    RestoreLabel,
    Rule,
    ToGroup,
    ToTables,
    Untag,
)

VERSION = 4
OWN_TRANSACTIONS = 1 << 31
"""Transaction numbers from here on belong to no barrier."""

_BARRIERS = OWN_TRANSACTIONS - 1

_HEADER = struct.Struct("!BBHI")
PACKET_OUT, FLOW_MOD, GROUP_MOD, BARRIER_REQUEST, METER_MOD = 13, 14, 15, 20, 29

# Header; cookie, mask, table, command, timeouts, priority, buffer, out port, out group, flags.
_FLOW_MOD = struct.Struct("!BBHIQQBBHHHIIIH2x")
_GROUP_MOD = struct.Struct("!BBHIHBxI")
_BUCKET = struct.Struct("!HHII4x")
# Header; command, flags, number; a band that drops: type, bytes, rate, burst.
_METER_MOD = struct.Struct("!BBHIHHIHHII4x")
_METER_DELETION = struct.Struct("!BBHIHHI")
KILOBITS, PACKETS, WITH_BURST = 1, 2, 4
DROP_BAND, _BAND_BYTES = 1, 16
_PACKET_OUT = struct.Struct("!BBHIIIH6x")
_OUTPUT = struct.Struct("!HHIH6x")
_SAY_REMOVED = 1  # flag of a flow mod
_ADD, _MODIFY, _DELETE = 0, 1, 2  # of group mods and meter mods
_FLOW_ADD, _FLOW_DELETE, _FLOW_DELETE_STRICT = 0, 3, 4
SELECT, FAST_FAILOVER = 1, 3
_ANY = _NO_BUFFER = 0xFFFF_FFFF
_ALL_GROUPS = 0xFFFF_FFFC
CONTROLLER_PORT = 0xFFFF_FFFD
_ALL_TABLES = 0xFF
_ALL_BITS = 2**64 - 1
_NO_BUFFER_LENGTH = 0xFFFF  # the whole packet

_BASIC_CLASS = 0x8000
# Names, numbers and bytes of fields, in the order in which each finds what it presupposes before it.
_FIELDS = (
    ("in_port", 0, 4),
    ("destination_mac", 3, 6),
    ("source_mac", 4, 6),
    ("tag", 6, 2),
    ("eth_type", 5, 2),
    ("ip_protocol", 10, 1),
    ("source_ip", 11, 4),
    ("destination_ip", 12, 4),
    ("source_port", 13, 2),
    ("destination_port", 14, 2),
    ("icmp_type", 29, 1),
    ("neighbour_ip", 31, 16),
    ("untagged", 2, 8),
)
_IPV6_FIELDS = {"source_ip": (26, 16), "destination_ip": (27, 16)}  # in place of those of IPv4
_ARP_FIELDS = {"source_ip": (22, 4), "destination_ip": (23, 4)}
_UDP_FIELDS = {"source_port": (15, 2), "destination_port": (16, 2)}  # in place of those of TCP
MATCH_FIELDS = {
    number: (name, size)
    for name, number, size in (
        *_FIELDS,
        *(
            (name, *field)
            for fields in (_IPV6_FIELDS, _ARP_FIELDS, _UDP_FIELDS)
            for name, field in fields.items()
        ),
    )
}
"""Names and bytes of the fields that matches may have, by their numbers."""
_DESTINATION_MAC_FIELD, _SOURCE_MAC_FIELD, _TAG_FIELD = 3, 4, 6
TAG_PRESENT = 0x1000  # of a VLAN's number in a field

# The match of a TCP connection: constant up to the source address, then values and heads in turn.
_HEADS = {name: struct.pack("!HBB", _BASIC_CLASS, number << 1, size) for name, number, size in _FIELDS}
_MASKED = 1 << 8  # in the head of a field
_TCP_ALONE = (ETH_TYPE_IPV4, IP_PROTO_TCP, None, None)
_TO_SOURCE = b"".join(
    (
        struct.pack("!HH", 1, 43),
        _HEADS["eth_type"],
        struct.pack("!H", ETH_TYPE_IPV4),
        _HEADS["ip_protocol"],
        bytes([IP_PROTO_TCP]),
        _HEADS["source_ip"],
    )
)
_CONNECTION = struct.Struct(f"!{len(_TO_SOURCE)}s4s4s4s4sH4sH5x")

# A switch drops what would go back where it came from; Open vSwitch lets it be forgotten (its action
# `load:0->NXM_OF_IN_PORT[]`, 16 bits).
NICIRA, REG_MOVE, REG_LOAD, RESUBMIT = 0x2320, 6, 7, 14
_NXM_OF_IN_PORT, _NXM_OF_ETH_DST, _NXM_OF_ETH_SRC = 0x0002, 0x0206, 0x0406
_FORGET_IN_PORT = struct.pack("!HHIHHIQ", 0xFFFF, 24, NICIRA, REG_LOAD, 15, _NXM_OF_IN_PORT, 0)
_SAME_IN_PORT = 0xFFF8
_PUSH_TAG, _POP_TAG = struct.pack("!HHH2x", 17, 8, 0x8100), struct.pack("!HH4x", 18, 8)
METADATA = 0x8000_0408
_MARK_UNTAGGED = struct.pack("!HHIHHIQ", 0xFFFF, 24, NICIRA, REG_LOAD, 63, METADATA, 1)
MAC_BITS = 48


def header(kind: int, length: int, transaction: int) -> bytes:
    """Return the header of a message of `length` bytes, the header's included."""
    return _HEADER.pack(VERSION, kind, length, transaction)


def encode(message: DatapathMessage, transaction: int) -> bytes:
    """Return what carries out a message.

    The transaction numbers whatever expects no answer, from `OWN_TRANSACTIONS` on.
    """
    if isinstance(message, InstallRules):
        return _installation(message)
    if isinstance(message, PacketOut):
        return _packet_out(message, transaction)
    if isinstance(message, RemoveRules):
        return _removal(message.cookie, _ALL_BITS, transaction)
    if isinstance(message, RemoveRule):
        return _flow_mod(message.rule, _FLOW_DELETE_STRICT, transaction)
    if isinstance(message, RemoveGroup):
        return _group_mod(_DELETE, message.group, (), transaction)
    if isinstance(message, RemoveMeter):
        head = VERSION, METER_MOD, _METER_DELETION.size, transaction, _DELETE, 0
        return _METER_DELETION.pack(*head, message.meter)
    raise TypeError(f"{message!r} is no OpenFlow message")


def _installation(message: InstallRules) -> bytes:
    transaction = message.barrier & _BARRIERS
    parts = [_entry(entry, transaction) for entry in message.entries]
    if message.wipe:
        parts[:0] = [_removal(0, 0, transaction), _group_mod(_DELETE, _ALL_GROUPS, (), transaction)]
    parts.append(header(BARRIER_REQUEST, _HEADER.size, transaction))
    return b"".join(parts)


def _entry(entry: Entry, transaction: int) -> bytes:
    if isinstance(entry, Rule):
        return _flow_mod(entry, _FLOW_ADD, transaction)
    if isinstance(entry, Meter):
        return _meter_mod(_ADD, entry, transaction)
    if isinstance(entry, MeterChange):
        return _meter_mod(_MODIFY, entry.meter, transaction)
    if isinstance(entry, GroupChange):
        return _group_mod(_MODIFY, entry.group.number, entry.group.buckets, transaction)
    return _group_mod(_ADD, entry.number, entry.buckets, transaction)


def _flow_mod(rule: Rule, command: int, transaction: int) -> bytes:
    """Return what adds a rule, or removes it and no other."""
    tail = _match(rule.match)
    mask = _ALL_BITS
    if command == _FLOW_ADD:
        tail += b"" if rule.meter is None else struct.pack("!HHI", 6, 8, rule.meter)
        tail += _instructions(rule.action)
        mask = 0
    table, priority, idle_s, size = rule.table, rule.priority, rule.idle_s, _FLOW_MOD.size + len(tail)
    head = (VERSION, FLOW_MOD, size, transaction, rule.cookie, mask, table, command, idle_s, 0, priority)
    return _FLOW_MOD.pack(*head, _NO_BUFFER, _ANY, _ANY, _SAY_REMOVED if idle_s else 0) + tail


def _removal(cookie: int, mask: int, transaction: int) -> bytes:
    """Return what removes all rules whose cookie has these bits."""
    match = _match(Match())
    size = _FLOW_MOD.size + len(match)
    head = (VERSION, FLOW_MOD, size, transaction, cookie, mask, _ALL_TABLES, _FLOW_DELETE, 0, 0, 0)
    return _FLOW_MOD.pack(*head, _NO_BUFFER, _ANY, _ANY, 0) + match


def _group_mod(command: int, number: int, buckets: tuple[Bucket, ...], transaction: int) -> bytes:
    kind = FAST_FAILOVER if any(bucket.watch_port is not None for bucket in buckets) else SELECT
    body = b"".join(_bucket(bucket) for bucket in buckets)
    size = _GROUP_MOD.size + len(body)
    return _GROUP_MOD.pack(VERSION, GROUP_MOD, size, transaction, command, kind, number) + body


def _meter_mod(command: int, meter: Meter, transaction: int) -> bytes:
    flags = WITH_BURST | (KILOBITS if meter.in_kilobits else PACKETS)
    head = (VERSION, METER_MOD, _METER_MOD.size, transaction, command, flags, meter.number)
    return _METER_MOD.pack(*head, DROP_BAND, _BAND_BYTES, meter.rate, meter.burst)


def _bucket(bucket: Bucket) -> bytes:
    actions = _send_actions(bucket.output)
    watched = _ANY if bucket.watch_port is None else bucket.watch_port
    return _BUCKET.pack(_BUCKET.size + len(actions), bucket.weight, watched, _ANY) + actions


def _packet_out(message: PacketOut, transaction: int) -> bytes:
    actions = _tagged(message.tag) + _output(message.port)
    size = _PACKET_OUT.size + len(actions) + len(message.frame)
    return (
        _PACKET_OUT.pack(VERSION, PACKET_OUT, size, transaction, _NO_BUFFER, CONTROLLER_PORT, len(actions))
        + actions
        + message.frame
    )


def _match(match: Match) -> bytes:
    """Return a match as bytes; they are made once."""
    packed = match.packed
    if packed is None:
        packed = _packed(match)
        object.__setattr__(match, "packed", packed)  # it is the same match
    return packed


def _packed(match: Match) -> bytes:
    ips, ports = (match.source_ip, match.destination_ip), (match.source_port, match.destination_port)
    others = match.eth_type, match.ip_protocol, match.source_mac or match.destination_mac, match.in_port
    if others == _TCP_ALONE and None not in ips and None not in ports:  # nearly all are such
        source, destination = map(_ip, ips)
        return _CONNECTION.pack(
            _TO_SOURCE,
            source,
            _HEADS["destination_ip"],
            destination,
            _HEADS["source_port"],
            ports[0],
            _HEADS["destination_port"],
            ports[1],
        )
    fields = b"".join(
        [
            _field(head, value, size)
            for name, head, size in _heads(match.eth_type, match.ip_protocol)
            if (value := getattr(match, name)) is not None
        ]
    )
    return _padded(struct.pack("!HH", 1, 4 + len(fields)) + fields)


@lru_cache
def _heads(eth_type: int | None, ip_protocol: int | None) -> tuple[tuple[str, bytes, int], ...]:
    """Return how the fields of matches begin, for packets of these protocols: name, head and bytes."""
    others = {ETH_TYPE_IPV6: _IPV6_FIELDS, ETH_TYPE_ARP: _ARP_FIELDS}.get(eth_type or 0, {})
    others = others | (_UDP_FIELDS if ip_protocol == IP_PROTO_UDP else {})
    fields = ((name, *others.get(name, (number, size))) for name, number, size in _FIELDS)
    return tuple(
        (name, struct.pack("!HBB", _BASIC_CLASS, number << 1, size), size) for name, number, size in fields
    )


_TAG_HEAD = _HEADS["tag"]


def _field(head: bytes, value: int | str, size: int) -> bytes:
    if isinstance(value, int):
        return head + (value | TAG_PRESENT * (head == _TAG_HEAD)).to_bytes(size, "big")
    if "/" in value:
        masked = int.from_bytes(head, "big") + _MASKED + size
        return masked.to_bytes(4, "big") + b"".join(map(_mac, value.split("/")))
    return head + (_mac(value) if size == 6 else _ip(value))


@lru_cache(maxsize=1 << 12)
def _ip(text: str) -> bytes:
    return ipaddress.ip_address(text).packed


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


@lru_cache(maxsize=1 << 14)
def _instructions(action: Action) -> bytes:
    if isinstance(action, GotoTable):
        return _goto(action.table)
    if isinstance(action, Drop):
        return b""
    if isinstance(action, Untag):
        return _apply(_POP_TAG + _MARK_UNTAGGED + _resubmit(action.table))
    if isinstance(action, ToTables):
        return _apply(_resubmit(action.also)) + _goto(action.table)
    if isinstance(action, RestoreLabel):
        restored = _move(_NXM_OF_ETH_SRC, 0, _NXM_OF_ETH_DST, 0, MAC_BITS)
        marked = _set_mac(_SOURCE_MAC_FIELD, action.source_mac)
        return _apply(restored + marked + _FORGET_IN_PORT) + _goto(action.table)
    if isinstance(action, Output | ToGroup):
        actions = _send_actions(action)
    else:
        actions = _output(CONTROLLER_PORT, _NO_BUFFER_LENGTH)
    return _apply(actions)


def _apply(actions: bytes) -> bytes:
    return struct.pack("!HH4x", 4, 8 + len(actions)) + actions


def _goto(table: int) -> bytes:
    return struct.pack("!HHB3x", 1, 8, table)


def _send_actions(action: Output | ToGroup) -> bytes:
    actions = b""
    if isinstance(action, Output) and action.saves_label:
        actions += _move(_NXM_OF_ETH_DST, 0, _NXM_OF_ETH_SRC, 0, MAC_BITS)
    if action.shift:
        actions += _move(_NXM_OF_ETH_DST, 0, _NXM_OF_ETH_DST, action.shift, LABEL_BITS - action.shift)
        low_bits = action.shift - 1  # from bit 0 on, and less one
        actions += struct.pack("!HHIHHIQ", 0xFFFF, 24, NICIRA, REG_LOAD, low_bits, _NXM_OF_ETH_DST, 0)
    if action.source_mac is not None:
        actions += _set_mac(_SOURCE_MAC_FIELD, action.source_mac)
    if action.destination_mac is not None:
        actions += _set_mac(_DESTINATION_MAC_FIELD, action.destination_mac)
    if isinstance(action, ToGroup):
        return actions + struct.pack("!HHI", 22, 8, action.group)
    if action.may_return:
        actions += _FORGET_IN_PORT
    return actions + _tagged(action.tag) + _output(action.port)


def _move(source: int, source_bit: int, target: int, target_bit: int, bits: int) -> bytes:
    """Return the action that copies some bits of a field to another place."""
    head = struct.pack("!HHIHHHH", 0xFFFF, 24, NICIRA, REG_MOVE, bits, source_bit, target_bit)
    return head + struct.pack("!II", source, target)


def _set_mac(number: int, mac: str) -> bytes:
    field = struct.pack("!HBB", _BASIC_CLASS, number << 1, 6) + _mac(mac)
    return struct.pack("!HH", 25, 16) + _padded(field, 12)


def _output(port: int, max_bytes: int = 0xFFE5) -> bytes:
    return _OUTPUT.pack(0, _OUTPUT.size, port, max_bytes)


def _resubmit(table: int) -> bytes:
    """Return the action that does what a table says."""
    return struct.pack("!HHIHHB3x", 0xFFFF, 16, NICIRA, RESUBMIT, _SAME_IN_PORT, table)


def _tagged(tag: int | None) -> bytes:
    """Return the actions that give a packet a VLAN tag, if it gets one."""
    if tag is None:
        return b""
    field = struct.pack("!HBBH", _BASIC_CLASS, _TAG_FIELD << 1, 2, TAG_PRESENT | tag)
    return _PUSH_TAG + struct.pack("!HH", 25, 16) + _padded(field, 12)


def _padded(data: bytes, size: int = 8) -> bytes:
    return data + bytes(-len(data) % size)
