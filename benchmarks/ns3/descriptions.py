"""A run's description for ns-3: the same network, sources, draws and TCP settings as the simulator's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

UNLIMITED_PACKETS = 1_000_000
FRAME_HEADER_BYTES = 8
MASK = (1 << 64) - 1
LOSS, SCHEDULE = 1, 4
CONTROLS = {"reno": "TcpNewReno", "cubic": "TcpCubic", "bbr": "TcpBbr"}

Description = dict[str, Any]


class UnsupportedDescriptionError(Exception):
    """The program for ns-3 lacks something that a description asks for."""


def splitmix64(seed: int) -> int:
    """Return the first 64 bits of SplitMix64's sequence of `seed` (`mstcp_proto::rng`)."""
    z = (seed + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def derive_seed(seed: int, purpose: int, index: int) -> int:
    """Return the seed of `purpose` number `index` in a run of seed `seed` (`netsim::random`)."""
    salt = splitmix64(purpose)
    salted = splitmix64(seed) ^ ((salt << 17 | salt >> 47) & MASK)
    return splitmix64((salted + index * 0xD1342543DE82EF95) & MASK)


def lines(description: Description) -> Iterator[str]:
    """Yield a run for the program (runs.cc), line by line.

    Raises:
        UnsupportedDescriptionError: the program does not do what is asked for.
    """
    tcp = description["tcp"]
    if tcp.get("profile") != "ns3" or description.get("packet_overhead_bytes") != 22:
        raise UnsupportedDescriptionError("ns-3 runs have profile ns3 and 22 bytes in front of TCP's")
    if tcp.get("pacing") != "off" and any(flow["protocol"] == "mstcp" for flow in description["flows"]):
        raise UnsupportedDescriptionError("ns-3 runs pace nothing, and MSTCP is paced unless pacing is off")
    yield from defaults(tcp)
    seed = description["seed"]
    yield f"seed {seed}"
    yield f"duration {description['duration_s']}"
    for index, link in enumerate(description["links"]):
        queue = link.get("queue_packets", UNLIMITED_PACKETS)
        seeds = [derive_seed(seed, LOSS, 2 * index + side) for side in (0, 1)]
        delay_ns = round(link["delay_us"] * 1000)
        numbers = [round(link["rate_bps"]), delay_ns, queue, link.get("loss", 0.0), *seeds]
        yield f"link {' '.join(link['ends'])} {' '.join(str(number) for number in numbers)}"
    for index, flow in enumerate(description["flows"]):
        yield from flow_lines(flow, tcp.get("mss_bytes", 536), derive_seed(seed, SCHEDULE, index))


def defaults(tcp: Description) -> Iterator[str]:
    """Yield TCP's settings as ns-3's attributes: the papers', unless the description gives others."""
    recovery = {"classic": "TcpClassicRecovery", "prr": "TcpPrrRecovery"}[tcp.get("recovery", "classic")]
    control = CONTROLS[tcp.get("congestion_control", "reno")]
    settings = {
        "TcpL4Protocol::SocketType": f"ns3::{control}",
        "TcpL4Protocol::RecoveryType": f"ns3::{recovery}",
        "TcpSocket::SegmentSize": tcp.get("mss_bytes", 536),
        "TcpSocket::SndBufSize": tcp.get("send_buffer_bytes", 131_072),
        "TcpSocket::RcvBufSize": tcp.get("receive_buffer_bytes", 131_072),
        "TcpSocket::InitialCwnd": tcp.get("initial_window_segments", 10),
        "TcpSocket::DelAckCount": tcp.get("delayed_ack_segments", 2),
        "TcpSocketBase::Sack": str(tcp.get("sack", True)).lower(),
        "TcpSocketBase::LimitedTransmit": str(tcp.get("limited_transmit", True)).lower(),
    }
    for name, value in settings.items():
        yield f"default ns3::{name} {value}"


def flow_lines(flow: Description, mss_bytes: int, seed: int) -> Iterator[str]:
    """Yield a flow and its paths."""
    traffic, paths = flow["traffic"], flow["paths"]
    settings = flow.get("mstcp", {})
    if traffic["kind"] not in ("cbr", "bulk") or (len(paths) > 1 and flow["protocol"] != "mstcp"):
        raise UnsupportedDescriptionError(
            "ns-3 runs have constant rates or bulk data, and several paths with mstcp only"
        )
    sender = (settings.get("binding"), settings.get("scheduler"))
    if flow["protocol"] == "mstcp" and sender != ("early", "stochastic"):
        raise UnsupportedDescriptionError("ns-3 runs bind early and draw streams")
    framed = flow["protocol"] == "mstcp" and len(paths) > 1
    payload = mss_bytes - (FRAME_HEADER_BYTES if framed else 0)
    rate_bps = round(traffic["rate_bps"]) if traffic["kind"] == "cbr" else 0
    yield f"flow {flow['name']} {rate_bps} {payload} {mss_bytes} {seed}"
    for path in paths:
        yield f"path {path.get('rate_bps', 1)} {' '.join(path['path'])}"
