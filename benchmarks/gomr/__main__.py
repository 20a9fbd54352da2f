"""Measures GOMR's engines and writes a table.

python -m benchmarks.gomr [--quick] [--json] [--out DIR] [FOLDER or GRAPHML ...]
python -m benchmarks.gomr --live [--quick] [--flows N] [--out DIR] [FOLDER or GRAPHML ...]
python -m benchmarks.gomr --independent [--quick] [--seed N] [--out DIR]
python -m benchmarks.gomr --regular [--quick] [--seed N] [--budget S] [--out DIR]
python -m benchmarks.gomr --sizes [--quick] [--budget S] [--out DIR] [FOLDER or FILE ...]

Runs every engine on the butterfly, on generated networks of 20, 50 and 100 nodes, and on the GraphML files
given, with gravity demands at a load of 1.1 (91 % admitted): from scratch, at three times the load, and from
event to event. Times are medians of the CPU time of one thread.

With --independent it compares 240 random and structured problems under every objective with linear programmes
over edges, solved by scipy, and fails where one differs by more than 1e-9; --quick takes 24 of them.

With --regular it solves problems on 1,000 regular networks of equal links (fat-trees, grids, tori,
cliques ...) by `native` and on HiGHS, and fails where one does not end, differs or takes over ten times as
long; --quick takes 24 of them.

With --sizes it measures fat-trees and whole matrices of up to 1,000 nodes, and of the files given (GraphML,
or JSON as Teal has it, with its matrices beside it), beside HiGHS's simplex, interior points and PDLP, and
or-tools' PDLP, and goes on where a run into the same folder ended; --quick takes the two smallest.

With --live it holds every event on 50 nodes with 200 flows, and on the files given, against a fresh solve of
the same problem, under three objectives and with minimum reallocation, and fails where one costs more
than 1.2 times.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.command_line import command_line
from benchmarks.gomr import independent, live, regular, sizes
from benchmarks.gomr.cells import ENGINE_NAMES, Cell, RunSize, measure
from benchmarks.gomr.networks import Size
from benchmarks.gomr.tables import markdown

FULL = RunSize(budget_s=20, repeats=5, events=100, failures=30)
QUICK = RunSize(budget_s=3, repeats=3, events=20, failures=5)
BUILT_IN = {
    size.spec: size
    for size in (
        Size("butterfly", 2),
        Size("geometric:20", 100),
        Size("geometric:50", 500),
        Size("geometric:100", 1000),
    )
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    if args.live or args.independent or args.sizes or args.regular:
        return _compare(parser, args)
    effort = QUICK if args.quick else FULL
    if args.budget is not None:
        effort = RunSize(args.budget, effort.repeats, effort.events, effort.failures)
    engines = args.engines.split(",")
    for engine in engines:
        if engine not in ENGINE_NAMES:
            parser.error(f"there is no engine {engine!r}; engines are {', '.join(ENGINE_NAMES)}")
    built_in = [] if args.only_files else args.only.split(",")
    for spec in built_in:
        if spec not in BUILT_IN:
            parser.error(f"there is no built-in network {spec!r}; there are {', '.join(BUILT_IN)}")
    files = _files(parser, args.networks)
    sizes = [*(BUILT_IN[spec] for spec in built_in), *(Size(str(file), args.flows) for file in files)]
    cells = []
    try:
        for size in sizes:
            for engine in engines:
                print(f"{size.name}, {size.flows} flows, {engine}", file=sys.stderr)
                cells.append(measure(size, engine, effort))
    except KeyboardInterrupt:
        print("Interrupted; nothing is written", file=sys.stderr)
        return 130
    _write(cells, effort, args.out, as_json=args.json)
    return 0


def _compare(parser: argparse.ArgumentParser, args: argparse.Namespace) -> int:
    if args.independent:
        return independent.main(24 if args.quick else independent.COUNT, args.seed, args.out)
    if args.regular:
        count = regular.QUICK if args.quick else regular.COUNT
        return regular.main(count, args.seed, args.budget or regular.BUDGET_S, args.out)
    if args.sizes:
        built_in = () if args.only_files else sizes.BUILT_IN[: sizes.QUICK if args.quick else None]
        rows = [*built_in, *(row for file in _files(parser, args.networks) for row in sizes.rows_of(file))]
        return sizes.main(rows, args.budget or sizes.BUDGET_S, args.out, as_json=args.json)
    loaded = [Size(str(file), args.flows) for file in _files(parser, args.networks)]
    events, failures = (20, 5) if args.quick else (60, 15)
    return live.main([*([] if args.only_files else [live.SMALL]), *loaded], events, failures, args.out)


def _files(parser: argparse.ArgumentParser, paths: Sequence[Path]) -> list[Path]:
    """Return the files, and those in the folders."""
    suffixes = (".graphml", ".json")
    files = [
        file
        for path in paths
        for file in (sorted(path.iterdir()) if path.is_dir() else [path])
        if file.suffix in suffixes or not path.is_dir()
    ]
    missing = [str(file) for file in files if not file.is_file()]
    if missing:
        parser.error(f"there is no file {', '.join(missing)}")
    return files


def _parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__, with_json=True)
    parser.add_argument("networks", nargs="*", type=Path, metavar="GRAPHML", help="files, or folders of them")
    parser.add_argument(
        "--flows", type=int, default=1000, help="flows on each GraphML network (default 1000)"
    )
    parser.add_argument("--only-files", action="store_true", help="leave the built-in networks out")
    parser.add_argument(
        "--only",
        default=",".join(BUILT_IN),
        metavar="NAMES",
        help=f"the built-in networks to run, by commas (default {','.join(BUILT_IN)})",
    )
    parser.add_argument(
        "--engines", default=",".join(ENGINE_NAMES), help=f"by commas (default {','.join(ENGINE_NAMES)})"
    )
    parser.add_argument(
        "--budget",
        type=float,
        metavar="S",
        help="seconds for each series of solves (CPU time), and for each solve (wall time)",
    )
    parser.add_argument("--live", action="store_true", help="events beside fresh solves instead")
    parser.add_argument(
        "--independent", action="store_true", help="native beside linear programmes over edges instead"
    )
    parser.add_argument(
        "--regular", action="store_true", help="regular networks of equal links instead, native beside HiGHS"
    )
    parser.add_argument(
        "--sizes", action="store_true", help="large problems instead, beside HiGHS's methods and PDLP"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="of the problems of --independent and --regular (default 1)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats and a budget of 3 s, not 20 s")
    parser.add_argument("--out", type=Path, default=Path("results/gomr"), help="default results/gomr")
    return parser


def _write(cells: Sequence[Cell], effort: RunSize, out: Path, *, as_json: bool) -> None:
    table = markdown(cells, effort.budget_s)
    document = {
        "format": 1,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "budget_s": effort.budget_s,
        "cells": [asdict(cell) for cell in cells],
    }
    text = json.dumps(document, indent=2) + "\n"
    out.mkdir(parents=True, exist_ok=True)
    (out / "gomr.json").write_text(text, encoding="utf-8")
    (out / "gomr.md").write_text(table, encoding="utf-8")
    sys.stdout.write(text if as_json else table)
    print(f"Written to {out}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
