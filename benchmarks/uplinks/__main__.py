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
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.command_line import command_line
from benchmarks.virtual_kernel import guest_file, lines_of
from experiments.errors import ExperimentError

MOST_PAUSE_S, MOST_REUSE_S = 1.0, 2.0


def boot(seeds: Sequence[int], core: int) -> list[dict[str, Any]]:
    """Run these seeds in a kernel of their own."""
    with tempfile.TemporaryDirectory(prefix="uplinks-") as name:
        words = ["-m", "benchmarks.uplinks.guest", guest_file("told"), *map(str, seeds)]
        return lines_of(words, Path(name), "told", seed=1, core=core)


def measure(seeds: Sequence[int], jobs: int) -> list[dict[str, Any]]:
    """Run all seeds, in several kernels at once; return their rows.

    Raises:
        RunFailed, RuntimeError: A kernel did not come to its end.
    """
    cores = sorted(os.sched_getaffinity(0))
    parts = [part for number in range(jobs) if (part := seeds[number::jobs])]
    with ThreadPoolExecutor(jobs) as pool:
        boots = pool.map(boot, parts, (cores[number % len(cores)] for number in range(len(parts))))
        return sorted((row for rows in boots for row in rows), key=lambda row: int(row["seed"]))


def is_kept(row: dict[str, Any]) -> bool:
    """Return whether a row is as promised."""
    if "error" in row:
        return False
    return bool(row["pause_s"] <= MOST_PAUSE_S and max(row["reuse_s"]) <= MOST_REUSE_S)


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as a table, and how many are not as promised."""
    lines = [
        "| seed | uplinks | bytes go | longest pause, s | used again after, s |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [str(row["seed"]), " + ".join(row["uplinks"]), row["direction"]]
        if "error" in row:
            cells += [row["error"], ""]
        else:
            cells += [f"{row['pause_s']:.2f}", ", ".join(f"{seconds:.2f}" for seconds in row["reuse_s"])]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append(f"\n{sum(not is_kept(row) for row in rows)} of {len(rows)} not as promised")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the seeds."""
    parser = command_line(__doc__, with_json=True)
    parser.add_argument("--seeds", type=int, default=200, metavar="N", help="how many, default 200")
    parser.add_argument("--first", type=int, default=1, metavar="SEED", help="the first of them, default 1")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="kernels at once")
    arguments = parser.parse_args(argv)
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    try:
        rows = measure(seeds, max(1, arguments.jobs))
    except KeyboardInterrupt:
        return 130
    except (ExperimentError, RuntimeError) as error:
        print(f"benchmarks.uplinks: {error}", file=sys.stderr)
        return 1
    print(json.dumps(rows, indent=1) if arguments.json else markdown(rows))
    return int(not all(map(is_kept, rows)))


if __name__ == "__main__":
    sys.exit(main())
