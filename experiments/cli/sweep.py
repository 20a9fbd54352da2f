"""`mstcp-lab sweep NETWORK`: what each protocol admits and delivers on a network as the load rises."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from experiments.cli.argument_types import loads, names, positive, seconds, whole
from experiments.cli.network_arguments import add_network_arguments
from experiments.cli.run_arguments import add_scheduler
from experiments.cli.stopping import resume_command, stop_on
from experiments.errors import Interrupted, UnknownName
from experiments.model.whole_files import write_whole, writing

if TYPE_CHECKING:
    from experiments.sweep.plan import Sweep
    from experiments.sweep.store import Store

NAME = "sweep"
HELP = "simulate protocols on a network under rising load"
ENGINE = "sim"
LOADS = "0.5,0.8,1,1.2,1.5"
PROTOCOLS = "mstcp,ospf,ecmp"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `sweep` to a parser."""
    add_network_arguments(parser)
    parser.add_argument(
        "--loads",
        type=loads,
        default=LOADS,
        metavar="X,…",
        help=f"offered loads, separated by commas: see `solve --load` (default {LOADS})",
    )
    parser.add_argument(
        "--protocol",
        type=names,
        default=PROTOCOLS,
        metavar="P,…",
        help=f"any that the simulator has, by name (default {PROTOCOLS}; see `list`)",
    )
    parser.add_argument("--engine", default=ENGINE, metavar="E", help=f"{ENGINE}, the only engine for sweeps")
    parser.add_argument(
        "--seeds",
        type=whole,
        default=1,
        metavar="N",
        help="repeat each point with the seeds 1 to N (default 1)",
    )
    parser.add_argument(
        "--duration", type=positive, default=10.0, metavar="S", help="seconds to measure (default 10)"
    )
    parser.add_argument(
        "--warm-up", type=seconds, default=2.0, metavar="S", help="seconds before the measurement (default 2)"
    )
    parser.add_argument(
        "--scale",
        type=positive,
        default=1.0,
        metavar="X",
        help="multiply the rates of all links: with 0.01 a run takes a hundredth of the time (default 1)",
    )
    parser.add_argument(
        "--queue",
        type=whole,
        default=100,
        metavar="N",
        help="queue limit in packets of links without one in the network (default 100)",
    )
    parser.add_argument(
        "--objective",
        default="max_throughput_min_delay",
        metavar="O",
        help="objective of the allocation: see `solve --objective` (default max_throughput_min_delay)",
    )
    parser.add_argument(
        "--metric",
        choices=("delay", "hops"),
        default="delay",
        help="metric of default routes: delay, as in the controller (default), or hops",
    )
    add_scheduler(parser)
    parser.add_argument(
        "--workers",
        type=whole,
        metavar="N",
        help="number of points at once (default: one per core, or what the cluster has room for)",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the results")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue an earlier sweep in DIR; loads, protocols and seeds may be added",
    )
    parser.add_argument("--json", action="store_true", help="print the document on standard output")


def main(args: argparse.Namespace) -> int:
    """Sweep; returns the exit status.

    Raises:
        ScenarioError, UnknownName, TopologyError, InvalidProblem: An argument or a file cannot be used.
        SolverError: There is no allocation for the first point.
        OutputError: The folder cannot be used.
        ClusterUnreachable: There is no such cluster.
        Interrupted: The user stopped; what was finished is written.
    """
    # Solver, numpy and networkx take their time to import, which the other commands should not wait for.
    from experiments.scheduling.simulator import simulator
    from experiments.sweep.offer import Offers
    from experiments.sweep.progress import Progress
    from experiments.sweep.runner import run
    from experiments.sweep.store import Store

    sweep = sweep_from(args)
    simulations = simulator(args.scheduler)
    workers = args.workers or simulations.at_once
    offers = Offers(sweep.conditions, kept=workers + 1)
    offers.flows(sweep.loads[0], 1)  # what is wrong with the demands shows before anything is written
    store = Store(args.out, sweep.conditions, resume=args.resume)
    stop_on(signal.SIGTERM)
    waiting = len(sweep.points()) - len(store.results(sweep))
    try:
        with Progress(Console(stderr=True), waiting) as progress:
            run(sweep, offers, store, progress, simulations, workers)
    except Interrupted as stopped:
        raise Interrupted(stopped.finished, stopped.planned, resume_command(args)) from None
    finally:
        _write(sweep, store, args)
    return 1 if progress.failed else 0


def sweep_from(args: argparse.Namespace) -> Sweep:
    """Return the sweep that the arguments ask for.

    Raises:
        UnknownName: of an engine, a protocol or an objective.
    """
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


def _write(sweep: Sweep, store: Store, args: argparse.Namespace) -> None:
    """Write the folder's documents and print what was asked for; nothing where no point is finished."""
    # Matplotlib takes a second to import.
    from experiments.sweep.page import render_sweep
    from experiments.sweep.plot import plot_sweep
    from experiments.sweep.summary import document, points_csv, rows
    from experiments.sweep.table import print_table

    results = store.results(sweep)
    if not results:
        return
    seeds = len({result.point.seed for result in results})
    title = f"{Path(args.network).stem}, {results[0].flows} flows ({Path(args.demands).name})"
    plot = plot_sweep(rows(sweep, results), title, seeds)
    text = json.dumps(document(sweep, results), indent=1, allow_nan=False) + "\n"
    with writing(args.out):
        write_whole(args.out / "sweep.json", text)
        write_whole(args.out / "sweep.csv", points_csv(results))
        plot.write(args.out)
        write_whole(args.out / "sweep.html", render_sweep(sweep, results, plot, title))
    if args.json:
        sys.stdout.write(text)
    else:
        print_table(sweep, results, Console())
    print(f"Written to {args.out}", file=sys.stderr if args.json else sys.stdout)
