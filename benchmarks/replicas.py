"""Replicas of the controller in virtual time, by many seeds: `python -m benchmarks.replicas --seeds 10000`.

Three replicas, a model of etcd, switches and clients, with partitions, pauses, drifting clocks, crashes, and
messages that are lost, repeated or late (`tests.fakes.replicated` has them, and what must hold).
A seed that fails is printed; it belongs into `tests/controller/leader/test_replicas.py`.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor

from benchmarks.command_line import command_line
from tests.fakes.replicated import World


def attempt(seed: int) -> tuple[int, int, int, str]:
    """Return a seed, its takeovers and granted flows, and what was wrong."""
    world = World(seed)
    try:
        world.run()
    except Exception as error:
        return seed, 0, 0, f"{type(error).__name__}: {error}"
    return seed, world.takeovers, sum(len(client.granted) for client in world.clients), ""


def main() -> int:
    """Run as a command; returns 1 where a seed has failed."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="how many (default %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first (default %(default)s)")
    parser.add_argument("--processes", type=int, default=None, help="at a time (default: one a core)")
    options = parser.parse_args()
    began, takeovers, granted, failed = time.monotonic(), 0, 0, 0
    with ProcessPoolExecutor(options.processes) as pool:
        seeds = range(options.first, options.first + options.seeds)
        for seed, led, flows, wrong in pool.map(attempt, seeds, chunksize=20):
            takeovers, granted = takeovers + led, granted + flows
            if wrong:
                failed += 1
                print(f"seed {seed}: {wrong}", flush=True)
    print(
        f"{options.seeds} seeds, {takeovers} takeovers, {granted} flows granted, {failed} seeds failed, "
        f"{time.monotonic() - began:.0f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
