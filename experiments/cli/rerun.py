"""`mstcp-lab rerun RESULTS.json`: the runs of a results document, made again from it alone."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from experiments import engines, runner
from experiments.cli.arguments import JOBS, MAKING_RUNS, OUT, RETRIES, Arguments, argument
from experiments.cli.messages import EXIT_FAILED, complain, say
from experiments.cli.run_and_report import make_runs
from experiments.engines.base import Clock
from experiments.model.job import Job
from experiments.model.results import Results
from experiments.model.results_files import read_results
from experiments.registry import extension_files
from experiments.rerunning import differences, rerun_of

NAME = "rerun"
HELP = "make the runs of a results document again, from the document alone"


ARGUMENTS: Arguments = (
    argument("results", "RESULTS", "a results.json, or the folder of one", Path),
    RETRIES,
    JOBS,
    OUT,
    *MAKING_RUNS,
)


def main(args: argparse.Namespace) -> int:
    """Make the runs and compare them with the document's; returns the exit status."""
    before, source = read_results(args.results), str(args.results)
    options = {"retries": args.retries, "parallel": args.jobs}
    # The folder that is made by default comes last: nothing is left of a document that is refused.
    rerun = rerun_of(before, source, args.out or Path(), extension_files(), **options)
    out = args.out or runner.default_output(before.scenario, time.time())
    job = rerun.job.model_copy(update={"out": out.absolute()})
    for note in rerun.notes:
        say(note)
    if rerun.folder is not None:
        os.chdir(rerun.folder)
    return make_runs(job, args) or _compared(before, job, source)


def _compared(before: Results, job: Job, source: str) -> int:
    """Say whether the runs are those of the document, where that can be expected."""
    if engines.get(job.engine).abilities.clock is Clock.MACHINE:
        return 0
    sentences = differences(before, read_results(job.out), source)
    for sentence in sentences:
        complain(sentence, EXIT_FAILED)
    if sentences:
        return EXIT_FAILED
    say(f"The runs are those of {source}, to the byte.")
    return 0
