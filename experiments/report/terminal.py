"""The results as tables on a terminal, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from experiments.model.results import Results
from experiments.report import units
from experiments.report.collisions import collisions
from experiments.report.completions import Completions, completions
from experiments.report.notes import Notes, flow_notes, general_notes, validity_sentences
from experiments.report.sharing import sharing_sentences
from experiments.report.summary import CaseSummary, FlowSummary, summarise

WIDTH = 120
_ASCII = str.maketrans({"±": "+-", units.MISSING: "-", "→": "->"})
Rows: TypeAlias = Iterator["list[str] | None"]
_ENDS = ("flow", "protocol")
_MIN_WIDTHS = {"protocol": len("mptcp-dualhomed a"), "method": 10}
_MEASURED_COLUMNS = ("asked\nMbit/s", "got\nMbit/s", "got\n%", "delay\nmean ms", "delay\np95 ms")
_ACTIVE = ("active\nMbit/s",)
_PAPER = ("paper\nMbit/s", "paper\nmean ms")


def print_table(results: Results, console: Console) -> None:
    """Print a table for each case, at most 120 columns wide; plain ASCII where there is no terminal."""
    with printing(console) as plain:
        for part in _parts(results, plain):
            console.print(part, highlight=False)


@contextmanager
def printing(console: Console) -> Iterator[bool]:
    """Limit the console's width within this context; gives whether it takes plain ASCII alone."""
    plain = not console.is_terminal
    width_before = console.width
    console.width = WIDTH if plain else min(WIDTH, console.width)
    try:
        yield plain
    finally:
        console.width = width_before


def _parts(results: Results, plain: bool) -> Iterator[Text | Table]:
    for case in summarise(results):
        notes = Notes()
        yield _table(results, case, notes, plain)
        for mark, note in notes.items():
            yield visible(f"  {mark}: {note}", plain)
        completed = _completion_table(case, plain)
        if completed is not None:
            yield Text()
            yield completed
        for sentence in (*_collisions(case), *sharing_sentences(case)):
            yield visible(sentence, plain)
        yield Text()
    for sentence in general_notes(results):
        yield visible(sentence, plain, style="dim")
    for sentence in validity_sentences(results):
        yield visible(sentence, plain, style="bold red")


def _completion_table(case: CaseSummary, plain: bool) -> Table | None:
    """Return the flow completion times of a case; None where no flow has transfers."""
    groups = completions(case.flows)
    names = ("completed", "mean s", "p50 s", "p95 s", "p99 s", "max s")
    return filled("Flow completion times", _ENDS, names, _completion_rows(groups), plain) if groups else None


def _completion_rows(groups: Mapping[str, list[Completions]]) -> Rows:
    for flow, group in groups.items():
        yield None
        for row, each in enumerate(group):
            quantiles = (None if each.is_single else each.quantile_s(q) for q in ("p50", "p95", "p99", "max"))
            yield [
                "" if row else flow,
                each.flow.sender + each.flow.mark,
                f"{each.completed} of {each.started}",
                units.with_interval(each.mean_s, _seconds, 1),
                *(_or_missing(value, _seconds) for value in quantiles),
            ]


def _seconds(value: float) -> str:
    return units.decimal(value, 3)


def filled(
    title: str,
    texts: Sequence[str],
    numbers: Sequence[str],
    rows: Iterable[Sequence[str] | None],
    plain: bool,
) -> Table:
    """Return a table in the style of all: columns of texts, then of numbers; a row that is None is a rule."""
    table = Table(
        title=visible(title, plain, style="bold"),
        title_justify="left",
        show_edge=False,
        box=box.ASCII if plain else box.SIMPLE_HEAD,
    )
    for name in texts:
        table.add_column(name, overflow="fold", min_width=_MIN_WIDTHS.get(name))
    for name in numbers:
        table.add_column(name, justify="right", overflow="fold")
    for cells in rows:
        if cells is None:
            table.add_section()
        else:
            table.add_row(*(visible(cell, plain) for cell in cells))
    return table


def _collisions(case: CaseSummary) -> Iterator[str]:
    for each in collisions(case):
        runs = "1 run" if each.runs == 1 else f"{each.runs} runs"
        yield (
            f"{each.protocol}: {each.shared} of {each.flows} flows ({each.share:.0%}) shared a link "
            f"with another in {runs}."
        )


def _table(results: Results, case: CaseSummary, notes: Notes, plain: bool) -> Table:
    with_paper = any(flow.paper for group in case.flows.values() for flow in group)
    title = f"{results.scenario}, case {case.name} ({results.engine}, {_runs(case)})"
    further = case.further_metrics
    headings = tuple(metric.heading or metric.name for metric in further)
    active = _ACTIVE if case.has_active_goodput else ()

    def rows() -> Rows:
        for flow, group in case.flows.items():
            yield None
            for row, summary in enumerate(group):
                cells = _cells(summary, notes, with_paper=with_paper, with_active=bool(active))
                shown = (units.with_interval(summary.over_seeds(m), m.text, m.scale) for m in further)
                yield ["" if row else flow, *cells, *shown]

    return filled(
        title, _ENDS, _MEASURED_COLUMNS + active + (_PAPER if with_paper else ()) + headings, rows(), plain
    )


def _cells(flow: FlowSummary, notes: Notes, *, with_paper: bool, with_active: bool) -> list[str]:
    needed = flow_notes(flow)
    paper = flow.paper
    cells = [
        _marked(flow.sender, notes.mark(needed.row)),
        units.mbps(flow.requested_bps),
        units.with_interval(flow.goodput_bps, units.mbps, 1e-6),
        _marked(_or_missing(flow.goodput_ratio, units.percent), notes.mark(needed.ratio)),
        _marked(units.with_interval(flow.delay_mean_s, units.ms, 1e3), notes.mark(needed.delay)),
        _or_missing(flow.delay_quantile_s("p95"), units.ms),
    ]
    if with_active:
        cells.append(units.with_interval(flow.active_goodput_bps, units.mbps, 1e-6))
    if with_paper:
        cells += [
            _marked(_or_missing(paper.goodput_bps if paper else None, units.mbps), notes.mark(needed.paper)),
            _marked(
                _or_missing(paper.delay_mean_s if paper else None, units.ms),
                notes.mark(needed.paper_delay),
                " ",
            ),
        ]
    return cells


def _runs(case: CaseSummary) -> str:
    seeds = len({run.seed for run in case.runs})
    lengths = "/".join(f"{length:g}" for length in sorted({run.duration_s for run in case.runs}))
    return f"{seeds} seed{'s' if seeds > 1 else ''}, {lengths} s"


def _or_missing(value: float | None, form: Callable[[float], str]) -> str:
    return units.MISSING if value is None else form(value)


def _marked(text: str, mark: str, room: str = "") -> str:
    """Append a mark; `room` stands in for it where there is none, so that numbers stay in line."""
    return f"{text} {mark}" if mark else text + room * 2


def visible(text: str, plain: bool, style: str = "") -> Text:
    """Return text that no markup or control character in a name can change."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    if plain:
        shown = shown.translate(_ASCII).encode("ascii", "replace").decode("ascii")
    return Text(shown, style=style)
