"""`mstcp-lab methods KIND`: a method of one's own beside all built-in ones, with the same seeds."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments import runner
from experiments.analysis.statistics import Estimate, estimate_of_seeds
from experiments.cli.argument_types import simulated_seconds
from experiments.cli.run_arguments import add_scheduler
from experiments.engines.sim.methods import absolute, is_own
from experiments.engines.sim.process import SimulationFailed
from experiments.errors import RunFailed, ScenarioError
from experiments.report.terminal import plain_table, printing, visible
from experiments.scheduling.progress import RunsProgress
from experiments.scheduling.scheduler import each
from experiments.scheduling.simulator import simulator
from experiments.studies.own_methods import FIGURES, KINDS, check, describe

NAME = "methods"
HELP = "compare schedulers, congestion controls or responses to reordering"

DURATION_S = 20.0
HEADINGS = ("Mbit/s", "delay\nms", "out of\norder %", "buffer\nkB", "retransmits", "spurious\nretransmits")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `methods` to a parser."""
    parser.add_argument("kind", choices=tuple(KINDS), metavar="KIND", help=f"one of {', '.join(KINDS)}")
    parser.add_argument(
        "--own",
        action="append",
        default=[],
        metavar="FILE.py:NAME",
        help="add a class of your own, from a file or as MODULE:NAME; repeatable",
    )
    parser.add_argument(
        "--seeds", type=int, default=5, metavar="N", help="repeat each run with the seeds 1 to N (default 5)"
    )
    parser.add_argument(
        "--duration",
        type=simulated_seconds,
        default=DURATION_S,
        metavar="S",
        help=f"seconds to simulate (default {DURATION_S:g})",
    )
    add_scheduler(parser)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Compare; returns the exit status.

    Raises:
        ScenarioError: a method cannot be loaded, or an argument does not fit.
        ExperimentError: a run failed, or there is no such cluster.
    """
    kind = KINDS[args.kind]
    seeds = runner.seeds_up_to(args.seeds)
    _check_own(args.own)
    names = [*kind.built_in, *args.own]
    runs = [(name, describe(kind, name, args.duration, seed)) for name in names for seed in seeds]
    for name, description in runs[:: len(seeds)]:
        check(name, description)
    results = _run(runs, args.scheduler)
    figures = {
        name: {
            figure: estimate_of_seeds([of(flow) for flow in results[name]]) for figure, of in FIGURES.items()
        }
        for name in names
    }
    if args.json:
        sys.stdout.write(json.dumps(_document(args, figures), indent=1) + "\n")
    else:
        _print(args, figures)
    return 0


def _check_own(names: Sequence[str]) -> None:
    """Check that methods of one's own are that, each once; ScenarioError says which is not."""
    for number, name in enumerate(names):
        if not is_own(name):
            reason = f"{name!r} is no FILE.py:NAME or MODULE:NAME; built-in methods are compared in any case"
            raise ScenarioError("the command line", "--own", reason)
        if absolute(name) in map(absolute, names[:number]):
            raise ScenarioError("the command line", "--own", f"{name} is given twice")


def _run(
    runs: Sequence[tuple[str, dict[str, Any]]], address: str | None
) -> dict[str, list[Mapping[str, Any]]]:
    """Make the runs; returns the results of the flow by method, in the order of the seeds."""
    simulations = simulator(address)

    def simulate(run: tuple[int, tuple[str, dict[str, Any]]]) -> Mapping[str, Any]:
        _, (name, description) = run
        try:
            flow: Mapping[str, Any] = simulations.run(description).document["flows"][0]
        except SimulationFailed as error:
            raise RunFailed(f"{name}, seed {description['seed']}", str(error)) from error
        return flow

    results: dict[int, Mapping[str, Any]] = {}
    numbered = list(enumerate(runs))
    with (
        RunsProgress(Console(stderr=True), len(runs)) as progress,
        closing(each(numbered, simulate, simulations)) as ending,
    ):
        for (number, (name, description)), future in ending:
            results[number] = future.result()
            progress.end(f"{name}, seed {description['seed']}")
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for number, (name, _) in numbered:
        by_name.setdefault(name, []).append(results[number])
    return by_name


def _document(
    args: argparse.Namespace, figures: Mapping[str, Mapping[str, Estimate | None]]
) -> dict[str, Any]:
    return {
        "kind": args.kind,
        "seeds": args.seeds,
        "duration_s": args.duration,
        "methods": [
            {
                "name": name,
                "own": name in args.own,
                **{
                    figure: None if value is None else {"mean": value.mean, "half_width": value.half_width}
                    for figure, value in row.items()
                },
            }
            for name, row in figures.items()
        ],
    }


def _print(args: argparse.Namespace, figures: Mapping[str, Mapping[str, Estimate | None]]) -> None:
    console = Console()
    seeds = "1 seed" if args.seeds == 1 else f"{args.seeds} seeds"
    labels = [_label(name) for name in figures]
    with printing(console) as plain:
        table = plain_table(f"{args.kind}, {seeds} of {args.duration:g} s", plain)
        table.add_column("method", overflow="fold", min_width=10)
        for heading in HEADINGS:
            table.add_column(heading, justify="right", no_wrap=True)
        for name, row in figures.items():
            label = _label(name) if labels.count(_label(name)) == 1 else name
            cells = (label, *("" if value is None else _text(value) for value in row.values()))
            style = "bold" if name in args.own else ""
            table.add_row(*(visible(cell, plain) for cell in cells), style=style)
        console.print(table, highlight=False)


def _label(name: str) -> str:
    """Return a method's name with that of its file: a whole path would be folded over many lines."""
    place, colon, what = name.rpartition(":")
    return Path(place).name + colon + what


def _text(value: Estimate) -> str:
    spread = "" if value.half_width is None else f" ± {value.half_width:.2g}"
    return f"{value.mean:.4g}{spread}"
