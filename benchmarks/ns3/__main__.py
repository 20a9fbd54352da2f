"""Makes the same runs in ns-3 and in the simulator, for docs/simulator.md: python -m benchmarks.ns3.

It needs a C++ compiler and ns-3 3.37 (Debian 12: g++ and libns3-dev). What ns-3 has given is kept in
build/ns3/runs.jsonl and not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import netsim_native

from benchmarks.pages import renew

from .cases import Run, losses, queues
from .descriptions import lines
from .outcomes import Outcome
from .tables import loss_lines, queue_lines

SOURCE = Path(__file__).with_name("runs.cc")
FOLDER = Path("build/ns3")
SEEDS = {
    "--queue-seeds": (10, "of the butterfly with short queues (half a minute each)"),
    "--loss-seeds": (30, "of each rate of random loss (some seconds each)"),
}
LIBRARIES = ("ns3-internet", "ns3-point-to-point", "ns3-network", "ns3-core")

Key = tuple[str, int]


def main() -> int:
    """Run what is missing and write the tables; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ns3", description=__doc__)
    for option, (count, meaning) in SEEDS.items():
        parser.add_argument(option, type=int, default=count, help=meaning)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs of ns-3 at once")
    args = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    problem = compile_runs(FOLDER / "runs")
    if problem:
        print(f"ns3: {problem}", file=sys.stderr)
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


def compile_runs(program: Path) -> str | None:
    """Compile runs.cc if it has changed; returns what is missing."""
    if program.exists() and program.stat().st_mtime > SOURCE.stat().st_mtime:
        return None
    if shutil.which("g++") is None or not Path("/usr/include/ns3").is_dir():
        return "a C++ compiler and ns-3 are needed: apt-get install g++ libns3-dev"
    command = [
        "g++",
        "-std=c++17",
        "-O2",
        str(SOURCE),
        "-o",
        str(program),
        *(f"-l{name}" for name in LIBRARIES),
    ]
    built = subprocess.run(command, capture_output=True, text=True)
    return (
        None
        if built.returncode == 0
        else f"runs.cc does not compile with this ns-3 (3.37 is known to work):\n{built.stderr}"
    )


def make(runs: Iterable[Run], jobs: int) -> dict[Key, Outcome]:
    """Return what ns-3 gives for each run, made now or earlier."""
    journal = FOLDER / "runs.jsonl"
    kept = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    outcomes = {(each["case"], each["seed"]): Outcome.read(each["outcome"]) for each in kept}
    missing = [run for run in runs if (run.case, run.seed) not in outcomes]
    with ThreadPoolExecutor(jobs) as pool, journal.open("a") as file:
        for run, outcome in zip(missing, pool.map(in_ns3, missing), strict=True):
            outcomes[run.case, run.seed] = outcome
            print(
                json.dumps({"case": run.case, "seed": run.seed, "outcome": outcome.document()}),
                file=file,
                flush=True,
            )
    return outcomes


def in_ns3(run: Run) -> Outcome:
    """Make a run in ns-3."""
    text = "\n".join(lines(run.description))
    done = subprocess.run([str(FOLDER / "runs")], input=text, capture_output=True, text=True, check=True)
    return Outcome.of_ns3(done.stdout)


def ours(run: Run) -> Outcome:
    """Make a run in the simulator."""
    return Outcome.of_ours(json.loads(netsim_native.run(json.dumps(run.description))))


if __name__ == "__main__":
    sys.exit(main())
