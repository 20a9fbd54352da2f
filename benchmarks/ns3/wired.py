"""Runs one TCP over a wire in ns-3 and in the simulator at many settings: python -m benchmarks.ns3.wired.

Renews the table of docs/simulator.md. It needs what `python -m benchmarks.ns3` needs, and keeps what ns-3 has
given in build/ns3/wired.jsonl.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.command_line import command_line
from benchmarks.pages import markdown_table, renew
from benchmarks.tables.cells import spread

from .cases import Run
from .descriptions import Description
from .outcomes import Outcome
from .programs import is_compiled, run_missing
from .runs import LIBRARIES, in_ns3, ours

DURATION_S = 15.0
BASE: Mapping[str, Any] = {
    "mbps": 10,
    "delay_ms": 10,
    "queue": 100,
    "loss": 0.0,
    "congestion_control": "reno",
    "sack": True,
    "mss_bytes": 1448,
    "initial_window_segments": 10,
    "delayed_ack_segments": 2,
    "buffer_bytes": 1_000_000,
    "recovery": "prr",
}
"""The setting that each row departs from."""

ROWS: tuple[Mapping[str, Any], ...] = (
    {},
    {"mbps": 1},
    {"mbps": 100},
    {"delay_ms": 1},
    {"delay_ms": 50},
    {"delay_ms": 100},
    {"queue": 10},
    {"queue": 400},
    {"mss_bytes": 536},
    {"initial_window_segments": 1, "delay_ms": 100},
    {"delayed_ack_segments": 1},
    {"buffer_bytes": 65_536, "delay_ms": 100},
    {"buffer_bytes": 131_072, "mbps": 100, "delay_ms": 50},
    {"recovery": "classic"},
    {"sack": False},
    {"sack": False, "queue": 10, "delay_ms": 50},
    {"loss": 0.0001, "mbps": 100},
    {"loss": 0.001},
    {"loss": 0.01},
    {"loss": 0.01, "sack": False, "recovery": "classic"},
    {"congestion_control": "cubic"},
    {"congestion_control": "cubic", "mbps": 100, "delay_ms": 50},
    {"congestion_control": "cubic", "queue": 10, "delay_ms": 50},
    {"congestion_control": "cubic", "loss": 0.001},
    {"congestion_control": "cubic", "loss": 0.01, "sack": False},
    {"congestion_control": "bbr"},
    {"congestion_control": "bbr", "mbps": 100},
    {"congestion_control": "bbr", "delay_ms": 100},
    {"congestion_control": "bbr", "loss": 0.001},
    {"congestion_control": "bbr", "loss": 0.01, "sack": False},
)


def description(changes: Mapping[str, Any], seed: int) -> Description:
    """Return a run: a source that never lacks data, a fast wire of 1 ms, and the bottleneck."""
    setting = {**BASE, **changes}
    rate_bps = setting["mbps"] * 1e6
    slow = {
        "ends": ["S0", "T1"],
        "rate_bps": rate_bps,
        "delay_us": setting["delay_ms"] * 1e3,
        "queue_packets": setting["queue"],
        "loss": setting["loss"],
    }
    of_tcp = ("sack", "mss_bytes", "initial_window_segments", "delayed_ack_segments", "recovery")
    tcp = {
        "profile": "ns3",
        "congestion_control": setting["congestion_control"],
        "send_buffer_bytes": setting["buffer_bytes"],
        "receive_buffer_bytes": setting["buffer_bytes"],
        **{key: setting[key] for key in of_tcp},
    }
    flow = {
        "name": "1",
        "src": "T0",
        "dst": "T1",
        "protocol": "tcp",
        "traffic": {"kind": "cbr", "rate_bps": 1.5 * rate_bps},
        "paths": [{"path": ["T0", "S0", "T1"], "rate_bps": rate_bps}],
    }
    return {
        "format": 1,
        "seed": seed,
        "duration_s": DURATION_S,
        "packet_overhead_bytes": 22,
        "links": [{"ends": ["T0", "S0"], "rate_bps": 10 * rate_bps, "delay_us": 1000.0}, slow],
        "tcp": tcp,
        "flows": [flow],
    }


def label(changes: Mapping[str, Any]) -> str:
    """Return what a row departs in, in words."""
    words = {
        "mbps": "{} Mbit/s",
        "delay_ms": "{} ms",
        "queue": "queue of {}",
        "loss": "loss {:g} %",
        "mss_bytes": "segments of {} bytes",
        "initial_window_segments": "initial window {}",
        "delayed_ack_segments": "an ACK for each segment",
        "buffer_bytes": "buffers of {} bytes",
        "recovery": "{} recovery",
        "sack": "no SACK",
    }
    control = {"cubic": "CUBIC", "bbr": "BBR"}.get(changes.get("congestion_control", ""), "")
    shown = {**changes, "loss": 100 * changes["loss"]} if "loss" in changes else changes
    parts = [words[key].format(value) for key, value in shown.items() if key in words]
    return ", ".join(filter(None, [control, *parts])) or "as above"


def runs(seeds: int) -> Iterator[Run]:
    """Yield the runs of all rows."""
    for changes in ROWS:
        for seed in range(1, seeds + 1):
            yield Run(label(changes), seed, description(changes, seed))


def table_lines(pairs: Mapping[str, Sequence[tuple[Outcome, Outcome]]]) -> Iterator[str]:
    """Yield the table: goodput and segments sent again, means over the seeds and what these span."""
    count = min(len(each) for each in pairs.values())
    head = (f"setting, {count} seeds", "ns-3, Mbit/s", "ours", "ours / ns-3", "sent again: ns-3", "ours")
    rows = []
    for name, each in pairs.items():
        sides = [[run.streams[0] for run in side] for side in zip(*each, strict=True)]
        rates = [[stream.goodput_bps / 1e6 for stream in side] for side in sides]
        ratio = statistics.fmean(rates[1]) / statistics.fmean(rates[0])
        again = [f"{statistics.fmean(stream.resent for stream in side):.0f}" for side in sides]
        spans = (spread(side, digits=3) for side in rates)
        rows.append((name, *spans, f"{ratio:.3f}", *again))
    return markdown_table(head, rows)


def main() -> int:
    """Run what is missing and write the table; returns the exit status."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="of each setting (a second each in ns-3)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs of ns-3 at once")
    args = parser.parse_args()
    if not is_compiled("runs", LIBRARIES):
        return 1
    all_runs = list(runs(args.seeds))
    given = (((run.case, run.seed), run) for run in all_runs)
    outcomes = run_missing("wired.jsonl", given, lambda run: in_ns3(run).document(), args.jobs)
    pairs: dict[str, list[tuple[Outcome, Outcome]]] = {}
    for run in all_runs:
        theirs = Outcome.read(outcomes[run.case, run.seed])
        pairs.setdefault(run.case, []).append((theirs, ours(run)))
    renew("simulator.md", "ns-3 wired", table_lines(pairs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
