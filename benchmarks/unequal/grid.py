"""The cases: pairs of paths, sizes and conditions; data alone."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

KINDS = ("tcp0", "tcp1", "mstcp", "mptcp")
TWO_TCPS = "tcps"


@dataclass(frozen=True)
class Path:
    """One path: rate on the wire in Mbit/s, one-way delay and jitter in ms, part of the packets lost."""

    rate_mbps: float
    delay_ms: float
    loss: float = 0.0
    jitter_ms: float = 0.0

    def shape(self, queue_packets: int) -> dict[str, float]:
        """Return it as links take it."""
        return {
            "rate_bps": self.rate_mbps * 1e6,
            "delay_us": self.delay_ms * 1e3,
            "jitter_us": self.jitter_ms * 1e3,
            "loss": self.loss,
            "queue_packets": queue_packets,
        }

    def __str__(self) -> str:
        text = f"{self.rate_mbps:g}@{self.delay_ms:g}"
        text += f" loss {100 * self.loss:g} %" if self.loss else ""
        return text + (f" jitter {self.jitter_ms:g}" if self.jitter_ms else "")


@dataclass(frozen=True)
class Case:
    """Two paths, the bytes that are sent over them, and the congestion control of all connections."""

    paths: tuple[Path, Path]
    size_bytes: int
    congestion_control: str = "cubic"

    @property
    def kinds(self) -> tuple[str, ...]:
        """What is measured: where the paths are alike also two TCPs, with half of the bytes each."""
        return (*KINDS, TWO_TCPS) if self.paths[0] == self.paths[1] else KINDS

    def __str__(self) -> str:
        paths = " + ".join(map(str, self.paths))
        return f"{paths}, {self.size_bytes:,} bytes, {self.congestion_control}"


PAIRS = (
    ((100, 1), (10, 30)),
    ((100, 1), (100, 150)),
    ((100, 30), (2, 150)),
    ((10, 30), (10, 30)),
    ((2, 150), (2, 150)),
    ((100, 5), (100, 50)),
    ((300, 10), (80, 30)),
    ((30, 10), (10, 1)),
    ((10, 10), (2, 1)),
    ((500, 100), (75, 10)),
    ((50, 20), (50, 20)),
)
"""Mbit/s and one-way ms of the paths of `--quick`; the first five are those of a report of slow openings."""
SIZES = (100_000, 1_000_000, 10_000_000)

RATES_MBPS = (2, 10, 100, 1000)
DELAYS_MS = (1, 10, 50, 300)
ALL_SIZES = (10_000, *SIZES, 100_000_000)
MAX_S = 60.0
"""Transfers that would last longer on both paths together are left out of the full grid."""
CONDITIONS = ((0.0, 0.0), (0.001, 0.0), (0.0, 2.0))
"""Loss, and jitter in ms, of both paths."""


def quick() -> list[Case]:
    """Return the cases that take minutes."""
    return [Case(_pair(*pair), size) for pair in PAIRS for size in SIZES]


def full() -> list[Case]:
    """Return the whole grid, which takes hours: CUBIC and BBR, with loss and with jitter."""
    single = list(itertools.product(RATES_MBPS, DELAYS_MS))
    pairs = list(itertools.combinations_with_replacement(single, 2))
    cases: list[Case] = []
    for control, (loss, jitter_ms) in itertools.product(("cubic", "bbr"), CONDITIONS):
        for first, second in pairs:
            paths = _pair(first, second, loss, jitter_ms)
            most_bytes = MAX_S * sum(path.rate_mbps for path in paths) * 1e6 / 8
            cases += [Case(paths, size, control) for size in ALL_SIZES if size <= most_bytes]
    return cases


def _pair(
    first: tuple[float, float], second: tuple[float, float], loss: float = 0.0, jitter_ms: float = 0.0
) -> tuple[Path, Path]:
    return Path(*first, loss, jitter_ms), Path(*second, loss, jitter_ms)
