"""Runs the scenario `wifi` in ns-3 and in the simulator at many settings: python -m benchmarks.ns3.wireless.

Renews the table of docs/simulator-wifi.md. It needs what `python -m benchmarks.ns3` needs, and keeps what
ns-3 has given in build/ns3/wifi.jsonl.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.command_line import command_line
from benchmarks.pages import markdown_table, renew
from benchmarks.tables.cells import spread
from experiments.sim import Simulation

from .programs import FOLDER, is_compiled, run_missing

LIBRARIES = (
    "wifi",
    "applications",
    "internet",
    "point-to-point",
    "mobility",
    "propagation",
    "network",
    "core",
)
DURATION_S = 10.0
HEADER_BYTES = 66
"""Ethernet, IPv4, and TCP with timestamps: what `packet_bytes` counts beyond a segment's data."""


@dataclass(frozen=True)
class Case:
    """A setting: what it differs in from the scenario, as `--set` has it and as the program's arguments."""

    label: str
    ours: Mapping[str, Any] = field(default_factory=dict)
    ns3: Mapping[str, Any] = field(default_factory=dict)


def cases() -> Iterator[Case]:
    """Yield what is compared: rates and distances, the link's keys, TCP's near and where frames are lost."""
    for standard, mbps, distance_m in (
        ("g", 54, 22),
        ("g", 48, 25),
        ("g", 36, 32),
        ("g", 24, 38),
        ("g", 18, 40),
        ("g", 12, 45),
        ("g", 6, 40),
        ("b", 11, 30),
        ("b", 5.5, 10),
        ("b", 2, 10),
    ):
        yield _radio(f"802.11{standard}, {mbps} Mbit/s, {distance_m} m", standard, mbps, distance_m)
    yield _radio("`nist`, 54 Mbit/s, 15 m", "g", 54, 15, {"error_model": "nist"}, {"error": "Nist"})
    yield _radio("`yans`, 24 Mbit/s, 35 m", "g", 24, 35, {"error_model": "yans"}, {"error": "Yans"})
    still = {"fading_near_shape": 1e6, "fading_far_shape": 1e6}
    yield _radio("no fading, 54 Mbit/s, 30 m", "g", 54, 30, still, {"fading": 0})
    yield _radio("slots of 20 µs, 54 Mbit/s, 22 m", "g", 54, 22, {"short_slot": False}, {"shortSlot": 0})
    announced = {"ns3::WifiRemoteStationManager::RtsCtsThreshold": 500}
    yield _radio("RTS from 501 bytes, 54 Mbit/s, 22 m", "g", 54, 22, {"rts_threshold_bytes": 501}, announced)
    flat, flat_ns3 = {"path_loss_exponent": 2.5}, {"exponent": 2.5}
    far = _radio("exponent 2.5, 36 Mbit/s, 30 m, 100 ms to the server", "g", 36, 30, flat, flat_ns3)
    yield Case(far.label, {**far.ours, "links.SRV-AP.delay_us": 1e5}, {**far.ns3, "delay": 100})
    flat, flat_ns3 = {**flat, "rts_threshold_bytes": 501}, {**flat_ns3, **announced}
    yield _radio("exponent 2.5, RTS from 501 bytes, 54 Mbit/s, 50 m", "g", 54, 50, flat, flat_ns3)
    yield from _far()
    for distance_m in (10, 22):
        for label, ours, ns3 in _tcp():
            radio = _radio(f"{label}, {distance_m} m", "g", 54, distance_m)
            yield Case(radio.label, {**radio.ours, **ours}, {**radio.ns3, **ns3})


def _far() -> Iterator[Case]:
    """Yield links at exponent 2.5 that lose many frames, and what TCP makes of that."""
    ours, ns3 = {"path_loss_exponent": 2.5}, {"exponent": 2.5}
    for mbps, distance_m in ((54, 45), (54, 60), (48, 75), (24, 60), (6, 75)):
        yield _radio(f"exponent 2.5, {mbps} Mbit/s, {distance_m} m", "g", mbps, distance_m, ours, ns3)
    slow = {"links.SRV-AP.delay_us": 50e3}, {"delay": 50}
    bare = {"tcp.sack": False}, {"ns3::TcpSocketBase::Sack": 0}
    for label, (tcp_ours, tcp_ns3) in (("50 ms to the server", slow), ("no SACK", bare)):
        radio = _radio(f"exponent 2.5, 54 Mbit/s, 50 m, {label}", "g", 54, 50, ours, ns3)
        yield Case(radio.label, {**radio.ours, **tcp_ours}, {**radio.ns3, **tcp_ns3})


def _radio(
    label: str,
    standard: str,
    mbps: float,
    distance_m: float,
    changes: Mapping[str, Any] | None = None,
    ns3: Mapping[str, Any] | None = None,
) -> Case:
    """Return a case at exponent 3; `changes` are keys of the wireless link."""
    link = {
        "wifi": f"802.11{standard}",
        "phy_rate_bps": mbps * 1e6,
        "distance_m": distance_m,
        "path_loss_exponent": 3.0,
        **(changes or {}),
    }
    name = "ErpOfdm" if standard == "g" else "Dsss"
    arguments = {
        "standard": link["wifi"],
        "mode": f"{name}Rate{str(mbps).replace('.', '_')}Mbps",
        "distance": distance_m,
        "exponent": 3,
        **(ns3 or {}),
    }
    return Case(label, {f"links.AP-STA.{key}": value for key, value in link.items()}, arguments)


def _tcp() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    for mss_bytes in (536, 1448):
        yield (
            f"segments of {mss_bytes} bytes",
            {"packet_bytes": mss_bytes + HEADER_BYTES},
            {"segment": mss_bytes},
        )
    for size in (65_536, 1_000_000):
        ours = {"tcp.send_buffer_bytes": size, "tcp.receive_buffer_bytes": size}
        yield f"buffers of {size} bytes", ours, _buffers(size)
    yield "an ACK for each segment", {"sim.delayed_ack_segments": 1}, {"ns3::TcpSocket::DelAckCount": 1}
    yield "no SACK", {"tcp.sack": False}, {"ns3::TcpSocketBase::Sack": 0}
    cubic = {"ns3::TcpL4Protocol::SocketType": "ns3::TcpCubic"}
    yield "CUBIC", {"tcp.congestion_control": "cubic"}, cubic
    classic = {"ns3::TcpL4Protocol::RecoveryType": "ns3::TcpClassicRecovery"}
    yield "classic recovery", {"sim.recovery": "classic"}, classic
    for delay_ms in (1, 100):
        yield f"{delay_ms} ms to the server", {"links.SRV-AP.delay_us": delay_ms * 1e3}, {"delay": delay_ms}
    yield "from the station", {"flows.1.src": "STA", "flows.1.dst": "SRV"}, {"up": 1}


def _buffers(size: int) -> dict[str, int]:
    return {"ns3::TcpSocket::SndBufSize": size, "ns3::TcpSocket::RcvBufSize": size}


def in_ns3(arguments: Mapping[str, Any]) -> float:
    """Return the bits per second that a run in ns-3 gives."""
    defaults = {
        "ns3::TcpL4Protocol::SocketType": "ns3::TcpNewReno",
        "seconds": DURATION_S,
        **_buffers(10_000_000),
    }
    command = [
        str(FOLDER / "wifi"),
        *(f"--{key}={value}" for key, value in {**defaults, **arguments}.items()),
    ]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def ours(case: Case, seeds: int) -> list[float]:
    """Return the goodput of runs of the scenario in the simulator."""
    study = Simulation.load("wifi", "1", settings=case.ours)
    results = study.run(["ospf"], seeds=range(1, seeds + 1), duration_s=DURATION_S)
    return [float(row["goodput_bps"]) for row in results.flows]


def table_lines(rates: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Iterator[str]:
    """Yield the table: means over seeds, and what the seeds span."""
    rows = []
    for label, sides in rates.items():
        ratio = statistics.fmean(sides[1]) / statistics.fmean(sides[0])
        rows.append((label, *(spread(side, 1e-6, 2) for side in sides), f"{ratio:.3f}"))
    return markdown_table(("setting", "ns-3", "ours", "ours / ns-3"), rows)


def main() -> int:
    """Run what is missing and write the table; returns the exit status."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="of each setting (some 5 s each in ns-3)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs of ns-3 at once")
    args = parser.parse_args()
    if not is_compiled("wifi", LIBRARIES):
        return 1
    seeds = range(1, args.seeds + 1)
    runs = [((case.label, seed), {**case.ns3, "seed": seed}) for case in cases() for seed in seeds]
    outcomes = run_missing("wifi.jsonl", runs, in_ns3, args.jobs)
    rates = {
        case.label: ([outcomes[case.label, seed] for seed in seeds], ours(case, args.seeds))
        for case in cases()
    }
    renew("simulator-wifi.md", "ns-3 wifi", table_lines(rates))
    return 0


if __name__ == "__main__":
    sys.exit(main())
