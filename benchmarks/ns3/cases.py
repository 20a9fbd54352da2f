"""The runs that are made in both simulators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .descriptions import Description

PATHS = (("T0 S0 S4 T2", "T0 S0 S2 S3 S4 T2"), ("T1 S1 S5 T3", "T1 S1 S2 S3 S5 T3"))
REQUESTED_BPS = (8.95e6, 31.32e6)
RATES_BPS = ((4.475e6, 4.475e6), (26.85e6, 4.47e6))
# Variant a of the butterfly (docs/butterfly.md): Mbit/s, microseconds.
BUTTERFLY = (
    ("T0", "S0", 80, 1000.0),
    ("T1", "S1", 80, 1000.0),
    ("S4", "T2", 80, 1000.0),
    ("S5", "T3", 80, 1000.0),
    ("S0", "S4", 5, 1000.0),
    ("S2", "S3", 10, 1000.0),
    ("S1", "S5", 30, 4000.0),
    ("S1", "S2", 10, 1000.0),
    ("S3", "S5", 15, 1000.0),
    ("S0", "S2", 10, 1000.0),
    ("S3", "S4", 5, 1000.0),
)
LOSSES = (0.001, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05)
LOSSY_RATE_BPS = 10e6


@dataclass(frozen=True)
class Run:
    """A run: the case it belongs to, and the simulator's description of it."""

    case: str
    seed: int
    description: Description


def queues(seeds: int) -> Iterator[Run]:
    """Yield runs of the butterfly's case 2 with MSTCP, SACK and queues of 50 packets."""
    for seed in range(1, seeds + 1):
        links = [
            {"ends": [a, b], "rate_bps": rate * 1e6, "delay_us": delay, "queue_packets": 50}
            for a, b, rate, delay in BUTTERFLY
        ]
        flows = [_butterfly_flow(index) for index in (0, 1)]
        yield Run("queues", seed, _description(seed, 120.0, True, links, flows))


def _butterfly_flow(index: int) -> Description:
    paths = zip(PATHS[index], RATES_BPS[index], strict=True)
    return {
        "name": str(index + 1),
        "src": f"T{index}",
        "dst": f"T{index + 2}",
        "protocol": "mstcp",
        "traffic": {"kind": "cbr", "rate_bps": REQUESTED_BPS[index]},
        "paths": [{"path": path.split(), "rate_bps": rate} for path, rate in paths],
        "mstcp": {"binding": "early", "scheduler": "stochastic"},
    }


def losses(seeds: int) -> Iterator[Run]:
    """Yield runs of a busy TCP over a link that loses packets of both directions; with SACK and without."""
    for sack in (True, False):
        for loss in LOSSES:
            for seed in range(1, seeds + 1):
                links = [
                    {"ends": ["T0", "S0"], "rate_bps": 100e6, "delay_us": 1000.0},
                    {"ends": ["S0", "T1"], "rate_bps": LOSSY_RATE_BPS, "delay_us": 10000.0, "loss": loss},
                ]
                flow = {
                    "name": "1",
                    "src": "T0",
                    "dst": "T1",
                    "protocol": "tcp",
                    "traffic": {"kind": "cbr", "rate_bps": LOSSY_RATE_BPS},
                    "paths": [{"path": ["T0", "S0", "T1"], "rate_bps": LOSSY_RATE_BPS}],
                }
                yield Run(
                    f"{'sack' if sack else 'none'} {loss}",
                    seed,
                    _description(seed, 60.0, sack, links, [flow]),
                )


def _description(
    seed: int, duration_s: float, sack: bool, links: list[Description], flows: list[Description]
) -> Description:
    return {
        "format": 1,
        "seed": seed,
        "duration_s": duration_s,
        "packet_overhead_bytes": 22,
        "links": links,
        "tcp": {"profile": "ns3", "sack": sack, "pacing": "off"},
        "flows": flows,
    }
