"""Runs a job in front of a user: how long it takes, its progress, its table and its report."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from experiments import engines, runner
from experiments.cli.messages import exit_status, stop_on
from experiments.cli.progress import Display
from experiments.cli.watch import watching
from experiments.engines.base import Clock, Engine
from experiments.model.events import Event
from experiments.model.job import Job
from experiments.model.results import Results

RUN_OVERHEAD_S = 4.0
"""What the live engine takes to build a network, to drain and to tear it down."""


def run_and_report(
    job: Job,
    *,
    json: bool,
    has_report: bool = True,
    resume: bool = False,
    engine: Engine | None = None,
    watch: Callable[[Event], None] = lambda _: None,
) -> list[str]:
    """Run a job, show its progress, and write its report if asked for; returns a sentence for each failure.

    With `json` the results document alone is printed, instead of the table. `engine` is what
    `runner.checked_engine` returned for the job. `watch` is given the events too; what it raises ends the
    runs.
    """
    stop_on(signal.SIGTERM)
    engine = engine or runner.checked_engine(job)
    errors = Console(stderr=True)
    errors.print(how_long(job), highlight=False, soft_wrap=True)
    with Display(errors, job.duration_s) as display:

        def take(event: Event) -> None:
            display(event)
            watch(event)

        outcome = runner.run(job, take, resume=resume, engine=engine)
    if json:
        sys.stdout.write(outcome.results.to_json())
    if outcome.results.runs and has_report:
        report(outcome.results, job.out, table=not json)
    elif outcome.results.runs and not json:
        show_table(outcome.results)
    return outcome.failures


def make_runs(job: Job, args: argparse.Namespace, *, resume: bool = False) -> int:
    """Make the runs of a command with the options of `run`; returns the exit status."""
    engine = runner.checked_engine(job, args.scheduler)
    options = {"json": args.json, "has_report": args.has_report, "resume": resume}
    with watching(job, args) as watch:
        return exit_status(run_and_report(job, **options, engine=engine, watch=watch))


def how_long(job: Job) -> str:
    """Return a sentence that says what is run, and how long that takes where it is known."""
    count = len(job.pending())
    runs = "1 run" if count == 1 else f"{count} runs"
    stop = "Ctrl-C ends it early and keeps what is complete."
    if engines.get(job.engine).abilities.clock is not Clock.MACHINE:
        return f"{runs} of {job.duration_s:g} s. {stop}"
    minutes = count * (job.scenario.warm_up_s + job.duration_s + RUN_OVERHEAD_S) / 60
    about = f"about {minutes:.0f} minutes" if round(minutes) > 1 else "about a minute"
    return f"{runs} of {job.duration_s:g} s: {about}. {stop}"


def report(results: Results, folder: Path, *, table: bool) -> None:
    """Write a document's report beside it, and print its table if asked for."""
    # Matplotlib takes a second to import, which only those should wait for who get plots.
    from experiments.report.page import write_report

    page = write_report(results, folder)
    if table:
        show_table(results)
        sys.stdout.write(f"Report: {page}\n")


def show_table(results: Results) -> None:
    """Print a document's table."""
    from experiments.report.terminal import print_table

    print_table(results, Console())
