"""`mstcp-lab compare A B`: two or more results documents, what was set otherwise, and what it changed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from experiments.cli.arguments import JSON, Arguments, argument, repeatable
from experiments.errors import ScenarioError
from experiments.model.results_files import document_name, read_results

NAME = "compare"
HELP = "compare results: which settings and figures differ, and whether significantly"


ARGUMENTS: Arguments = (
    argument(
        "documents",
        "RESULTS",
        "two or more folders with results.json, or the files themselves; all are compared with the first",
        Path,
        nargs="+",
    ),
    argument("--out", "DIR", "write compare.html and its plots to this folder", Path),
    repeatable("--measure", "M", "compare this measure of flows too: a column of flows.csv (`export --csv`)"),
    JSON,
)


def main(args: argparse.Namespace) -> int:
    """Compare results documents; returns the exit status."""
    # Matplotlib takes a second to import, which only those should wait for who compare.
    from experiments.report.comparison import MAX_DOCUMENTS, NotComparable, compare
    from experiments.report.comparison_json import to_json
    from experiments.report.comparison_terminal import print_comparison

    if not 2 <= len(args.documents) <= MAX_DOCUMENTS:
        raise ScenarioError("compare", "", f"takes 2 to {MAX_DOCUMENTS} results, not {len(args.documents)}")
    named = [(document_name(path), read_results(path)) for path in args.documents]
    try:
        comparison = compare(named, args.measure)
    except NotComparable as error:
        raise ScenarioError(
            error.other, "", f"cannot be compared with {error.first}: {error.reason}"
        ) from None
    if args.json:
        sys.stdout.write(to_json(comparison))
    else:
        print_comparison(comparison, Console())
    if args.out:
        from experiments.report.comparison_page import write_comparison

        page = write_comparison(comparison, args.out)
        print(f"Page: {page}", file=sys.stderr if args.json else sys.stdout)
    return 0
