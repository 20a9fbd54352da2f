"""More room in the sockets by which Open vSwitch's userspace datapath reads its ports.

Open vSwitch leaves them at `net.core.rmem_default`: some 130 packets of 590 bytes, which at 20,000 a second
is a pause of 6 ms. It has no setting for it and a namespace cannot have its own, so the sockets are borrowed
(pidfd_getfd, Linux 5.6) and widened from outside.
"""

from __future__ import annotations

import ctypes
import os
import socket
from pathlib import Path

_PIDFD_GETFD = 438
_SO_DOMAIN, _SO_RCVBUFFORCE = 39, 33
ROOM_BYTES = 4 << 20
"""The kernel doubles it and fills it only when the reader is late."""

_libc = ctypes.CDLL(None, use_errno=True)


def widen(pid: int, known: set[str]) -> int:
    """Give the packet sockets of a process receive buffers of `ROOM_BYTES`; return how many were widened.

    Args:
        pid: of the process.
        known: sockets that have been looked at, which are passed over; those found now are added.

    Raises:
        OSError: the kernel has no pidfd_getfd, or does not let this process use it.
    """
    process = os.pidfd_open(pid)
    try:
        return sum(_widen(process, number) for number in _new_sockets(pid, known))
    finally:
        os.close(process)


def _new_sockets(pid: int, known: set[str]) -> list[int]:
    sockets = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            name = str(entry.readlink())
        except OSError:  # closed meanwhile
            continue
        if name.startswith("socket:") and name not in known:
            known.add(name)
            sockets.append(int(entry.name))
    return sockets


def _widen(process: int, number: int) -> bool:
    descriptor = _libc.syscall(_PIDFD_GETFD, process, number, 0)
    if descriptor < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    with socket.socket(fileno=descriptor) as borrowed:
        if borrowed.getsockopt(socket.SOL_SOCKET, _SO_DOMAIN) != socket.AF_PACKET:
            return False
        borrowed.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, ROOM_BYTES)
        return True
