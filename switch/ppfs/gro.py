"""Receive offload (GRO) of an interface.

Linux 5.13 to 6.6 switch it on at a veth that gets a native XDP program. Open vSwitch in userspace then reads
segments merged into packets that no wire takes, and TCP all but stops.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import socket
import struct

from switch.errors import BpfFailed

SIOCETHTOOL = 0x8946
GET_GRO, SET_GRO = 0x2B, 0x2C
"""ETHTOOL_GGRO and ETHTOOL_SGRO of <linux/ethtool.h>."""
_VALUE = struct.Struct("=II")
_REQUEST = struct.Struct("@16sP")


def is_on(interface: str) -> bool:
    """Return whether the kernel merges what arrives at the interface.

    Raises:
        BpfFailed: the interface has no such setting.
    """
    return _ask(interface, GET_GRO) != 0


def switch_off(interface: str) -> None:
    """Have packets of the interface left as they arrive.

    Raises:
        BpfFailed: the kernel refuses.
    """
    _ask(interface, SET_GRO)


def _ask(interface: str, command: int) -> int:
    """Return the value (0 on the way in) as the kernel has left it."""
    value = ctypes.create_string_buffer(_VALUE.pack(command, 0), _VALUE.size)
    request = _REQUEST.pack(interface.encode(), ctypes.addressof(value))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        try:
            fcntl.ioctl(door, SIOCETHTOOL, request)
        except OSError as failure:
            step = f"keeping GRO of {interface} off"
            raise BpfFailed(step, failure.errno or errno.EIO, "use mode generic") from None
    answer: int = _VALUE.unpack(value.raw)[1]
    return answer
