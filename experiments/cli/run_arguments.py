"""The arguments that several commands have which make runs."""

from __future__ import annotations

import argparse

from experiments.errors import ScenarioError
from experiments.model.job import PARALLEL_LIMIT, RETRY_LIMIT

JSON_HELP = "print the results document on standard output"


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add `--json` and `--no-report` to a command's arguments."""
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    parser.add_argument(
        "--no-report",
        dest="has_report",
        action="store_false",
        help="write results.json alone, without report.html and plots; `mstcp-lab report` makes them later",
    )


def add_scheduler(parser: argparse.ArgumentParser) -> None:
    """Add `--scheduler` to a command's arguments."""
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="simulate on the Dask cluster with this scheduler: tcp://HOST:8786 (default: on this machine)",
    )


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add `--jobs` to a command's arguments."""
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="virtual engine and simulator: number of runs at once (default: one per core)",
    )


def jobs(args: argparse.Namespace) -> int | None:
    """Return how many runs are made at once; raises ScenarioError for a number out of range."""
    count: int | None = args.jobs
    if count is not None and not 1 <= count <= PARALLEL_LIMIT:
        raise ScenarioError("--jobs", "", f"{count} is not between 1 and {PARALLEL_LIMIT}")
    return count


def add_retries(parser: argparse.ArgumentParser) -> None:
    """Add `--retries` to a command's arguments."""
    parser.add_argument(
        "--retries",
        type=int,
        default=0,
        metavar="N",
        help="rerun invalid runs (the machine was too busy) up to N times (default 0)",
    )


def retries(args: argparse.Namespace) -> int:
    """Return how often an invalid run is rerun; raises ScenarioError for a number out of range."""
    count: int = args.retries
    if not 0 <= count <= RETRY_LIMIT:
        raise ScenarioError("--retries", "", f"{count} is not between 0 and {RETRY_LIMIT}")
    return count
