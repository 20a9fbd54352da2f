"""`mstcp-lab report DIR`: the report of a results folder, written again."""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments.cli.arguments import Arguments, argument
from experiments.cli.run_and_report import report
from experiments.model.results_files import read_results

NAME = "report"
HELP = "rewrite the report of a results folder"


ARGUMENTS: Arguments = (argument("folder", "FOLDER", "a folder with results.json", Path),)


def main(args: argparse.Namespace) -> int:
    """Write the report and print its table; returns the exit status."""
    report(read_results(args.folder), args.folder, table=True)
    return 0
