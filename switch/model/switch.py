"""One model switch without I/O: what the controller sends goes in, what the switch answers comes out."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from switch.model import openflow
from switch.model.openflow import ALL_TABLES, Count, ErrorReason, Kind, Multipart, PortState
from switch.model.tables import Refused, Tables

__all__ = ["Faults", "ModelSwitch"]

_N_TABLES = 254
_PORT_MODIFIED = 2
_EQUAL, _MASTER, _SLAVE = 1, 2, 3
_CHANGES = (Kind.FLOW_MOD, Kind.GROUP_MOD, Kind.METER_MOD)
_MAX_REPLY_BYTES = 60_000


@dataclass
class Faults:
    """What goes wrong at a switch; all may be changed while it runs.

    Attributes:
        stalled: It reads nothing and says nothing (`Fleet` stops reading its socket).
        refuse: Called with each flow mod or group mod; a reason it returns refuses the change.
        errors_after_barrier: Errors come after the barrier reply of what they refuse.
        swallow_barriers: Barriers are never answered.
        refused_kinds: Messages of these kinds are answered with errors.
    """

    stalled: bool = False
    refuse: Callable[[openflow.FlowMod | openflow.GroupMod], ErrorReason | None] | None = None
    errors_after_barrier: bool = False
    swallow_barriers: bool = False
    refused_kinds: frozenset[Kind] = frozenset()


@dataclass
class _Connection:
    """What a switch knows of a connection to a controller."""

    role: int = _EQUAL
    is_ready: bool = False  # its handshake is over
    buffer: bytearray = field(default_factory=bytearray)
    late_errors: list[bytes] = field(default_factory=list)


@dataclass
class ModelSwitch:
    """A switch: its ports, its tables, and connections to controllers, which their callers name.

    Attributes:
        datapath_id: As its handshake says.
        ports: Port numbers.
        name: Prefix of its ports' names.
        tables: What the controller has installed; outlives connections.
        faults: What goes wrong.
        has_roles: It knows what masters are.
        meters: Flags and bands by number, as they came; None: it has none. They limit nothing here.
        send_out: Called with (port, frame) for each frame that leaves by a port.
    """

    datapath_id: int
    ports: frozenset[int]
    name: str = "model"
    tables: Tables = field(default_factory=Tables)
    faults: Faults = field(default_factory=Faults)
    send_out: Callable[[int, bytes], None] = lambda _port, _frame: None
    down: set[int] = field(default_factory=set)
    meters: dict[int, bytes] | None = None
    received: dict[int, Count] = field(default_factory=lambda: defaultdict(Count))  # by port
    sent: dict[int, Count] = field(default_factory=lambda: defaultdict(Count))
    has_roles: bool = True
    generation: int | None = None  # of the last master
    flow_mods: int = 0
    barriers: int = 0
    _connections: dict[Hashable, _Connection] = field(default_factory=lambda: defaultdict(_Connection))

    def connect(self, to: Hashable = None) -> bytes:
        """Begin a connection to a controller; returns what it sends first. Rules stay."""
        self._connections[to] = _Connection()
        return openflow.message(Kind.HELLO, 1)

    def disconnect(self, to: Hashable = None) -> None:
        """End a connection."""
        self._connections.pop(to, None)

    def receive(self, data: bytes, to: Hashable = None) -> bytes:
        """Take bytes that came on a connection and return the answer.

        Raises:
            MalformedMessage: the controller sent what is no OpenFlow 1.3.
        """
        connection = self._connections[to]
        connection.buffer += data
        messages = openflow.take_messages(connection.buffer)
        return b"".join([self._answer(connection, kind, xid, whole) for kind, xid, whole in messages])

    def role(self, to: Hashable = None) -> int:
        """Return the role that a controller has."""
        return self._connections[to].role

    def is_ready(self, to: Hashable = None) -> bool:
        """Return whether the handshake of a connection is over."""
        return to in self._connections and self._connections[to].is_ready

    def hears_packets(self, to: Hashable = None) -> bool:
        """Return whether packets go to a controller: slaves get none."""
        return self.is_ready(to) and self._connections[to].role != _SLAVE

    def set_port(self, port: int, up: bool) -> bytes:
        """Let a port go down or up; returns the message that says so."""
        (self.down.discard if up else self.down.add)(port)
        body = struct.pack("!B7x", _PORT_MODIFIED) + self._port(port)
        return openflow.message(Kind.PORT_STATUS, 0, body)

    def frame_arrived(self, port: int, frame: bytes) -> bytes:
        """Return the packet-in for a frame that goes to the controller."""
        return openflow.packet_in(port, frame)

    def carry(
        self, port: int, packet: Mapping[int, bytes], packets: int, size_bytes: int
    ) -> tuple[int | None, dict[int, bytes]]:
        """Let packets of one size arrive at a port; returns where they go, as `Tables.forward`.

        Ports and rules count them.
        """
        self.received[port].add(packets, size_bytes)
        out_port, fields = self.tables.forward(packet, self.down, packets, size_bytes)
        if out_port is not None:
            self.sent[out_port].add(packets, size_bytes)
        return out_port, fields

    def _answer(self, connection: _Connection, kind: int, xid: int, whole: bytes) -> bytes:
        if kind in self.faults.refused_kinds:
            return openflow.error(xid, ErrorReason.BAD_REQUEST_TYPE, whole)
        if kind in (*_CHANGES, Kind.PACKET_OUT) and connection.role == _SLAVE:
            return openflow.error(xid, ErrorReason.IS_SLAVE, whole)
        if kind in _CHANGES:
            return self._change(connection, kind, xid, whole)
        if kind == Kind.BARRIER_REQUEST:
            return self._barrier(connection, xid)
        if kind == Kind.ECHO_REQUEST:
            return openflow.message(Kind.ECHO_REPLY, xid, whole[8:])
        if kind == Kind.FEATURES_REQUEST:
            body = struct.pack("!QIBB2xII", self.datapath_id, 0, _N_TABLES, 0, 0x4F, 0)
            return openflow.message(Kind.FEATURES_REPLY, xid, body)
        if kind == Kind.PACKET_OUT:
            self._packet_out(whole)
            return b""
        if kind == Kind.MULTIPART_REQUEST:
            connection.is_ready |= int.from_bytes(whole[8:10], "big") == Multipart.PORT_DESCRIPTION
            return self._multipart(xid, whole)
        if kind == Kind.ROLE_REQUEST and self.has_roles:
            return self._change_role(connection, xid, whole)
        is_silent = kind in (Kind.HELLO, Kind.ECHO_REPLY, Kind.ERROR)
        return b"" if is_silent else openflow.error(xid, ErrorReason.BAD_REQUEST_TYPE, whole)

    def _barrier(self, connection: _Connection, xid: int) -> bytes:
        self.barriers += 1
        late, connection.late_errors = b"".join(connection.late_errors), []
        reply = b"" if self.faults.swallow_barriers else openflow.message(Kind.BARRIER_REPLY, xid)
        return reply + late

    def _change_role(self, connection: _Connection, xid: int, whole: bytes) -> bytes:
        role, generation = struct.unpack_from("!I4xQ", whole, 8)
        if role in (_MASTER, _SLAVE):
            # Generation ids are compared as numbers that wrap around.
            if self.generation is not None and (generation - self.generation) % 2**64 >= 2**63:
                return openflow.error(xid, ErrorReason.STALE_ROLE, whole)
            self.generation = generation
        if role == _MASTER:
            for each in self._connections.values():
                each.role = _SLAVE if each.role == _MASTER else each.role
        if role:
            connection.role = role
        seen = 2**64 - 1 if self.generation is None else self.generation
        return openflow.message(Kind.ROLE_REPLY, xid, struct.pack("!I4xQ", connection.role, seen))

    def _change(self, connection: _Connection, kind: int, xid: int, whole: bytes) -> bytes:
        if kind == Kind.METER_MOD:
            return self._change_meter(xid, whole)
        change: openflow.FlowMod | openflow.GroupMod
        self.flow_mods += 1
        try:
            if kind == Kind.FLOW_MOD:
                change = openflow.parse_flow_mod(whole)
                self._check(change)
                self.tables.change_rules(change)
            else:
                change = openflow.parse_group_mod(whole)
                self._check(change)
                self.tables.change_group(change)
        except Refused as refused:
            answer = openflow.error(xid, refused.reason, whole)
            if not self.faults.errors_after_barrier:
                return answer
            connection.late_errors.append(answer)
        return b""

    def _change_meter(self, xid: int, whole: bytes) -> bytes:
        meters = self.meters
        if meters is None:
            return openflow.error(xid, ErrorReason.BAD_REQUEST_TYPE, whole)
        command, _, number = struct.unpack_from("!HHI", whole, 8)
        if command == 0 and number in meters:
            return openflow.error(xid, ErrorReason.METER_EXISTS, whole)
        if command == 1 and number not in meters:
            return openflow.error(xid, ErrorReason.UNKNOWN_METER, whole)
        if command == 2:
            meters.pop(number, None)
            self.tables.delete_metered(number)
        else:
            meters[number] = whole[10:12] + whole[16:]
        return b""

    def _check(self, change: openflow.FlowMod | openflow.GroupMod) -> None:
        reason = self.faults.refuse(change) if self.faults.refuse is not None else None
        if reason is not None:
            raise Refused(reason)

    def _packet_out(self, whole: bytes) -> None:
        actions, frame = openflow.parse_packet_out(whole)
        for action in actions:
            if action.port in self.ports and action.port not in self.down:
                self.send_out(action.port, frame)

    def _port(self, port: int) -> bytes:
        state = PortState.DOWN if port in self.down else PortState.UP
        return openflow.port_description(port, state, f"{self.name}-eth{port}")

    def _multipart(self, xid: int, whole: bytes) -> bytes:
        kind = int.from_bytes(whole[8:10], "big")
        if kind == Multipart.PORT_DESCRIPTION:
            return _replies(kind, xid, (self._port(port) for port in sorted(self.ports)))
        if kind == Multipart.FLOW:
            return _replies(kind, xid, self._flow_stats(whole[16:]))
        if kind == Multipart.AGGREGATE:
            return _replies(kind, xid, [struct.pack("!16xI4x", len(self.tables))])
        if kind == Multipart.GROUP_DESCRIPTION:
            return _replies(kind, xid, self._groups())
        if kind == Multipart.PORT_STATISTICS:
            ports = sorted(self.ports)
            return _replies(
                kind,
                xid,
                (openflow.port_stats_entry(port, self.received[port], self.sent[port]) for port in ports),
            )
        if kind == Multipart.METER_FEATURES and self.meters is not None:
            return _replies(kind, xid, [struct.pack("!IIIBB2x", 1 << 16, 1 << 1, 0xF, 8, 8)])
        if kind == Multipart.METER_CONFIGURATION and self.meters is not None:
            return _replies(
                kind,
                xid,
                [
                    struct.pack("!H2sI", 6 + len(kept), kept[:2], number) + kept[2:]
                    for number, kept in self.meters.items()
                ],
            )
        if kind == Multipart.DESCRIPTION:
            texts = ("model", "model", "1", "", self.name)
            sizes = (256, 256, 256, 32, 256)
            return _replies(
                kind, xid, [b"".join(t.encode().ljust(n, b"\0") for t, n in zip(texts, sizes, strict=True))]
            )
        return openflow.error(xid, ErrorReason.BAD_REQUEST_TYPE, whole)

    def _flow_stats(self, body: bytes) -> Iterable[bytes]:
        table, _, _, cookie, mask = struct.unpack_from("!B3xII4xQQ", body)
        for rule in self.tables.rules(cookie, mask):
            if table in (ALL_TABLES, rule.change.table):
                yield openflow.flow_stats_entry(rule.change, rule.count)

    def _groups(self) -> Iterable[bytes]:
        for group in self.tables.groups.values():
            head = struct.pack("!HBxI", 8 + len(group.bucket_bytes), group.type, group.number)
            yield head + group.bucket_bytes


def _replies(kind: int, xid: int, entries: Iterable[bytes]) -> bytes:
    """Return a multipart reply in as many messages as it takes."""
    parts, size = [[]], 0  # type: list[list[bytes]], int
    for entry in entries:
        if size + len(entry) > _MAX_REPLY_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(entry)
        size += len(entry)
    last = len(parts) - 1
    return b"".join(
        openflow.message(
            Kind.MULTIPART_REPLY, xid, struct.pack("!HH4x", kind, int(index < last)) + b"".join(part)
        )
        for index, part in enumerate(parts)
    )
