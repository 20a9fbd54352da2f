"""`mstcp-lab methods KIND`: a method of one's own beside all built-in ones, with the same seeds."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments.analysis.statistics import Estimate, estimate_of_seeds
from experiments.cli.arguments import (
    JSON,
    SCHEDULER,
    Arguments,
    argument,
    repeatable,
    seeds_argument,
    simulated_seconds,
)
from experiments.engines.sim.methods import absolute, is_own
from experiments.engines.sim.process import SimulationFailed
from experiments.engines.thread_pool import run_together
from experiments.errors import RunFailed, ScenarioError
from experiments.report.terminal import filled, printing
from experiments.scheduling.progress import RunsProgress
from experiments.scheduling.simulator import simulator
from experiments.studies.own_methods import FIGURES, KINDS, check, describe

NAME = "methods"
HELP = "compare schedulers, congestion controls or responses to reordering"

HEADINGS = ("Mbit/s", "delay\nms", "out of\norder %", "buffer\nkB", "retransmits", "spurious\nretransmits")


ARGUMENTS: Arguments = (
    argument("kind", "KIND", f"one of {', '.join(KINDS)}", choices=tuple(KINDS)),
    repeatable("--own", "FILE.py:NAME", "add a class of your own, from a file or as MODULE:NAME"),
    seeds_argument(5),
    argument("--duration", "S", "seconds to simulate", simulated_seconds, 20),
    SCHEDULER,
    JSON,
)


def main(args: argparse.Namespace) -> int:
    """Compare; returns the exit status."""
    kind = KINDS[args.kind]
    seeds = range(1, args.seeds + 1)
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

    def simulate(run: tuple[str, dict[str, Any]]) -> Mapping[str, Any]:
        name, description = run
        try:
            flow: Mapping[str, Any] = simulations.run(description).document["flows"][0]
        except SimulationFailed as error:
            raise RunFailed(f"{name}, seed {description['seed']}", str(error)) from error
        return flow

    results: dict[int, Mapping[str, Any]] = {}
    with (
        RunsProgress(Console(stderr=True), len(runs)) as progress,
        run_together(runs, simulate, workers=simulations.at_once, stop=simulations.stop) as ending,
    ):
        for number, (name, description), future in ending:
            results[number] = future.result()
            progress.end(f"{name}, seed {description['seed']}")
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for number, (name, _) in enumerate(runs):
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
    rows = (
        [
            (label if labels.count(label) == 1 else name) + (" *" if name in args.own else ""),
            *("" if value is None else _text(value) for value in row.values()),
        ]
        for label, (name, row) in zip(labels, figures.items(), strict=True)
    )
    title = f"{args.kind}, {seeds} of {args.duration:g} s" + (" (* of your own)" if args.own else "")
    with printing(console) as plain:
        console.print(filled(title, ["method"], HEADINGS, rows, plain), highlight=False)


def _label(name: str) -> str:
    """Return a method's name with that of its file: a whole path would be folded over many lines."""
    place, colon, what = name.rpartition(":")
    return Path(place).name + colon + what


def _text(value: Estimate) -> str:
    spread = "" if value.half_width is None else f" ± {value.half_width:.2g}"
    return f"{value.mean:.4g}{spread}"
