"""Runs networks drawn by seeds on two engines: python -m benchmarks.random_networks [--count N].

Prints a line for each, and what differs by more than it may; the exit status is 1 if anything does. What
differs is kept in DIR/SEED, as the results of both engines.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.command_line import command_line
from experiments.errors import ExperimentError

from .compare import Outcome, run
from .draw import PROTOCOLS, WORKLOADS, draw


def main(argv: list[str] | None = None) -> int:
    """Run them; returns the exit status."""
    args = _arguments(argv)

    def run_one(seed: int) -> Outcome:
        shutil.rmtree(args.out / str(seed), ignore_errors=True)  # of an earlier call
        return run(draw(seed, args.protocol, args.workload), args.out / str(seed))

    counted: Counter[str] = Counter()
    seeds = range(args.first, args.first + args.count)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for seed, future in [(seed, pool.submit(run_one, seed)) for seed in seeds]:
            try:
                outcome = future.result()
            except ExperimentError as error:
                print(f"network {seed}: {error}", flush=True)
                counted["refused"] += 1
                continue
            counted[_tell(outcome)] += 1
            if not outcome.problems:
                shutil.rmtree(args.out / str(seed))
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor_s = sum(each.ru_utime + each.ru_stime for each in used)
    sums = ", ".join(f"{number} {kind}" for kind, number in sorted(counted.items()))
    print(f"{args.count} networks: {sums}; {processor_s:.0f} s of processor time")
    return 1 if counted["differs"] or counted["refused"] else 0


def _tell(outcome: Outcome) -> str:
    kind = "differs" if outcome.problems else outcome.apart or "agrees"
    pairs = "; ".join(str(pair) for pair in outcome.pairs)
    print(f"{outcome.drawn.label}: {kind}; {pairs}", flush=True)
    for problem in outcome.problems:
        print(f"    {problem}", flush=True)
    return kind


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line(__doc__)
    parser.add_argument("--count", type=int, default=100, help="how many networks (default 100)")
    parser.add_argument("--first", type=int, default=1, help="seed of the first one (default 1)")
    parser.add_argument("--protocol", choices=sorted(set(PROTOCOLS)), help="instead of one that is drawn")
    parser.add_argument("--workload", choices=WORKLOADS, help="instead of one that is drawn")
    parser.add_argument(
        "--out", type=Path, default=Path("build/networks"), help="folder for what differs (build/networks)"
    )
    args = parser.parse_args(argv)
    args.out = args.out.absolute()
    return args


if __name__ == "__main__":
    sys.exit(main())
