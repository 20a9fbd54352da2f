"""The messages by which a switch says who it is (ONF TS-012, sections 7.3.1, 7.3.5.7, 7.3.9, 7.5.1)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from controller.openflow.decoding import Malformed
from controller.openflow.encoding import VERSION, header
from controller.openflow.statistics import statistics_request

HELLO, FEATURES_REQUEST, FEATURES_REPLY, PORT_STATUS = 0, 5, 6, 12
_ROLE_REQUEST, ROLE_REPLY = 24, 25
PORT_DESCRIPTION = 13
NO_GENERATION = 2**64 - 1
"""The generation id of a switch that has had no master since it started (as Open vSwitch says it)."""

_HEADER_BYTES = 8
_VERSIONS = struct.Struct("!HHI")  # hello element: type, length, bitmap
_FEATURES = struct.Struct("!8xQIBB2xII")  # id, buffers, tables, auxiliary id
_ROLE = struct.Struct("!I4xQ")
_PORT = struct.Struct("!I4x6x2x16sII24x")  # number, name, configuration, state
_PORTS_AT, _PORT_AT = 16, 16
_LAST_PORT = 0xFFFF_FF00
_DOWN, _LINK_DOWN, _LIVE = 1, 1, 4


class ControllerRole(IntEnum):
    """What a controller is to a switch."""

    NO_CHANGE = 0
    EQUAL = 1
    MASTER = 2
    SLAVE = 3


@dataclass(frozen=True)
class PortDescription:
    """A port; `is_live` where the switch watches its link (BFD) and finds it whole."""

    number: int
    name: str
    is_down: bool
    is_live: bool


def hello(transaction: int) -> bytes:
    """Return our hello: OpenFlow 1.3 and nothing else."""
    return header(HELLO, _HEADER_BYTES + _VERSIONS.size, transaction) + _VERSIONS.pack(1, 8, 1 << VERSION)


def speaks_our_version(version: int, whole: bytes) -> bool:
    """Return whether the sender of a hello can speak OpenFlow 1.3."""
    place = _HEADER_BYTES
    while place + 4 <= len(whole):
        kind, length = struct.unpack_from("!HH", whole, place)
        if length < 4 or place + length > len(whole):
            raise Malformed(f"a hello with a part of {length} bytes")
        if kind == 1 and length >= 8:
            return bool(int.from_bytes(whole[place + 4 : place + 8], "big") >> VERSION & 1)
        place += (length + 7) // 8 * 8
    return version >= VERSION


def features_request(transaction: int) -> bytes:
    """Return the question who a switch is."""
    return header(FEATURES_REQUEST, _HEADER_BYTES, transaction)


def read_features(whole: bytes) -> tuple[int, int]:
    """Read the answer to `features_request`: the datapath id, and the number of an auxiliary connection."""
    try:
        datapath_id, _, _, auxiliary, _, _ = _FEATURES.unpack_from(whole)
    except struct.error as error:
        raise Malformed(f"features: {error}") from None
    return datapath_id, auxiliary


def ports_request(transaction: int) -> bytes:
    """Return the question which ports a switch has."""
    return statistics_request(PORT_DESCRIPTION, transaction, b"")


def read_ports(whole: bytes) -> list[PortDescription]:
    """Read a part of the answer to `ports_request`; ports that are no interfaces are left out."""
    if (len(whole) - _PORTS_AT) % _PORT.size:
        raise Malformed(f"{len(whole) - _PORTS_AT} bytes of ports, of {_PORT.size} each")
    ports = map(_described, _PORT.iter_unpack(whole[_PORTS_AT:]))
    return [port for port in ports if port.number <= _LAST_PORT]


def read_port_status(whole: bytes) -> PortDescription | None:
    """Read that a port was added, changed or removed (then it is down); None: it is no interface."""
    if len(whole) != _PORT_AT + _PORT.size:
        raise Malformed(f"a port status of {len(whole)} bytes")
    port = _described(_PORT.unpack_from(whole, _PORT_AT))
    if port.number > _LAST_PORT:
        return None
    return PortDescription(port.number, port.name, True, False) if whole[8] == 1 else port


def _described(fields: tuple[int, bytes, int, int]) -> PortDescription:
    number, name, configuration, state = fields
    text = name.rstrip(b"\0").decode(errors="replace")
    is_down = bool(configuration & _DOWN or state & _LINK_DOWN)
    return PortDescription(number, text, is_down, bool(state & _LIVE))


def role_request(role: ControllerRole, generation: int, transaction: int) -> bytes:
    """Return the question for a role; `NO_CHANGE` asks which it is, and of which generation the master is."""
    return header(_ROLE_REQUEST, _HEADER_BYTES + _ROLE.size, transaction) + _ROLE.pack(role, generation)


def read_role(whole: bytes) -> tuple[int, int]:
    """Read the answer to `role_request`: our role, and the generation id of the last master."""
    try:
        role, generation = _ROLE.unpack_from(whole, _HEADER_BYTES)
    except struct.error as error:
        raise Malformed(f"a role: {error}") from None
    return role, generation
