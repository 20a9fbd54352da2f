"""MPTCP subflows by hand: the kernel's userspace path manager, over generic netlink.

The kernel's own path manager can't choose the source port of a subflow, which is what tells the subflows of a
single-homed host apart in the network. The userspace one can (Linux 5.19, `net.mptcp.pm_type` = 1).

Constants: <linux/netlink.h>, <linux/genetlink.h>, <linux/mptcp_pm.h>.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Iterable

_NETLINK_GENERIC = 16
_GENL_ID_CTRL, _CTRL_CMD_GETFAMILY = 0x10, 3
_CTRL_ATTR_FAMILY_ID, _CTRL_ATTR_FAMILY_NAME = 1, 2
_NLM_F_REQUEST, _NLM_F_ACK = 1, 4
_NLMSG_ERROR = 2
_NESTED = 1 << 15
_SUBFLOW_CREATE = 10
_ATTR_ADDR, _ATTR_TOKEN, _ATTR_REMOTE = 1, 4, 6
_FAMILY, _ID, _ADDR4, _ADDR6, _PORT = 1, 2, 3, 4, 5
_VERSION = 1
_MESSAGE = struct.Struct("=IHHIIBBH")
_ERROR_OFFSET = 16
_TIMEOUT_S = 5.0

_SOL_MPTCP, _MPTCP_INFO = 284, 1
_TOKEN = struct.Struct("=8xII")  # counters of a byte each, flags, token


def token_of(sock: socket.socket) -> int:
    """Return the kernel's number of an MPTCP connection (OSError: it is none, or fell back to TCP)."""
    info = sock.getsockopt(_SOL_MPTCP, _MPTCP_INFO, 128)
    token: int = _TOKEN.unpack_from(info)[1]
    return token


def create_subflow(token: int, identity: int, source: tuple[str, int], destination: tuple[str, int]) -> None:
    """Connect another subflow of an MPTCP connection (OSError: the kernel refused).

    `identity` is its address id, 1 to 255, of no other subflow; the ends are IP addresses with ports.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_GENERIC) as sock:
        sock.settimeout(_TIMEOUT_S)
        sock.bind((0, 0))
        name = _attribute(_CTRL_ATTR_FAMILY_NAME, b"mptcp_pm\0")
        answer = _exchange(sock, _GENL_ID_CTRL, _NLM_F_REQUEST, _CTRL_CMD_GETFAMILY, [name])
        (family,) = struct.unpack("=H", _attributes(answer)[_CTRL_ATTR_FAMILY_ID])
        attributes = [
            _attribute(_ATTR_ADDR | _NESTED, _address(source) + _attribute(_ID, bytes([identity]))),
            _attribute(_ATTR_TOKEN, struct.pack("=I", token)),
            _attribute(_ATTR_REMOTE | _NESTED, _address(destination)),
        ]
        _exchange(sock, family, _NLM_F_REQUEST | _NLM_F_ACK, _SUBFLOW_CREATE, attributes)


def _address(end: tuple[str, int]) -> bytes:
    address, port = end
    packed = ipaddress.ip_address(address).packed
    family, kind = (socket.AF_INET, _ADDR4) if len(packed) == 4 else (socket.AF_INET6, _ADDR6)
    return (
        _attribute(_FAMILY, struct.pack("=H", family))
        + _attribute(kind, packed)
        + _attribute(_PORT, struct.pack("=H", port))
    )


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _attributes(data: bytes) -> dict[int, bytes]:
    attributes: dict[int, bytes] = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        attributes[kind & ~_NESTED] = data[4:length]
        data = data[-(-length // 4) * 4 :]
    return attributes


def _exchange(
    sock: socket.socket, family: int, flags: int, command: int, attributes: Iterable[bytes]
) -> bytes:
    """Send a request and return the attributes of the answer; OSError if the kernel refused it."""
    body = b"".join(attributes)
    sock.send(_MESSAGE.pack(_MESSAGE.size + len(body), family, flags, 1, 0, command, _VERSION, 0) + body)
    answer = sock.recv(65536)
    (kind,) = struct.unpack_from("=H", answer, 4)
    if kind == _NLMSG_ERROR:
        (number,) = struct.unpack_from("=i", answer, _ERROR_OFFSET)
        if number:
            raise OSError(-number, os.strerror(-number))
    return answer[_MESSAGE.size :]
