"""What switches count: the packets and bytes of ports, and the bytes of the rules that pin connections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from controller.model.rules import TcpConnection

PinnedBy = TcpConnection | str
"""What a rule of flows looks at: a connection, the stamp of a split flow's path, or a label."""


@dataclass(frozen=True)
class PortCounters:
    """What a switch has counted at a port in `age_s`, the time since it was made."""

    received_packets: int
    sent_packets: int
    received_bytes: int
    sent_bytes: int
    received_dropped: int
    sent_dropped: int
    received_errors: int
    sent_errors: int
    age_s: float


class RuleCount(NamedTuple):
    """What has matched a rule."""

    packets: int
    bytes: int


class PinnedCount(NamedTuple):
    """Bytes of whole frames that a pinned rule has sent out of a port; None: a group chooses the port."""

    out_port: int | None
    total_bytes: int
