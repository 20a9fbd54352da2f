"""`mstcp-lab reproduce NAME`: a paper's tables and sentences in the simulator, beside the paper's figures.

The studies are files (docs/studies.md).
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console

from experiments.cli.arguments import JSON, SCHEDULER, Arguments, argument, flag, seeds_argument
from experiments.cli.messages import resume_command, stop_on
from experiments.errors import Interrupted, ScenarioError
from experiments.model.atomic_files import write_output
from experiments.model.problems import first_problem
from experiments.scheduling.progress import RunsProgress
from experiments.scheduling.simulator import simulator
from experiments.studies import kernel, measure, schema
from experiments.studies.document import StudyDocument
from experiments.studies.evaluate import OnKernel, evaluate, together
from experiments.studies.text import print_study

NAME = "reproduce"
HELP = "reproduce the tables and claims of a paper in the simulator"

STUDY = "study.json"


ARGUMENTS: Arguments = (
    argument(
        "study",
        "NAME",
        f"a built-in study: {', '.join([*schema.available(), schema.ALL])}; or a TOML file of your own",
    ),
    argument(
        "--out",
        "DIR",
        "keep finished runs in DIR/runs.jsonl; write DIR/study.html, study.md, study.json and figures",
        Path,
    ),
    argument(
        "--engine",
        "E",
        "sim, or virtual: the simulator, and a Linux kernel in virtual time beside it where that can be",
        default="sim",
        choices=("sim", "virtual"),
    ),
    flag("--resume", "continue an earlier call in DIR; studies and seeds may be added"),
    SCHEDULER,
    seeds_argument(4),
    argument("--duration", "S", "seconds to simulate (default: as in the paper)", float),
    JSON,
)


def main(args: argparse.Namespace) -> int:
    """Reproduce a study; returns the exit status."""
    stop_on(signal.SIGTERM)
    if args.resume and args.out is None:
        raise ScenarioError("the command line", "--resume", "needs --out DIR, the folder to go on in")
    names = list(schema.available()) if args.study == schema.ALL else [args.study]
    studies = [_with_duration(schema.load(name), args.duration) for name in names]
    documents = _measure(studies, args)
    document = together(schema.ALL, documents) if args.study == schema.ALL else documents[0]
    text = document.to_json()
    if args.json:
        sys.stdout.write(text)
    else:
        print_study(document, Console())
    if args.out is not None:
        page = _write(list(zip(studies, documents, strict=True)), text, args.seeds, args.out)
        Console(stderr=args.json).print(f"Page: {page}", highlight=False, markup=False, soft_wrap=True)
    return 0


def _write(studies: Sequence[tuple[schema.Study, StudyDocument]], text: str, seeds: int, out: Path) -> Path:
    """Write the document, and the studies as a page with figures and as Markdown; returns the page's path."""
    # Matplotlib takes a second to import, which calls without a folder should not wait for.
    from experiments.report.study_page import write_studies

    write_output(out / STUDY, text)
    return write_studies(studies, seeds, out)


class _Bars:
    """A bar for the runs of each part, on standard error."""

    def __init__(self, shown: ExitStack) -> None:
        self._shown = shown
        self._bar: RunsProgress | None = None
        self.planned = self.ended = 0

    def begin(self, runs: int) -> None:
        """Show a bar for this many further runs."""
        self.planned += runs
        self._shown.close()
        self._bar = self._shown.enter_context(RunsProgress(Console(stderr=True), runs))

    def end(self, label: str) -> None:
        """Show that a run has ended."""
        assert self._bar is not None, "its part has begun"
        self.ended += 1
        self._bar.end(label)


def _measure(studies: Sequence[schema.Study], args: argparse.Namespace) -> list[StudyDocument]:
    """Make the runs of studies, with their progress on standard error, and hold them against the papers."""
    for study in studies:
        measure.plan(study, 1)  # what is wrong with a study shows before anything is written or joined
    keep = measure.StudyStore(args.out, resume=args.resume)
    simulations = simulator(args.scheduler)
    with ExitStack() as shown:
        bars = _Bars(shown)
        try:
            measured = measure.run(
                studies, args.seeds, simulations, keep=keep, begin=bars.begin, report=bars.end
            )
            kernels: list[OnKernel | None] = [None] * len(studies)
            if args.engine == "virtual":
                kernels = [kernel.run(study, args.seeds, args.out, bars.begin, bars.end) for study in studies]
        except (KeyboardInterrupt, Interrupted):
            if args.out is None:
                raise
            raise Interrupted(bars.ended, bars.planned, resume_command(args)) from None
    return [evaluate(*each) for each in zip(studies, measured, kernels, strict=True)]


def _with_duration(study: schema.Study, duration_s: float | None) -> schema.Study:
    if duration_s is None:
        return study
    try:
        return schema.Study.model_validate({**study.model_dump(by_alias=True), "duration_s": duration_s})
    except ValidationError as error:
        raise ScenarioError("the command line", "--duration", first_problem(error)[1]) from None
