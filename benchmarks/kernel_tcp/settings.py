"""Compares goodput in the simulator with the virtual kernel's where nothing but a full queue loses packets.

    python -m benchmarks.kernel_tcp.settings --seeds 3

Prints rows of the table in docs/tcp.md: Mbit/s of both with 95 % intervals, and their ratio. `python -m
benchmarks.kernel_tcp losses` has those with random loss.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command_line import command_line
from experiments.analysis.statistics import estimate
from experiments.model.results import Results

FRAME_BYTES = 1514
SCENARIO = """
format = 1
name = "settings"
network = "parallel2"
packet_bytes = 1514
warm_up_s = 5.0
drain_s = 300.0

[tcp]
send_buffer_bytes = 8_000_000
receive_buffer_bytes = 16_000_000
no_metrics_save = true

[mptcp]
send_buffer_bytes = 8_000_000
receive_buffer_bytes = 16_000_000

[cases.1.flows.1]
src = "A1"
dst = "B1"
requested_bps = 27e6
workload = { kind = "bulk", size_bytes = 100_000_000_000 }
"""


@dataclass(frozen=True)
class Bottleneck:
    """A bottleneck: round trip in ms, queue in bandwidth-delay products."""

    round_trip_ms: float
    queue_bdp: float
    rate_bps: float = 20e6

    def settings(self, name: str) -> Iterator[str]:
        """Return it as `--set` has it, for the path over `name`."""
        bdp = self.rate_bps * self.round_trip_ms * 1e-3 / 8 / FRAME_BYTES
        narrow, wide = f"links.L-{name}", f"links.{name}-R"
        yield f"{narrow}.rate_bps={self.rate_bps}"
        # Three links of 1 ms are before and behind it.
        yield f"{narrow}.delay_us={self.round_trip_ms * 500 - 3000}"
        yield f"{narrow}.queue_packets={max(1, round(bdp * self.queue_bdp))}"
        yield f"{wide}.rate_bps=80e6"


SETTINGS: dict[str, tuple[str, tuple[Bottleneck, ...]]] = {
    "CUBIC, 10 ms, 1 BDP": ("cubic", (Bottleneck(10, 1),)),
    "CUBIC, 50 ms, 0.25 BDP": ("cubic", (Bottleneck(50, 0.25),)),
    "CUBIC, 200 ms, 4 BDP": ("cubic", (Bottleneck(200, 4),)),
    "Reno, 50 ms, 1 BDP": ("reno", (Bottleneck(50, 1),)),
    "BBR, 50 ms, 1 BDP": ("bbr", (Bottleneck(50, 1),)),
    "MPTCP of CUBIC, 20 Mbit/s of 10 ms and 10 of 100": (
        "cubic",
        (Bottleneck(10, 2), Bottleneck(100, 1, 10e6)),
    ),
}


def goodputs_bps(engine: str, name: str, seeds: int, seconds: float, folder: Path) -> list[float]:
    """Run a setting in an engine; return the goodput of each seed."""
    control, paths = SETTINGS[name]
    # Paths are the shortest by delay: a single one leads over M1.
    given = [f"tcp.congestion_control={control}", "links.L-M2.delay_us=1e6"]
    for switch, path in zip(("M1", "M2"), paths, strict=False):
        given += path.settings(switch)
    file = folder / "settings.toml"
    file.write_text(SCENARIO)
    call = [sys.executable, "-m", "experiments.cli", "run", str(file), "--engine", engine, "--json"]
    call += ["--protocol", "mptcp-sdn" if len(paths) > 1 else "ospf", "--no-report"]
    call += ["--seeds", str(seeds), "--duration", str(seconds)]
    call += [word for each in given for word in ("--set", each)]
    text = subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [run.flows[0].goodput_bps for run in Results.model_validate_json(text).runs]


def _text(values_bps: list[float]) -> str:
    found = estimate([value / 1e6 for value in values_bps])
    assert found is not None
    width = f" ± {found.half_width:.2f}" if found.half_width is not None else ""
    return f"{found.mean:.2f}{width}"


def main() -> None:
    """Run all settings, or those that are named."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--duration", type=float, default=15.0)
    parser.add_argument("--only", default="", help="settings whose name has this word")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in (each for each in SETTINGS if arguments.only in each):
            kernel, simulated = (
                goodputs_bps(engine, name, arguments.seeds, arguments.duration, Path(folder))
                for engine in ("virtual", "sim")
            )
            ratio = sum(simulated) / sum(kernel)
            print(f"| {name} | {_text(kernel)} | {_text(simulated)} | {ratio:.3f} |", flush=True)


if __name__ == "__main__":
    main()
