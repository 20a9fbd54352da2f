"""`mstcp-lab reproduce table1`: the paper's table in the simulator, beside the paper's and ns-3's figures."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rich.console import Console

import topologies
from experiments import overrides, runner, scenario
from experiments.errors import RunFailed, UnknownName
from experiments.job import Job
from experiments.progress import Display
from experiments.results import Results

TABLES = ("table1",)
VARIANTS = ("a", "b")
PROTOCOLS = ("mstcp", "ppfs", "ospf")
SETTINGS = {"allocation": "paper", "warm_up_s": 0.0}
"""The paper's allocation as it stands, and all that happened from the first byte on."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `reproduce` to a parser."""
    parser.add_argument("table", metavar="TABLE", help="table1: Table I of the MSTCP paper")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where page, plots and results go (default results/table1-TIME)",
    )
    parser.add_argument("--seeds", type=int, default=4, metavar="N", help="seeds 1 to N (default 4)")
    parser.add_argument(
        "--duration",
        type=float,
        default=120.0,
        metavar="S",
        help="seconds to simulate (default the paper's 120)",
    )
    parser.set_defaults(command=main)


def main(args: argparse.Namespace) -> int:
    """Reproduce a table; returns the exit status.

    Raises:
        UnknownName: there is no such table.
        ScenarioError: an argument does not fit.
        ExperimentError: a run failed, the user stopped, or the files cannot be written.
    """
    # Matplotlib takes a second to import, which the other commands should not wait for.
    from experiments.report.reproduction import reproduce
    from experiments.report.reproduction_page import write_reproduction
    from experiments.report.reproduction_text import print_reproduction

    if args.table not in TABLES:
        raise UnknownName("table", args.table, TABLES)
    out = (args.out or runner.default_output(args.table, time.time())).absolute()
    jobs = {variant: job_of(variant, args.seeds, args.duration, out / variant) for variant in VARIANTS}
    errors = Console(stderr=True)
    reproduction = reproduce({variant: _run(job, errors) for variant, job in jobs.items()})
    page = write_reproduction(reproduction, out)
    print_reproduction(reproduction, Console())
    Console().print(f"Page: {page}", highlight=False, markup=False, soft_wrap=True)
    return 0


def _run(job: Job, errors: Console) -> Results:
    with Display(errors, job.duration_s) as display:
        outcome = runner.run(job, display)
    if outcome.failures:
        raise RunFailed(f"The table's variant {job.variant}", outcome.failures[0])
    return outcome.results


def job_of(variant: str, seeds: int, duration_s: float, out: Path) -> Job:
    """Return the runs of the table on one variant of the butterfly.

    Raises:
        OverrideError: the duration is none.
    """
    loaded = scenario.load("butterfly")
    cases = tuple(loaded.cases)
    changed = {**SETTINGS, "variant": variant, "duration_s": duration_s}
    final = overrides.apply(loaded, changed, cases)
    return Job(
        engine="sim",
        scenario=final,
        network=topologies.load(final.network, variant=variant),
        variant=variant,
        overrides=dict(SETTINGS),
        cases=cases,
        protocols=PROTOCOLS,
        seeds=runner.seeds_up_to(seeds),
        duration_s=duration_s,
        out=out,
    )
