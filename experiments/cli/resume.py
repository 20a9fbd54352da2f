"""`mstcp-lab resume DIR`: the runs of a results folder that are missing or were not valid."""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments.cli.arguments import MAKING_RUNS, RETRIES, Arguments, argument
from experiments.cli.messages import say
from experiments.cli.run_and_report import make_runs
from experiments.model.job import begun

NAME = "resume"
HELP = "make the missing runs of a results folder, and rerun the invalid ones"


ARGUMENTS: Arguments = (
    argument("folder", "FOLDER", "a folder that `run --out` wrote to", Path),
    RETRIES,
    *MAKING_RUNS,
)


def main(args: argparse.Namespace) -> int:
    """Make the runs that are missing; returns the exit status."""
    job = begun(args.folder).model_copy(update={"retries": args.retries})
    if not job.pending():
        say(f"Every run in {args.folder} is there and valid.")
        return 0
    return make_runs(job, args, resume=True)
