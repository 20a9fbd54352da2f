"""`mstcp-lab demo`: the paper's table in the simulator, then its butterfly with the protocols asked for.

Live where the machine can carry that now, else in virtual time: the same table and report either way.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

import topologies
from experiments import places, protocols, runner
from experiments.cli.arguments import OUT, Arguments, argument, names
from experiments.cli.messages import exit_status
from experiments.cli.run_and_report import run_and_report
from experiments.errors import ExperimentError, MissingRequirement
from experiments.model import overrides, scenario
from experiments.model.events import Event, RunRepeated
from experiments.model.job import Job
from experiments.probe import probe

NAME = "demo"
HELP = "simulate the paper's Table I, then run the butterfly live or in virtual time"

ALL = "all"
ENGINES = ("auto", "live", "virtual")
TABLE_SEEDS, TABLE_DURATION_S = 2, 60.0
MAX_REPEATED = 2
"""Live runs that may have to be rerun before the rest is done in virtual time."""


class _TooSlow(ExperimentError):
    """The machine did not keep up with live runs after all."""


ARGUMENTS: Arguments = (
    argument(
        "--engine",
        "E",
        "live, virtual, or auto: live if this machine can do it now",
        None,
        "auto",
        choices=ENGINES,
    ),
    argument("--duration", "S", "seconds to measure in each run", float, 4),
    argument("--protocol", "P,…", "protocols, separated by commas, or `all` (default all)", names),
    OUT,
)


def main(args: argparse.Namespace) -> int:
    """Run the demonstration; returns the exit status."""
    # What cannot be run is refused before anything is written.
    wanted = tuple(protocols.usual()) if args.protocol in (None, (ALL,)) else args.protocol
    job = job_of(args.duration, wanted)
    out: Path = (args.out or runner.default_output("demo", time.time())).absolute()
    print("1. Table I of the paper, simulated:", flush=True)
    _simulate_table(out / "table1")
    engine, why = choose(args.engine)
    print(f"2. The butterfly with {', '.join(wanted)}, {why}:", flush=True)
    return exit_status(_run(job, engine, out))


def _simulate_table(out: Path) -> None:
    from experiments.cli.command_line import main as run_command  # it imports this module

    seeds, duration_s = str(TABLE_SEEDS), str(TABLE_DURATION_S)
    run_command(["reproduce", "table1", "--out", str(out), "--seeds", seeds, "--duration", duration_s])


def choose(asked: str) -> tuple[str, str]:
    """Return the engine to take, and why: the one asked for or, of `auto`, what the machine can do now."""
    if asked != "auto":
        return asked, "live, as asked" if asked == "live" else "in virtual time, as asked"
    if os.geteuid() != 0:
        return "virtual", "in virtual time (a live run needs root)"
    try:
        places.of("virtual").check()
    except MissingRequirement as missing:
        return "live", f"live (virtual time cannot be had: {missing})"
    seen = probe()
    if seen.carries_live_runs:
        return "live", f"live (this machine carries it: {seen.text})"
    return "virtual", f"in virtual time (this machine would not carry live runs now: {seen.text})"


def _run(job: Job, engine: str, out: Path) -> list[str]:
    in_virtual_time = job.model_copy(update={"engine": "virtual", "out": out / "butterfly"})
    if engine == "virtual":
        return run_and_report(in_virtual_time, json=False)
    repeated = 0

    def watch(event: Event) -> None:
        nonlocal repeated
        repeated += isinstance(event, RunRepeated)
        if repeated > MAX_REPEATED:
            raise _TooSlow

    try:
        live = job.model_copy(update={"engine": "live", "out": out / "butterfly-live"})
        return run_and_report(live, json=False, watch=watch)
    except _TooSlow:
        print(
            f"{repeated} live runs were not valid: this machine does not carry them. In virtual time, then:",
            flush=True,
        )
        return run_and_report(in_virtual_time, json=False)


def job_of(duration_s: float, wanted: Sequence[str]) -> Job:
    """Return the runs of protocols on both cases of the butterfly; engine and folder are still to be chosen.

    Raises:
        OverrideError: the duration is none.
        UnknownName: there is no such protocol.
    """
    for name in wanted:
        protocols.get(name)
    loaded = scenario.load("butterfly")
    cases = tuple(loaded.cases)
    final = overrides.apply(loaded, {"duration_s": duration_s}, cases)
    return Job(
        engine="virtual",
        scenario=final,
        network=topologies.load(final.network, variant=final.variant),
        variant=final.variant,
        overrides={},
        cases=cases,
        protocols=tuple(wanted),
        seeds=(1,),
        duration_s=final.duration_s,
        out=Path("results"),
        retries=1,
    )
