"""Makes the same runs in ns-3 and in the simulator, for docs/simulator.md: python -m benchmarks.ns3.

It needs a C++ compiler and ns-3 3.37 (Debian 12: g++ and libns3-dev). What ns-3 has given is kept in
build/ns3/runs.jsonl and not run again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from benchmarks.command_line import command_line
from benchmarks.pages import renew

from .cases import Run, losses, queues
from .outcomes import Outcome
from .programs import Key, is_compiled, run_missing
from .runs import LIBRARIES, in_ns3, ours
from .tables import loss_lines, queue_lines

SEEDS = {
    "--queue-seeds": (10, "of the butterfly with short queues (half a minute each)"),
    "--loss-seeds": (30, "of each rate of random loss (some seconds each)"),
}


def main() -> int:
    """Run what is missing and write the tables; returns the exit status."""
    parser = command_line(__doc__)
    for option, (count, meaning) in SEEDS.items():
        parser.add_argument(option, type=int, default=count, help=meaning)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs of ns-3 at once")
    args = parser.parse_args()
    if not is_compiled("runs", LIBRARIES):
        return 1
    short, lossy = list(queues(args.queue_seeds)), list(losses(args.loss_seeds))
    outcomes = make([*short, *lossy], args.jobs)
    pairs = [(outcomes[run.case, run.seed], ours(run)) for run in short]
    renew("simulator.md", "ns-3 queues", queue_lines(pairs))
    cases: dict[str, list[tuple[Outcome, Outcome]]] = {}
    for run in lossy:
        cases.setdefault(run.case, []).append((outcomes[run.case, run.seed], ours(run)))
    renew("simulator.md", "ns-3 loss", loss_lines(cases))
    return 0


def make(runs: Iterable[Run], jobs: int | None) -> dict[Key, Outcome]:
    """Return what ns-3 gives for each run, made now or earlier."""
    given = (((run.case, run.seed), run) for run in runs)
    outcomes = run_missing("runs.jsonl", given, lambda run: in_ns3(run).document(), jobs)
    return {key: Outcome.read(outcome) for key, outcome in outcomes.items()}


if __name__ == "__main__":
    sys.exit(main())
