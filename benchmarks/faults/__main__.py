"""MSTCP over paths that break: `python -m benchmarks.faults [--quick] [--json]`.

First the core in virtual time (crates/mstcp-faults: both ends, their handshake and timers; sockets, paths and
hosts are modelled), then the library as it is over relays on the loopback. Transfers go both ways over 2 to 8
streams; every 0.2 to 2 s a path is reset, turned into a black hole, stopped in one direction, made to swallow
what it gets, half closed, slowed down or repaired, and in virtual time a host is held up for seconds or an
application reads late. A pause counts while a path works in each direction and nobody is held up.

--quick: 200 seeds of 16 MiB in virtual time and 2 of 8 MiB live; else 1,000 and 100 of 200 MiB.
--live N --first SEED --mib N: live seeds alone, of which 100 of 200 MiB take an hour, in slices.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.command_line import command_line, show
from benchmarks.faults.live import transfer

ROOT = Path(__file__).resolve().parents[2]
WORST = ("longest_pause_s", "longest_unused_repaired_path_s", "longest_close_s")
PROGRAM = ROOT / "target" / "release" / "mstcp-faults"


def build() -> None:
    """Build the simulator (RuntimeError: Cargo could not; it has said why)."""
    cargo = subprocess.run(
        [ROOT / "scripts" / "find-cargo"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    command = [cargo, "build", "--quiet", "--release", "--locked", "--package", "mstcp-faults"]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        raise RuntimeError("the simulator could not be built (reason above)")


def simulate(seeds: int, mib: int) -> dict[str, Any]:
    """Run seeds in virtual time, on all processors; return what they came to together."""
    jobs = min(os.cpu_count() or 1, seeds)
    bounds = [seeds * job // jobs for job in range(jobs + 1)]

    def run(job: int) -> dict[str, Any]:
        first, count = bounds[job], bounds[job + 1] - bounds[job]
        command = [str(PROGRAM), "--first", str(first), "--seeds", str(count), "--mib", str(mib)]
        result: dict[str, Any] = json.loads(subprocess.check_output(command))
        return result

    with ThreadPoolExecutor(jobs) as pool:
        parts = list(pool.map(run, range(jobs)))
    return {
        "seeds": seeds,
        "mib": mib,
        "digests_equal": sum(part["digests_equal"] for part in parts),
        "failed_seeds": [seed for part in parts for seed in part["failed_seeds"]],
        **{name: max(part[name] for part in parts) for name in WORST},
        "resent_ratio": sum(part["resent_ratio"] for part in parts) / jobs,
    }


def run_live(seeds: range, mib: int) -> dict[str, Any]:
    """Run seeds over relays; return what they came to together."""
    outcomes = {seed: asyncio.run(transfer(seed, mib << 20)) for seed in seeds}
    return {
        "seeds": len(seeds),
        "mib": mib,
        "digests_equal": sum(outcome.is_equal for outcome in outcomes.values()),
        "failed_seeds": [seed for seed, outcome in outcomes.items() if not outcome.is_equal],
        "longest_pause_s": max(outcome.longest_pause_s for outcome in outcomes.values()),
        "longest_unused_repaired_path_s": max(outcome.longest_unused_s for outcome in outcomes.values()),
        "longest_close_s": max(outcome.close_s for outcome in outcomes.values()),
        "resent_ratio": sum(outcome.resent_bytes for outcome in outcomes.values()) / (len(seeds) * mib << 21),
        "pauses_s": {seed: round(outcome.longest_pause_s, 3) for seed, outcome in outcomes.items()},
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run; return 1 if bytes were lost."""
    parser = command_line(__doc__, with_json=True)
    parser.add_argument("--quick", action="store_true", help="fewer seeds, smaller transfers")
    parser.add_argument("--live", type=int, metavar="N", help="run this many seeds live, and nothing else")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of them")
    parser.add_argument("--mib", type=int, default=200, metavar="N", help="MiB that each sends each way")
    args = parser.parse_args(argv)
    if args.live is not None:
        alone = run_live(range(args.first, args.first + args.live), args.mib)
        print(json.dumps(alone))
        return int(alone["digests_equal"] != alone["seeds"])
    build()
    simulated = simulate(200, 16) if args.quick else simulate(1000, 200)
    live = run_live(range(2), 8) if args.quick else run_live(range(100), 200)
    both = (simulated, live)
    result = {
        "seeds": sum(part["seeds"] for part in both),
        "digests_equal": sum(part["digests_equal"] for part in both),
        **{name: max(part[name] for part in both) for name in WORST},
        "simulated": simulated,
        "live": live,
    }
    show(result, args.json)
    return int(result["digests_equal"] != result["seeds"])


if __name__ == "__main__":
    sys.exit(main())
