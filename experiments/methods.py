"""`mstcp-lab methods KIND`: a method of one's own beside all built-in ones, with the same seeds."""

from __future__ import annotations

import argparse
import copy
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import netsim_native as sim
from rich.console import Console
from rich.table import Table

from experiments import runner, scenario, scheduling
from experiments.analysis.statistics import Estimate, estimate
from experiments.engines.sim.engine import CONGESTION_CONTROLS
from experiments.engines.sim.methods import load
from experiments.engines.sim.process import SimulationFailed
from experiments.errors import RunFailed, ScenarioError
from experiments.scheduling.progress import RunsProgress
from experiments.scheduling.scheduler import each
from experiments.scheduling.simulator import simulator

MEGA = 1e-6
DURATION_S = 20.0
MPTCP: dict[str, Any] = {
    "format": 1,
    "tcp": {"profile": "linux", "mss_bytes": 1400, "congestion_control": "reno"},
    "links": [
        {"ends": ["S", "A"], "rate_bps": 20e6, "delay_us": 5000, "queue_packets": 50, "loss": 0.0005},
        {"ends": ["A", "D"], "rate_bps": 1e9, "delay_us": 10},
        {"ends": ["S", "B"], "rate_bps": 10e6, "delay_us": 30000, "queue_packets": 50, "loss": 0.0005},
        {"ends": ["B", "D"], "rate_bps": 1e9, "delay_us": 10},
    ],
    "flows": [
        {
            "name": "1",
            "src": "S",
            "dst": "D",
            "protocol": "mptcp",
            "traffic": {"kind": "bulk"},
            "paths": [{"path": ["S", "A", "D"]}, {"path": ["S", "B", "D"]}],
            "mptcp": {"receive_buffer_bytes": 400_000, "congestion_control": "uncoupled"},
        }
    ],
}
"""Two paths of unlike rate and delay, and a receive window that the slow one can block."""
SPLIT: dict[str, Any] = {
    "format": 1,
    "tcp": {"profile": "rfc", "mss_bytes": 1400, "rto_min_s": 0.2, "receive_buffer_bytes": 1_000_000},
    "links": [
        *MPTCP["links"][:2],
        {**MPTCP["links"][2], "rate_bps": 20e6, "delay_us": 9000},
        MPTCP["links"][3],
    ],
    "flows": [
        {
            "name": "1",
            "src": "S",
            "dst": "D",
            "protocol": "tcp",
            "traffic": {"kind": "bulk"},
            "paths": [{"path": ["S", "A", "D"]}, {"path": ["S", "B", "D"]}],
            "ack_path": "reverse",
        }
    ],
}
"""One TCP whose packets take one of two paths each: a quarter of them overtakes others, few are lost."""
SINGLE: dict[str, Any] = {
    "format": 1,
    "tcp": {"profile": "linux", "mss_bytes": 1400},
    "links": [{"ends": ["S", "D"], "rate_bps": 20e6, "delay_us": 20000, "queue_packets": 60, "loss": 0.0005}],
    "flows": [{"name": "1", "src": "S", "dst": "D", "protocol": "tcp", "traffic": {"kind": "bulk"}}],
}
"""One TCP over one link that loses a packet now and then."""


@dataclass(frozen=True)
class Kind:
    """What is compared: where its name stands in a description, those built in, and what needs what."""

    base: Mapping[str, Any]
    place: Callable[[dict[str, Any]], dict[str, Any]]
    key: str
    built_in: tuple[str, ...]


def _tcp(description: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = description["tcp"]
    return found


def _mptcp(description: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = description["flows"][0]["mptcp"]
    return found


KINDS = {
    "schedulers": Kind(MPTCP, _mptcp, "scheduler", scenario.SCHEDULERS),
    "coupled": Kind(MPTCP, _mptcp, "congestion_control", scenario.COUPLED_CONTROLS),
    "congestion": Kind(SINGLE, _tcp, "congestion_control", CONGESTION_CONTROLS),
    "reordering": Kind(SPLIT, _tcp, "reordering", scenario.RESPONSES),
}
FIGURES: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    "goodput_mbps": lambda flow: flow["goodput_bps"] * MEGA,
    "delay_mean_ms": lambda flow: (flow["delay_s"] or {"mean": 0.0})["mean"] * 1e3,
    "out_of_order_pct": lambda flow: (flow["out_of_order_ratio"] or 0.0) * 100,
    "buffer_max_kb": lambda flow: (flow["reorder_buffer_max_bytes"] or 0) * 1e-3,
    "retransmits": lambda flow: sum(stream["retransmits"] for stream in flow["streams"]),
    "spurious": lambda flow: sum(stream["spurious_retransmits"] for stream in flow["streams"]),
}

HEADINGS = ("Mbit/s", "delay ms", "out of order %", "buffer kB", "resent", "of these needless")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `methods` to a parser."""
    parser.add_argument("kind", choices=tuple(KINDS), metavar="KIND", help=f"one of {', '.join(KINDS)}")
    parser.add_argument(
        "--own",
        action="append",
        default=[],
        metavar="FILE.py:NAME",
        help="a class of one's own, or MODULE:NAME; repeatable",
    )
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="seeds 1 to N (default 5)")
    parser.add_argument(
        "--duration", type=float, default=DURATION_S, metavar="S", help=f"seconds (default {DURATION_S:g})"
    )
    scheduling.add_argument(parser)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON and nothing else")
    parser.set_defaults(command=main)


def main(args: argparse.Namespace) -> int:
    """Compare; returns the exit status.

    Raises:
        ScenarioError: a method cannot be loaded, or an argument does not fit.
        ExperimentError: a run failed, or there is no such cluster.
    """
    kind = KINDS[args.kind]
    seeds = runner.seeds_up_to(args.seeds)
    names = [*kind.built_in, *args.own]
    runs = [(name, _description(kind, name, args.duration, seed)) for name in names for seed in seeds]
    for name, description in runs[:: len(seeds)]:
        _check(name, description)
    found = _run(runs, args.scheduler)
    figures = {
        name: {figure: estimate([of(flow) for flow in found[name]]) for figure, of in FIGURES.items()}
        for name in names
    }
    if args.json:
        sys.stdout.write(json.dumps(_document(args, figures), indent=1) + "\n")
    else:
        _print(args, figures)
    return 0


def _check(name: str, description: dict[str, Any]) -> None:
    try:
        sim.check(json.dumps(description), load)
    except sim.InvalidDescription as error:
        place, reason = error.args
        raise ScenarioError(name, place, reason) from None


def _description(kind: Kind, name: str, duration_s: float, seed: int) -> dict[str, Any]:
    description = copy.deepcopy(dict(kind.base))
    description |= {"seed": seed, "duration_s": duration_s, "warm_up_s": 1.0}
    kind.place(description)[kind.key] = name
    return description


def _run(
    runs: Sequence[tuple[str, dict[str, Any]]], address: str | None
) -> dict[str, list[Mapping[str, Any]]]:
    """Make the runs; returns the results of the flow by method, in the order of the seeds."""
    simulations = simulator(address)

    def simulate(run: tuple[int, tuple[str, dict[str, Any]]]) -> Mapping[str, Any]:
        _, (name, description) = run
        try:
            flow: Mapping[str, Any] = simulations.run(description).found["flows"][0]
        except SimulationFailed as error:
            raise RunFailed(f"{name}, seed {description['seed']}", str(error)) from error
        return flow

    results: dict[int, Mapping[str, Any]] = {}
    numbered = list(enumerate(runs))
    with (
        RunsProgress(Console(stderr=True), len(runs)) as progress,
        closing(each(numbered, simulate, simulations)) as ending,
    ):
        for (number, (name, description)), future in ending:
            results[number] = future.result()
            progress.end(f"{name}, seed {description['seed']}")
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for number, (name, _) in numbered:
        by_name.setdefault(name, []).append(results[number])
    return by_name


def _document(
    args: argparse.Namespace, figures: Mapping[str, Mapping[str, Estimate | None]]
) -> dict[str, Any]:
    return {
        "kind": args.kind,
        "seeds": args.seeds,
        "duration_s": args.duration,
        "methods": [
            {
                "name": name,
                "own": name in args.own,
                **{
                    figure: None if value is None else {"mean": value.mean, "half_width": value.half_width}
                    for figure, value in row.items()
                },
            }
            for name, row in figures.items()
        ],
    }


def _print(args: argparse.Namespace, figures: Mapping[str, Mapping[str, Estimate | None]]) -> None:
    console = Console()
    seeds = "1 seed" if args.seeds == 1 else f"{args.seeds} seeds"
    table = Table(title=f"{args.kind}, {seeds} of {args.duration:g} s")
    table.add_column("method", overflow="fold", min_width=10)
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for name, row in figures.items():
        cells = ("" if value is None else _text(value) for value in row.values())
        # Of a file of one's own the name is enough: a path would be folded over many lines.
        label = Path(name.rpartition(":")[0]).name + ":" + name.rpartition(":")[2] if ":" in name else name
        table.add_row(label, *cells, style="bold" if name in args.own else None)
    console.print(table)


def _text(value: Estimate) -> str:
    spread = "" if value.half_width is None else f" ± {value.half_width:.2g}"
    return f"{value.mean:.4g}{spread}"
