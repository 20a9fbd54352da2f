"""Measures a connection whose host's addresses go and come: python -m benchmarks.uplinks.

A transfer over two uplinks, `paths="interfaces"`; each uplink loses its address for a while, and gets
another one. The seed draws rates, delays and queues of the uplinks, times, and whether bytes go both ways or
down. All bytes are compared. It runs in virtual kernels (docs/virtual.md): neither root nor an idle machine
is needed.
A seed's row has:

    uplinks    Mbit/s at one-way ms of each
    pause_s    the longest time in which no byte came
    reuse_s    from each new address until both uplinks were used
    error      what went wrong, if something did

The exit status is 1 where bytes were lost, a pause was above 1 s, or an uplink was not used within 2 s.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.command_line import command_line, exit_status
from benchmarks.performance import tables
from benchmarks.virtual_kernel import add_jobs, guest_file, in_kernels, lines_of

MAX_PAUSE_S, MAX_REUSE_S = 1.0, 2.0


def boot(seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Run these seeds in a kernel of their own."""
    with tempfile.TemporaryDirectory(prefix="uplinks-") as name:
        words = ["-m", "benchmarks.uplinks.guest", guest_file("told"), *map(str, seeds)]
        return lines_of(words, Path(name), "told", seed=1)


def is_kept(row: dict[str, Any]) -> bool:
    """Return whether a row is as promised."""
    if "error" in row:
        return False
    return bool(row["pause_s"] <= MAX_PAUSE_S and max(row["reuse_s"]) <= MAX_REUSE_S)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the seeds."""
    parser = command_line(__doc__, with_json=True)
    parser.add_argument("--seeds", type=int, default=200, metavar="N", help="how many, default 200")
    parser.add_argument("--first", type=int, default=1, metavar="SEED", help="the first of them, default 1")
    add_jobs(parser)
    arguments = parser.parse_args(argv)

    def run() -> int:
        seeds = range(arguments.first, arguments.first + arguments.seeds)
        rows = sorted(in_kernels(seeds, arguments.jobs, boot), key=lambda row: int(row["seed"]))
        kept = [row for row in rows if is_kept(row)]
        print(json.dumps(rows, indent=1) if arguments.json else "\n".join(tables.uplinks(kept)))
        others = [row for row in rows if not is_kept(row)]
        print(*map(json.dumps, others), sep="\n", end="", file=sys.stderr)
        return int(bool(others))

    return exit_status(run)


if __name__ == "__main__":
    sys.exit(main())
