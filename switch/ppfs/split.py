"""The splitter's flows, splits and counters as bytes, the layouts of splitter.bpf.c. Pure.

Path i of a split takes the 32-bit draws from `thresholds[i - 1]` up to, but not including, `thresholds[i]`.
The last threshold is 2**32, so that every draw has a path, and a path of share 0 has no draw.
"""

from __future__ import annotations

import ipaddress
import math
import re
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from switch.errors import InvalidSplit

MAX_FLOWS = 1024
MAX_PATHS = 16
DRAWS = 2**32
SHARE_TOLERANCE = 1e-6
"""How far from 1 the sum of shares may be: they come from a solver. They are then divided by it."""

KEY = struct.Struct("!16s16sHHB3x")
_IPV4_MAPPED = bytes(10) + b"\xff\xff"
SPLIT = struct.Struct(f"={MAX_PATHS}Q{6 * MAX_PATHS}s")
_COUNT = struct.Struct("=QQ")
COUNTERS_BYTES = MAX_PATHS * _COUNT.size
_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
_GROUP_ADDRESS = 1


@dataclass(frozen=True)
class FlowKey:
    """The five values in a packet that tell one flow from the others.

    Attributes:
        source_ip: IP address; `destination_ip` is another of the same version.
        source_port: 1 to 65535; so is `destination_port`.
        protocol: 6 (TCP) or 17 (UDP).

    Raises:
        InvalidSplit: a value is none of these.
    """

    source_ip: str
    destination_ip: str
    source_port: int
    destination_port: int
    protocol: int = socket.IPPROTO_TCP

    def __post_init__(self) -> None:
        versions = [_version(name, getattr(self, name)) for name in ("source_ip", "destination_ip")]
        if len(set(versions)) > 1:
            raise InvalidSplit("destination_ip", f"{self.destination_ip} is not of IPv{versions[0]}")
        for name in ("source_port", "destination_port"):
            if not 1 <= getattr(self, name) <= 65535:
                raise InvalidSplit(name, f"{getattr(self, name)} is not a port from 1 to 65535")
        if self.protocol not in (socket.IPPROTO_TCP, socket.IPPROTO_UDP):
            raise InvalidSplit("protocol", f"{self.protocol} is neither 6 (TCP) nor 17 (UDP)")

    def __str__(self) -> str:
        name = "tcp" if self.protocol == socket.IPPROTO_TCP else "udp"
        ends = ((self.source_ip, self.source_port), (self.destination_ip, self.destination_port))
        source, destination = (f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for ip, port in ends)
        return f"{name} {source} -> {destination}"


def thresholds(shares: Sequence[float]) -> tuple[int, ...]:
    """Return the cumulative thresholds that give each path its share of the 32-bit draws.

    Each threshold is the exact sum of the shares, rounded once, so that no share is off by more than 2**-32.

    Args:
        shares: of the paths, 1 to 16 of them, none negative; 0 rests a path. Their sum is 1.

    Raises:
        InvalidSplit: they are not so.
    """
    if not 1 <= len(shares) <= MAX_PATHS:
        raise InvalidSplit("shares", f"there are {len(shares)}, not 1 to {MAX_PATHS}")
    wrong = next((share for share in shares if not (math.isfinite(share) and share >= 0)), None)
    if wrong is not None:
        raise InvalidSplit("shares", f"{wrong} is not a number from 0 to 1")
    exact = [Fraction(share) for share in shares]
    total = sum(exact, Fraction(0))
    if abs(float(total) - 1) > SHARE_TOLERANCE:
        raise InvalidSplit("shares", f"their sum is {float(total):.9g}, not 1")
    return tuple(round(DRAWS * sum(exact[: path + 1]) / total) for path in range(len(exact)))


def pack_key(flow: FlowKey) -> bytes:
    """Return a flow as the key that the program makes of its packets."""
    packed = (ipaddress.ip_address(text).packed for text in (flow.source_ip, flow.destination_ip))
    source, destination = (each if len(each) == 16 else _IPV4_MAPPED + each for each in packed)
    return KEY.pack(source, destination, flow.source_port, flow.destination_port, flow.protocol)


def pack_split(shares: Sequence[float], stamps: Sequence[str]) -> bytes:
    """Return a split as the program reads it.

    Args:
        shares: as for `thresholds`.
        stamps: the Ethernet source address that means the path, as `0a:50:50:00:01:00`; all different.

    Raises:
        InvalidSplit: shares or stamps are not so, or not as many.
    """
    limits = thresholds(shares)
    if len(stamps) != len(limits):
        raise InvalidSplit("stamps", f"there are {len(stamps)} for {len(limits)} shares")
    packed = [_pack_stamp(stamp) for stamp in stamps]
    if len(set(packed)) < len(packed):
        raise InvalidSplit("stamps", "two paths have the same one")
    return SPLIT.pack(*limits, *[DRAWS] * (MAX_PATHS - len(limits)), b"".join(packed))


def unpack_counters(values: bytes, paths: int) -> list[tuple[int, int]]:
    """Return packets and bytes of the first `paths` paths.

    Args:
        values: one record of counters for each CPU, one after the other.
        paths: how many paths are wanted.
    """
    totals = [(0, 0)] * paths
    for start in range(0, len(values), COUNTERS_BYTES):
        record = list(_COUNT.iter_unpack(values[start : start + COUNTERS_BYTES]))
        totals = [(total[0] + one[0], total[1] + one[1]) for total, one in zip(totals, record, strict=False)]
    return totals


def _version(name: str, text: str) -> int:
    try:
        return ipaddress.ip_address(text).version
    except ValueError:
        raise InvalidSplit(name, f"{text!r} is no IP address") from None


def _pack_stamp(stamp: str) -> bytes:
    if not _MAC.fullmatch(stamp):
        raise InvalidSplit("stamps", f"{stamp!r} is no Ethernet address as 0a:50:50:00:01:00")
    packed = bytes.fromhex(stamp.replace(":", ""))
    # A bridge or host may drop a frame whose source is a group.
    if packed[0] & _GROUP_ADDRESS:
        raise InvalidSplit("stamps", f"{stamp} is a group's address, which no frame has as its source")
    return packed
