"""Connections that a program under `mstcp run` made past the library: by system calls of its own.

A command may start static programs, or those of Go. Their connections are reported as far as they are
seen: the kernel's tables are read four times a second while the command runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

INTERVAL_S = 0.25
_ESTABLISHED, _SYN_SENT, _LISTEN = 1, 2, 10


@dataclass(frozen=True)
class TcpEntry:
    """A line of /proc/net/tcp or tcp6.

    Attributes:
        local_port: Our port.
        address: The peer's address.
        port: Its port.
        state: As in include/net/tcp_states.h.
        inode: The socket's.
    """

    local_port: int
    address: str
    port: int
    state: int
    inode: int


def parse_table(text: str) -> list[TcpEntry]:
    """Return the sockets of /proc/net/tcp or /proc/net/tcp6."""
    entries = []
    for line in text.splitlines()[1:]:
        fields = line.split()
        address, port = _endpoint(fields[2])
        local_port = _endpoint(fields[1])[1]
        entries.append(TcpEntry(local_port, address, port, int(fields[3], 16), int(fields[9])))
    return entries


def _endpoint(text: str) -> tuple[str, int]:
    raw, _, port = text.partition(":")
    # Words of 32 bits in the machine's order; the port is a number.
    words = [bytes.fromhex(raw[at : at + 8]) for at in range(0, len(raw), 8)]
    octets = b"".join(int.from_bytes(word, "big").to_bytes(4, sys.byteorder) for word in words)
    family = socket.AF_INET if len(octets) == 4 else socket.AF_INET6
    return socket.inet_ntop(family, octets), int(port, 16)


def opened(entries: list[TcpEntry]) -> Iterator[TcpEntry]:
    """Return the connections that this side has opened: those that no listener here accepted."""
    listening = {entry.local_port for entry in entries if entry.state == _LISTEN}
    for entry in entries:
        if entry.state in (_ESTABLISHED, _SYN_SENT) and entry.local_port not in listening:
            yield entry


def descendants(pid: int) -> list[int]:
    """Return a process and its children, theirs and so on."""
    pids = [pid]
    for each in pids:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{each}/task").iterdir():
                pids += map(int, (task / "children").read_text().split())
    return pids


def socket_inodes(pid: int) -> set[int]:
    """Return the inodes of a process's sockets; none if it is gone, or not ours to look at."""
    inodes = set()
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(entry.readlink())
                if target.startswith("socket:["):
                    inodes.add(int(target[8:-1]))
    return inodes


class BypassWatch:
    """Tells of connections of a process and its children that should go over MSTCP, once each.

    Args:
        pid: The process.
        is_wanted: Whether a destination is to go over MSTCP.
        report: Gets a sentence.
    """

    def __init__(
        self, pid: int, is_wanted: Callable[[str, int], bool], report: Callable[[str], None]
    ) -> None:
        self._pid = pid
        self._is_wanted = is_wanted
        self._report = report
        self._told: set[tuple[str, int]] = set()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(INTERVAL_S)

    def look(self) -> None:
        """Look once."""
        pids = descendants(self._pid)
        inodes = set().union(*map(socket_inodes, pids))
        entries = []
        for name in ("tcp", "tcp6"):
            with contextlib.suppress(OSError):
                entries += parse_table(Path(f"/proc/{self._pid}/net/{name}").read_text())
        for entry in opened(entries):
            to = (entry.address, entry.port)
            if entry.inode in inodes and to not in self._told and self._is_wanted(*to):
                self._told.add(to)
                self._report(
                    f"a connection to {entry.address} port {entry.port} goes past MSTCP: the program opened "
                    "it by a system call of its own: --intercept namespace takes those"
                )
