"""Attaches the program to a packet socket and reads what it has seen."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from switch.bpf import libbpf

OBJECT = Path(__file__).with_name("packet_digest.bpf.o")
PROGRAM = "digest_packets"
MAP = "interfaces"
SO_ATTACH_BPF = 50
"""Of <asm-generic/socket.h>; Python does not name it."""
ETH_P_ALL = 3
_DIGEST = struct.Struct("=QQQQ")


@dataclass(frozen=True)
class InterfaceDigest:
    """What was seen at one interface: packets in both directions, and a hash of them and their times."""

    packets: int
    size_bytes: int
    hash: int


class PacketDigest:
    """Watches interfaces of this network namespace; a context manager.

    Only the first 56 bytes of a packet and its length count, which cover the headers of TCP over IPv4.

    Args:
        interfaces: their names.
        start_ns: on CLOCK_MONOTONIC: times are counted from here, and packets before it are passed over.

    Raises:
        BpfUnavailable: libbpf, the kernel's part or the right to it is missing.
        BpfFailed: the kernel refuses the program.
    """

    def __init__(self, interfaces: Iterable[str], start_ns: int) -> None:
        self._indices = {name: socket.if_nametoindex(name) for name in interfaces}
        self._socket: socket.socket | None = None
        self._object = libbpf.BpfObject(OBJECT)
        try:
            self._map = self._object.map(MAP)
            for index in self._indices.values():
                libbpf.update(self._map, _key(index), _DIGEST.pack(start_ns, 0, 0, 0))
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_BPF, self._object.program(PROGRAM))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> PacketDigest:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self) -> dict[str, InterfaceDigest]:
        """Return what was seen so far at each interface."""
        seen = {}
        for name, index in self._indices.items():
            value = libbpf.look_up(self._map, _key(index), _DIGEST.size)
            _, packets, size_bytes, hashed = _DIGEST.unpack(value)
            seen[name] = InterfaceDigest(packets, size_bytes, hashed)
        return seen

    def close(self) -> None:
        """Let go of socket and program. Does nothing the second time."""
        watching, self._socket = self._socket, None
        if watching is not None:
            watching.close()
        self._object.close()


def _key(index: int) -> bytes:
    return index.to_bytes(4, sys.byteorder)
