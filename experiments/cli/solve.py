"""`mstcp-lab solve NETWORK`: route demands over a network, with the proof that it is the best there is."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from rich.console import Console

from experiments.cli.argument_types import load_number, positive, whole
from experiments.cli.network_arguments import add_format_arguments, add_network_arguments, read_options
from experiments.errors import UnknownName
from experiments.routing.time_limit import TimeLimit
from topologies.routable import load_routable

NAME = "solve"
HELP = "route demands over a network with GOMR and print the certificate of optimality"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `solve` to a parser."""
    add_network_arguments(parser)
    add_format_arguments(parser)
    parser.add_argument(
        "--load",
        type=load_number,
        metavar="X",
        help="offered load: requested rates over what the network can carry; at 1 all just fits, at "
        "1.1 a share "
        "of 1/1.1 is admitted (default 1; the rates of a file are not scaled unless this is given)",
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed of the generated flows and events (default 1)"
    )
    parser.add_argument("--engine", default="native", metavar="E", help="native or pulp (default native)")
    parser.add_argument(
        "--objective",
        default="max_throughput_min_delay",
        metavar="O",
        help="max_throughput_min_delay (default), fair, max_min, min_max_utilisation or even_split",
    )
    parser.add_argument("--max-paths", type=whole, metavar="K", help="at most K paths for each flow")
    parser.add_argument(
        "--events", type=whole, metavar="N", help="also measure N flow events and N/4 link failures"
    )
    parser.add_argument(
        "--time-limit",
        type=positive,
        metavar="S",
        help="limit in seconds for reading, scaling to the load, solving, events, failures and backups "
        "together (writing --out is not counted)",
    )
    parser.add_argument(
        "--failures",
        choices=("links", "nodes", "all"),
        help="also compute what is admitted after each single failure of a link or node, and backup paths",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write a page, tables and a map to this folder"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")


def main(args: argparse.Namespace) -> int:
    """Solve; returns the exit status.

    Raises:
        ScenarioError, UnknownName, TopologyError, InvalidProblem: An argument or a file cannot be used.
        SolverError: The engine failed or ran out of time.
        OutputError: The files cannot be written.
    """
    # The engines and numpy take their time to import, which the other commands should not wait for.
    from gomr import ENGINES, OBJECTIVES, Engine
    from gomr.solving import allocate

    from experiments.routing.ahead import look_ahead, measure
    from experiments.routing.case import make_case
    from experiments.routing.document import Solved, summary
    from experiments.routing.files import to_json, write_files
    from experiments.routing.page import print_page

    if args.engine not in ENGINES:
        raise UnknownName("engine", args.engine, ENGINES)
    if args.objective not in OBJECTIVES:
        raise UnknownName("objective", args.objective, OBJECTIVES)
    time_limit = TimeLimit(args.time_limit)
    case = make_case(
        load_routable(args.network, read_options(args)),
        args.demands,
        flows=args.flows,
        load=args.load,
        seed=args.seed,
        max_paths=args.max_paths,
        rate_unit_bps=args.rate_unit,
        time_limit=time_limit,
    )
    ENGINES[args.engine]()  # importing a solver is not solving
    started = time.thread_time()
    problem = case.problem()
    built = time.thread_time()
    allocation = allocate(problem, args.objective, args.engine, time_limit_s=time_limit.left_s("solving"))
    ended = time.thread_time()
    cpu_ms = ((built - started) * 1e3, (ended - built) * 1e3)
    solved = Solved(case.network, problem, allocation, *cpu_ms, notes=case.notes)
    if args.events is not None:
        live = Engine(problem, objective=args.objective, engine=args.engine)
        solved = measure(solved, case, live, args.events, args.seed, time_limit)
    if args.failures is not None:
        solved = look_ahead(solved, args.failures, args.objective, time_limit)
    if args.out:
        write_files(solved, case.described, args.out)
    if args.json:
        sys.stdout.write(to_json(summary(solved)))
        for note in solved.notes:
            sys.stderr.write(f"Note: {note}\n")
    else:
        print_page(solved, case.described, Console())
    if args.out:
        print(f"Written to {args.out}", file=sys.stderr if args.json else sys.stdout)
    return 0
