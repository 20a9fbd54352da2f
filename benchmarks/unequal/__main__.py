"""Measures one connection over two unequal paths: python -m benchmarks.unequal.

From the call that connects to the last byte at the other host: MSTCP as it comes, with a stream on each path
and no rates told; one TCP on the better path (both are measured, and the quicker counts); the kernel's MPTCP.
All run in one virtual kernel (docs/virtual.md), one after the other: neither root nor an idle machine is
needed, and processor time counts nothing. A row of the answer has the case and these quotients of rates:

    of_better_path                the rate of MSTCP by that of TCP on the better path
    of_sum                        by the sum of the rates of TCP on either path alone
    kernel_mptcp_of_better_path   the rate of the kernel's MPTCP by that of TCP on the better path
    of_two_tcps                   where the paths are alike: by that of a TCP on each with half of the bytes

Where packets are lost by chance one transfer of a kind says little: the same TCP takes twice the time with
another seed, and the luckier of two paths is no measure. `--seeds` takes medians of times first.

The exit status is 1 where a case is below the better path alone, or below the kernel's MPTCP.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.command_line import command_line, exit_status
from benchmarks.performance import tables
from benchmarks.unequal import grid, virtual
from benchmarks.virtual_kernel import add_jobs, in_kernels

MIN_OF_BETTER = 0.97


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = command_line(__doc__, with_json=True)
    parser.add_argument(
        "--quick", action="store_true", help="33 cases, minutes (default: the whole grid, hours)"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="N networks of the grid, drawn by the seed")
    parser.add_argument("--most-bytes", type=int, metavar="N", help="leave larger transfers out")
    parser.add_argument(
        "--paths",
        nargs=2,
        type=path,
        metavar="MBPS@MS",
        help="one pair instead, as `--paths 100@1 10@30`; MBPS@MS/LOSS/JITTER_MS where it has these",
    )
    parser.add_argument(
        "--sizes", type=int, nargs="+", metavar="BYTES", help="of the pair, default 0.1 to 10 MB"
    )
    parser.add_argument("--congestion-control", default="cubic", metavar="NAME", help="of the pair")
    parser.add_argument("--queue-packets", type=int, default=1000, metavar="N", help="default 1000")
    parser.add_argument("--seed", type=int, default=1, help="of the virtual kernel's random numbers")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="medians of N seeds from --seed on")
    add_jobs(parser)
    return parser.parse_args(argv)


def path(text: str) -> grid.Path:
    """Return a path from `100@30`, `100@30/0.001` or `100@30/0.001/2`."""
    shape, *more = text.split("/")
    rate, delay = shape.split("@")
    return grid.Path(float(rate), float(delay), *map(float, more))


def cases(arguments: argparse.Namespace) -> list[grid.Case]:
    """Return the cases that were asked for."""
    if arguments.paths:
        pair = (arguments.paths[0], arguments.paths[1])
        sizes = arguments.sizes or grid.SIZES
        return [grid.Case(pair, size, arguments.congestion_control) for size in sizes]
    wanted = grid.quick() if arguments.quick else grid.full()
    wanted = [case for case in wanted if case.size_bytes <= (arguments.most_bytes or case.size_bytes)]
    if arguments.sample is None:
        return wanted
    networks = virtual.by_network(wanted)
    drawn = random.Random(arguments.seed).sample(networks, min(arguments.sample, len(networks)))
    return [case for cases in drawn for case in cases]


def measure(wanted: Sequence[grid.Case], arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Make all transfers, in several kernels at once; return a row for each case."""

    def boot(networks: Sequence[Sequence[grid.Case]]) -> list[tuple[grid.Case, virtual.Seconds]]:
        seeds = range(arguments.seed, arguments.seed + arguments.seeds)
        return [made for seed in seeds for made in virtual.boot(networks, seed, arguments.queue_packets)]

    made: dict[grid.Case, list[virtual.Seconds]] = {case: [] for case in wanted}
    for case, seconds in in_kernels(virtual.by_network(wanted), arguments.jobs, boot):
        made[case].append(seconds)
    return [row(case, virtual.medians(made[case])) for case in wanted]


def row(case: grid.Case, seconds: dict[str, float]) -> dict[str, Any]:
    """Return what the seconds of a case's transfers mean."""
    better_s = min(seconds["tcp0"], seconds["tcp1"])
    sum_s = 1 / (1 / seconds["tcp0"] + 1 / seconds["tcp1"])
    return {
        "paths": [str(path) for path in case.paths],
        "bytes": case.size_bytes,
        "congestion_control": case.congestion_control,
        "seconds": seconds,
        "of_better_path": better_s / seconds["mstcp"],
        "of_sum": sum_s / seconds["mstcp"],
        "kernel_mptcp_of_better_path": better_s / seconds["mptcp"],
        "of_two_tcps": seconds[grid.TWO_TCPS] / seconds["mstcp"] if grid.TWO_TCPS in seconds else None,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the grid."""
    arguments = parse(argv)

    def run() -> int:
        rows = measure(cases(arguments), arguments)
        print(json.dumps(rows, indent=1) if arguments.json else "\n".join(tables.unequal(rows)))
        least = (max(MIN_OF_BETTER, each["kernel_mptcp_of_better_path"]) for each in rows)
        return int(any(each["of_better_path"] < bound for each, bound in zip(rows, least, strict=True)))

    return exit_status(run)


if __name__ == "__main__":
    sys.exit(main())
