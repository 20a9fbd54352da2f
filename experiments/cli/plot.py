"""`mstcp-lab plot RESULTS…`: any measure as a figure for a paper."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.cli.arguments import Arguments, argument, flag, positive, repeatable
from experiments.errors import ScenarioError
from experiments.model.atomic_files import output_errors, write_output

if TYPE_CHECKING:
    from experiments.analysis.samples import Question, Sample

NAME = "plot"
HELP = "draw any measure of results or sweeps as a figure: distribution, boxes or lines"
KINDS = ("cdf", "box", "line")
FORMS = (".pdf", ".svg", ".png")


def _condition(text: str) -> tuple[str, tuple[str, ...]]:
    name, equals, values = text.partition("=")
    if not (name and equals and values):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE or NAME=VALUE,VALUE")
    return name, tuple(values.split(","))


def _figure_path(text: str) -> Path:
    path = Path(text)
    if path.suffix not in FORMS:
        raise argparse.ArgumentTypeError(f"{text!r} does not end in {', '.join(FORMS[:-1])} or {FORMS[-1]}")
    return path


ARGUMENTS: Arguments = (
    argument("documents", "RESULTS", "folders of `run` or `sweep`, or results.json files", Path, nargs="+"),
    argument(
        "--measure",
        "M",
        "a column of numbers of `mstcp-lab export`; delay_s and fct_s have whole distributions",
        default="goodput_bps",
    ),
    argument("--kind", "K", f"what is drawn: {', '.join(KINDS)}", None, "box", choices=KINDS),
    argument(
        "--over",
        "X",
        "what lines and boxes are drawn over: a column (time_s, load, case), a setting "
        "(tcp.congestion_control), a link's property (links.S0-S4.delay_us), or document",
    ),
    argument("--by", "X", "what has a colour each", None, "protocol"),
    repeatable("--where", "X=V,…", "draw only rows in which X is one of the values", _condition),
    repeatable("--out", "FILE", "figure.pdf, .svg or .png", _figure_path, default=None, required=True),
    argument("--csv", "FILE", "write what is drawn as a table", Path),
    argument("--width", "IN", "in inches", positive, 3.5),
    argument("--height", "IN", "in inches", positive, 2.3),
    argument("--font-size", "PT", "of the letters, in points", positive, 8),
    flag("--log", "a logarithmic axis for the measure"),
    argument("--title", "TEXT", "a title above the figure (default none)"),
    argument("--x-label", "TEXT", "replace the label of the x axis"),
    argument("--y-label", "TEXT", "replace the label of the y axis"),
)


def main(args: argparse.Namespace) -> int:
    """Draw a figure; returns the exit status."""
    # Matplotlib takes a second to import.
    from experiments.analysis.samples import Question, select
    from experiments.analysis.sources import read_sources
    from experiments.report.figure import Form, PlotKind, draw

    if args.kind == "line" and args.over is None:
        raise ScenarioError("--kind line", "", "needs --over: what the lines are drawn over")
    if args.kind == "cdf" and args.over is not None:
        raise ScenarioError("--kind cdf", "", "draws a curve for each --by; leave --over out")
    sources, notes = read_sources(args.documents)
    question = Question(args.measure, args.by, args.over, dict(args.where))
    samples = select(sources, question)
    form = Form(
        PlotKind(args.kind),
        width_in=args.width,
        height_in=args.height,
        font_size_pt=args.font_size,
        is_logarithmic=args.log,
        title=args.title,
        x_label=args.x_label,
        y_label=args.y_label,
    )
    plot = draw(samples, question, form)
    for path in args.out:
        with output_errors(path):
            plot.write_as(path)
    if args.csv:
        _write_csv(args.csv, samples, question)
    for note in notes:
        print(note, file=sys.stderr)
    print("\n".join(map(str, [*args.out, *filter(None, [args.csv])])))
    return 0


def _write_csv(path: Path, samples: Sequence[Sample], question: Question) -> None:
    columns = [question.by, question.over, "mean", "half_width", "runs", "values"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(name for name in columns if name)
    for sample in samples:
        at = [] if question.over is None else [sample.at]
        mean = sample.mean
        values = " ".join(map(repr, sample.values))
        writer.writerow([sample.group, *at, mean.mean, mean.half_width, mean.count, values])
    write_output(path, text.getvalue(), "--csv")
