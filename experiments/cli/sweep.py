"""`mstcp-lab sweep NETWORK`: what each protocol admits and delivers on a network as the load rises."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from experiments.cli.arguments import (
    JSON,
    NETWORK,
    SCHEDULER,
    Arguments,
    argument,
    flag,
    loads,
    names,
    positive,
    seconds,
    seeds_argument,
    whole,
)
from experiments.cli.messages import resume_command, stop_on
from experiments.errors import Interrupted, RunFailed, UnknownName
from experiments.model.atomic_files import output_errors, write_atomically

if TYPE_CHECKING:
    from experiments.sweep.plan import Sweep
    from experiments.sweep.store import PointResult, SweepStore

NAME = "sweep"
HELP = "simulate protocols on a network under rising load"
ENGINE = "sim"
LOADS = "0.5,0.8,1,1.2,1.5"
PROTOCOLS = "mstcp,ospf,ecmp"


ARGUMENTS: Arguments = (
    *NETWORK,
    argument("--loads", "X,…", "offered loads, separated by commas: see `solve --load`", loads, LOADS),
    argument("--protocol", "P,…", "any that the simulator has, by name; see `list`", names, PROTOCOLS),
    argument("--engine", "E", "the only engine for sweeps", None, ENGINE),
    seeds_argument(1),
    argument("--duration", "S", "seconds to measure", positive, 10),
    argument("--warm-up", "S", "seconds before the measurement", seconds, 2),
    argument(
        "--scale",
        "X",
        "multiply the rates of all links: with 0.01 a run takes a hundredth of the time",
        positive,
        1,
    ),
    argument("--queue", "N", "queue limit in packets of links without one in the network", whole, 100),
    argument(
        "--objective",
        "O",
        "objective of the allocation: see `solve --objective`",
        default="max_throughput_min_delay",
    ),
    argument(
        "--metric",
        "M",
        "metric of default routes: delay, as in the controller, or hops",
        default="delay",
        choices=("delay", "hops"),
    ),
    SCHEDULER,
    argument(
        "--workers",
        "N",
        "number of points at once (default: one per core, or what the cluster has room for)",
        whole,
    ),
    argument("--out", "DIR", "folder for the results", Path, required=True),
    flag("--resume", "continue an earlier sweep in DIR; loads, protocols and seeds may be added"),
    JSON,
)


def main(args: argparse.Namespace) -> int:
    """Sweep; returns the exit status."""
    # Solver, numpy and networkx take their time to import, which the other commands should not wait for.
    from experiments.report import units
    from experiments.scheduling.progress import RunsProgress
    from experiments.scheduling.simulator import simulator
    from experiments.sweep.offered_load import OfferedLoads
    from experiments.sweep.runner import run
    from experiments.sweep.store import SweepStore

    sweep = sweep_from(args)
    simulations = simulator(args.scheduler)
    workers = args.workers or simulations.at_once
    offers = OfferedLoads(sweep.conditions, kept=workers + 1)
    offers.flows(sweep.loads[0], 1)  # what is wrong with the demands shows before anything is written
    store = SweepStore(args.out, sweep.conditions, resume=args.resume)
    stop_on(signal.SIGTERM)
    waiting = len(sweep.points()) - len(store.results(sweep))
    try:
        with RunsProgress(Console(stderr=True), waiting) as progress:

            def told(ended: PointResult | RunFailed) -> None:
                if isinstance(ended, RunFailed):
                    progress.end(f"mstcp-lab: {ended}", failed=True)
                    return
                received, admitted = units.mbps(ended.received_bps), units.mbps(ended.admitted_bps)
                progress.end(f"{ended.point.label}: {received} of {admitted} Mbit/s")

            run(sweep, offers, store, told, simulations, workers)
    except Interrupted as stopped:
        raise Interrupted(stopped.finished, stopped.planned, resume_command(args)) from None
    finally:
        _write(sweep, store, args)
    return 1 if progress.failed else 0


def sweep_from(args: argparse.Namespace) -> Sweep:
    """Return the sweep that the arguments ask for (UnknownName: of an engine, a protocol or an objective)."""
    from gomr import OBJECTIVES

    from experiments.protocols import PROTOCOLS as REGISTERED
    from experiments.sweep.plan import Conditions, Sweep

    known = [
        name for name, each in REGISTERED.items() if each.is_simulated and not each.uses_second_interfaces
    ]
    for kind, name, names_of_kind in (
        ("engine for sweeps", args.engine, (ENGINE,)),
        ("objective", args.objective, tuple(OBJECTIVES)),
        *(("protocol for sweeps", name, known) for name in args.protocol),
    ):
        if name not in names_of_kind:
            raise UnknownName(kind, name, names_of_kind)
    conditions = Conditions(
        network=args.network,
        demands=args.demands,
        flows=args.flows,
        capacity_bps=args.capacity,
        scale=args.scale,
        queue_packets=args.queue,
        objective=args.objective,
        metric=args.metric,
        warm_up_s=args.warm_up,
        duration_s=args.duration,
    )
    return Sweep(conditions=conditions, loads=args.loads, protocols=args.protocol, seeds=args.seeds)


def _write(sweep: Sweep, store: SweepStore, args: argparse.Namespace) -> None:
    """Write the folder's documents and print what was asked for; nothing where no point is finished."""
    # Matplotlib takes a second to import.
    from experiments.sweep.plot import plot_sweep
    from experiments.sweep.summary import document, points_csv, rows
    from experiments.sweep.table import print_table, render_sweep

    results = store.results(sweep)
    if not results:
        return
    seeds = len({result.point.seed for result in results})
    title = f"{Path(args.network).stem}, {results[0].flows} flows ({Path(args.demands).name})"
    plot = plot_sweep(rows(sweep, results), title, seeds)
    text = json.dumps(document(sweep, results), indent=1, allow_nan=False) + "\n"
    with output_errors(args.out):
        write_atomically(args.out / "sweep.json", text)
        write_atomically(args.out / "sweep.csv", points_csv(results))
        plot.write(args.out)
        write_atomically(args.out / "sweep.html", render_sweep(sweep, results, plot, title))
    if args.json:
        sys.stdout.write(text)
    else:
        print_table(sweep, results, Console())
    print(f"Written to {args.out}", file=sys.stderr if args.json else sys.stdout)
