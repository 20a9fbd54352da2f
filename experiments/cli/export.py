"""`mstcp-lab export RESULTS`: a results document as tables for other programs, or as a table in LaTeX."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable
from pathlib import Path

from experiments.analysis.tables import Table, tables
from experiments.cli.arguments import Arguments, argument, repeatable
from experiments.errors import MissingRequirement, ScenarioError
from experiments.installation import extra_command
from experiments.model.atomic_files import atomic_file, output_errors, write_output
from experiments.model.results_files import read_results

NAME = "export"
HELP = "export a results document as tables, in CSV, Parquet or LaTeX"

MEASURES = ("goodput_bps", "delay_mean_s")
Writer = Callable[[Table, Path], None]


ARGUMENTS: Arguments = (
    argument("results", "RESULTS", "a folder with results.json, or the file itself", Path),
    argument("--csv", "DIR", "write DIR/runs.csv, flows.csv, links.csv, series.csv, …", Path),
    argument("--parquet", "DIR", "write the same tables as Parquet (needs pyarrow)", Path),
    argument("--latex", "FILE", "write means with intervals as a table in LaTeX (booktabs)", Path),
    repeatable(
        "--measure",
        "M",
        f"a column of the table in LaTeX: one of flows.csv (default {' and '.join(MEASURES)})",
    ),
)


def main(args: argparse.Namespace) -> int:
    """Write the tables; returns the exit status."""
    wanted: list[tuple[Path, str, Writer]] = []
    if args.csv:
        wanted.append((args.csv, "csv", _write_csv))
    if args.parquet:
        wanted.append((args.parquet, "parquet", _parquet_writer()))
    if not wanted and not args.latex:
        raise ScenarioError("export", "", "name what to write: --csv DIR, --parquet DIR or --latex FILE")
    results = read_results(args.results)
    by_name = tables(results) if wanted else {}
    for folder, suffix, write in wanted:
        _write_all(by_name, folder, suffix, write)
        sys.stdout.write(f"{len(by_name)} tables: {folder}\n")
    if args.latex:
        from experiments.report.latex import latex_table

        write_output(args.latex, latex_table(results, args.measure or MEASURES), "--latex")
        sys.stdout.write(f"{args.latex}\n")
    return 0


def _write_all(by_name: dict[str, Table], folder: Path, suffix: str, write: Writer) -> None:
    with output_errors(folder, f"--{suffix}"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in by_name.items():
            with atomic_file(folder / f"{name}.{suffix}") as partial:
                write(table, partial)


def _write_csv(table: Table, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))


def _parquet_writer() -> Writer:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingRequirement(
            "Parquet files need pyarrow, which is not installed.", f"Install it: {extra_command('parquet')}"
        ) from None

    def write(table: Table, path: Path) -> None:
        pyarrow.parquet.write_table(pyarrow.table(table), path)

    return write
