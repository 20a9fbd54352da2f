"""`mstcp-lab resume DIR`: the runs of a results folder that are missing or were not valid."""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments.cli.messages import exit_status, say
from experiments.cli.run_and_report import run_and_report
from experiments.cli.run_arguments import add_output, add_retries, add_scheduler, retries
from experiments.cli.watch import add_watch_arguments, watching
from experiments.model.job import begun
from experiments.runner import checked_engine

NAME = "resume"
HELP = "make the missing runs of a results folder, and rerun the invalid ones"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `resume` to a parser."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a folder that `run --out` wrote to")
    add_retries(parser)
    add_scheduler(parser)
    add_output(parser)
    add_watch_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Make the runs that are missing; returns the exit status.

    Raises:
        ExperimentError: the folder cannot be used, the machine lacks something, or the user stopped.
    """
    job = begun(args.folder).model_copy(update={"retries": retries(args)})
    if not job.pending():
        say(f"Every run in {args.folder} is there and valid.")
        return 0
    engine = checked_engine(job, args.scheduler)
    with watching(job, args) as watch:
        failures = run_and_report(
            job, json=args.json, has_report=args.has_report, resume=True, engine=engine, watch=watch
        )
        return exit_status(failures)
