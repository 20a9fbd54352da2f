"""`mstcp-lab resume DIR`: the runs of a results folder that are missing or were not valid."""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments.cli.messages import say
from experiments.cli.run_and_report import make_runs
from experiments.cli.run_arguments import add_output, add_retries, add_scheduler, retries
from experiments.cli.watch import add_watch_arguments
from experiments.model.job import begun

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
    return make_runs(job, args, resume=True)
