"""`mstcp-lab plot RESULTS…`: any measure as a figure for a paper."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.cli.argument_types import positive
from experiments.errors import ScenarioError
from experiments.model.whole_files import write_whole, writing

if TYPE_CHECKING:
    from experiments.analysis.samples import Question, Sample

NAME = "plot"
HELP = "draw any measure of results or sweeps as a figure: distribution, boxes or lines"
KINDS = ("cdf", "box", "line")
FORMS = (".pdf", ".svg", ".png")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plot` to a parser."""
    parser.add_argument(
        "documents",
        nargs="+",
        type=Path,
        metavar="RESULTS",
        help="folders of `run` or `sweep`, or results.json files",
    )
    parser.add_argument(
        "--measure",
        default="goodput_bps",
        metavar="M",
        help="a column of numbers of `mstcp-lab export` (default goodput_bps); delay_s and fct_s have whole "
        "distributions",
    )
    parser.add_argument("--kind", choices=KINDS, default="box", help="what is drawn (default box)")
    parser.add_argument(
        "--over",
        metavar="X",
        help="what lines and boxes are drawn over: a column (time_s, load, case), a setting "
        "(tcp.congestion_control), a link's property (links.S0-S4.delay_us), or document",
    )
    parser.add_argument(
        "--by", default="protocol", metavar="X", help="what has a colour each (default protocol)"
    )
    parser.add_argument(
        "--where",
        type=_condition,
        action="append",
        default=[],
        metavar="X=V,…",
        help="draw only rows in which X is one of the values; repeatable",
    )
    parser.add_argument(
        "--out",
        type=_figure_path,
        action="append",
        required=True,
        metavar="FILE",
        help="figure.pdf, .svg or .png; repeatable",
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write what is drawn as a table")
    parser.add_argument("--width", type=positive, default=3.5, metavar="IN", help="in inches (default 3.5)")
    parser.add_argument("--height", type=positive, default=2.3, metavar="IN", help="in inches (default 2.3)")
    parser.add_argument(
        "--font-size", type=positive, default=8.0, metavar="PT", help="of the letters, in points (default 8)"
    )
    parser.add_argument("--log", action="store_true", help="a logarithmic axis for the measure")
    parser.add_argument("--title", metavar="TEXT", help="a title above the figure (default none)")
    parser.add_argument("--x-label", metavar="TEXT", help="replace the label of the x axis")
    parser.add_argument("--y-label", metavar="TEXT", help="replace the label of the y axis")


def main(args: argparse.Namespace) -> int:
    """Draw a figure; returns the exit status.

    Raises:
        ScenarioError: a document cannot be read, or has no value of what is asked for.
        UnknownName: there is no such measure, column or setting.
        OutputError: a file cannot be written.
    """
    # Matplotlib takes a second to import.
    from experiments.analysis.samples import Question, select
    from experiments.analysis.sources import read_sources
    from experiments.report.figure import Form, Kind, draw

    if args.kind == "line" and args.over is None:
        raise ScenarioError("--kind line", "", "needs --over: what the lines are drawn over")
    if args.kind == "cdf" and args.over is not None:
        raise ScenarioError("--kind cdf", "", "draws a curve for each --by; leave --over out")
    sources, notes = read_sources(args.documents)
    question = Question(args.measure, args.by, args.over, dict(args.where))
    samples = select(sources, question)
    form = Form(
        Kind(args.kind),
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
        with writing(path):
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
    with writing(path, "--csv"):
        write_whole(path, text.getvalue())


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
