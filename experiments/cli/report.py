"""`mstcp-lab report DIR`: the report of a results folder, written again."""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments.cli.run_and_report import report
from experiments.model.reading import read_results

NAME = "report"
HELP = "rewrite the report of a results folder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the argument of `report` to a parser."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a folder with results.json")


def main(args: argparse.Namespace) -> int:
    """Write the report and print its table; returns the exit status.

    Raises:
        ScenarioError: the document cannot be read.
        OutputError: the files cannot be written.
    """
    report(read_results(args.folder), args.folder, table=True)
    return 0
