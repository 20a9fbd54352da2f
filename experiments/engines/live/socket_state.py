"""What the kernel says of connections (`ss -ti`) and of a host's TCP (`nstat`)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.model.evidence import ConnectionEvidence
from switch.tcp import given_name

if TYPE_CHECKING:
    from topologies.mininet_builder import Emulation

_LINE = re.compile(r"^(\S+)\s+\d+\s+\d+\s+\[?(\S+?)\]?:(\d+)\s+\S+?:(\d+)\s+(.*)$")
_FLAGS = ("ts", "sack", "ecn", "ecnseen", "fastopen")
"""What `ss` writes before the name of the congestion control."""
_COUNTS = ("bytes_sent", "bytes_retrans", "bytes_acked", "data_segs_out", "retrans", "lost")
_STATE = ("cwnd", "ssthresh", "mss", "reordering", "reord_seen", "dsack_dups")
_COUNTERS = ("Tcp", "MPTcp")


@dataclass(frozen=True)
class SocketState:
    """One TCP connection, or MPTCP subflow, at the side that sends.

    Attributes:
        rtt_s: The smoothed round-trip time (RFC 6298, SRTT); None before the first measurement.
        is_open: Whether its handshake is over, and so its options agreed on.
    """

    source_ip: str
    source_port: int
    destination_port: int
    congestion_control: str | None
    is_subflow: bool
    options: tuple[str, ...]
    rtt_s: float | None
    counts: dict[str, int]
    is_open: bool = True

    def evidence(self) -> ConnectionEvidence:
        """Return it as it stands in the results."""
        return ConnectionEvidence(
            source_ip=self.source_ip,
            source_port=self.source_port,
            congestion_control=self.congestion_control,
            options=list(self.options),
            rtt_s=self.rtt_s,
            counters=dict(self.counts),
        )


def parse_sockets(text: str) -> list[SocketState]:
    """Return the connections that `ss -tinoHO` printed, by source port."""
    sockets = [_socket(match) for line in text.splitlines() if (match := _LINE.match(line.strip()))]
    return sorted(sockets, key=lambda each: each.source_port)


def _socket(match: re.Match[str]) -> SocketState:
    words = match[5].split()
    options = tuple(word for word in words if word in _FLAGS)
    names = (word for word in words if word not in _FLAGS and ":" not in word and not word.startswith("("))
    counts: dict[str, int] = {}
    rtt_s = None
    for word in words:
        name, _, value = word.partition(":")
        # Retransmissions are `retrans:NOW/EVER`.
        number = value.rpartition("/")[2]
        if name in (*_COUNTS, *_STATE) and number.isdigit():
            counts[name] = int(number)
        elif name == "rtt":  # SRTT and its variation, in milliseconds
            rtt_s = float(value.partition("/")[0]) / 1000
    return SocketState(
        source_ip=match[2],
        source_port=int(match[3]),
        destination_port=int(match[4]),
        congestion_control=next(map(given_name, names), None),
        is_subflow="tcp-ulp-mptcp" in words,
        options=options,
        rtt_s=rtt_s,
        counts=counts,
        is_open=not match[1].startswith("SYN-"),
    )


def read_sockets(emulation: Emulation, host: str, ports: range) -> list[SocketState]:
    """Return a host's connections to destination ports of a range."""
    those = f"( dport >= :{ports[0]} and dport <= :{ports[-1]} )"
    # Without -o it leaves out which TCP options the ends agreed on.
    return parse_sockets(emulation.run(host, ["ss", "-tinoHO", those]).stdout)


def read_counters(emulation: Emulation, host: str) -> dict[str, int]:
    """Return a host's counters of TCP and MPTCP that are not 0, since it was made."""
    # Without a history of its own nstat would count from the last time it was asked on this machine.
    text = emulation.run(host, ["nstat", "--json", "--ignore", "--noupdate"]).stdout
    counters: dict[str, int] = json.loads(text)["kernel"]
    return {name: count for name, count in counters.items() if name.startswith(_COUNTERS) and count}
