"""`mstcp-lab solve NETWORK`: route demands over a network, with the proof that it is the best there is."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from rich.console import Console

from experiments.cli.arguments import (
    FORMAT,
    JSON,
    NETWORK,
    Arguments,
    argument,
    load_number,
    positive,
    read_options,
    whole,
)
from experiments.errors import UnknownName
from experiments.routing.time_limit import TimeLimit
from topologies.routable import load_routable

NAME = "solve"
HELP = "route demands over a network with GOMR and print the certificate of optimality"


ARGUMENTS: Arguments = (
    *NETWORK,
    *FORMAT,
    argument(
        "--load",
        "X",
        "offered load: requested rates over what the network can carry; at 1 all just fits, at 1.1 a share "
        "of 1/1.1 is admitted (default 1; the rates of a file are not scaled unless this is given)",
        load_number,
    ),
    argument("--seed", "N", "seed of the generated flows and events", int, 1),
    argument("--engine", "E", "native, highs or pulp", None, "native"),
    argument(
        "--objective",
        "O",
        "max_throughput_min_delay, fair, max_min, min_max_utilisation or even_split",
        default="max_throughput_min_delay",
    ),
    argument(
        "--matrix", "N", "the matrix to read of a file of several (YATES), counted from 1", whole, default=1
    ),
    argument("--max-paths", "K", "at most K paths for each flow", whole),
    argument("--events", "N", "also measure N flow events and N/4 link failures", whole),
    argument(
        "--time-limit",
        "S",
        "limit in seconds for reading, scaling to the load, solving, events, failures and backups together "
        "(writing --out is not counted)",
        positive,
    ),
    argument(
        "--failures",
        "F",
        "also compute what is admitted after each single failure of links, nodes or all, and backup paths",
        choices=("links", "nodes", "all"),
    ),
    argument("--out", "DIR", "write a page, tables and a map to this folder", Path),
    JSON,
)


def main(args: argparse.Namespace) -> int:
    """Solve; returns the exit status."""
    # The engines and numpy take their time to import, which the other commands should not wait for.
    from gomr import ENGINES, OBJECTIVES, Engine
    from gomr.solving import allocate

    from experiments.routing.case import make_case
    from experiments.routing.contingencies import add_contingencies, add_event_times
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
        matrix=args.matrix,
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
        solved = add_event_times(solved, case, live, args.events, args.seed, time_limit)
    if args.failures is not None:
        solved = add_contingencies(solved, args.failures, args.objective, time_limit)
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
