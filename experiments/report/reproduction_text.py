"""The reproduction of Table I as a table on the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from experiments.analysis.statistics import Estimate
from experiments.report import units
from experiments.report.notes import Notes
from experiments.report.reproduction import Reproduction, Row
from experiments.report.terminal import plain_table, printing, visible

HEADS = (
    "paper\nMbit/s", "ns-3\nMbit/s", "ours\nMbit/s", "diff.\n%",
    "paper\nms", "ns-3\nms", "ours\nms", "diff.\n%",
)  # fmt: skip
EXPLANATION = (
    "Goodput and mean delay, from write to in-order read. Behind ours stands half of the 95 % confidence "
    "interval over the seeds; diff. is ours against ns-3."
)


def print_reproduction(reproduction: Reproduction, console: Console) -> None:
    """Print a table for each variant, at most 100 columns wide."""
    with printing(console) as plain:
        for variant, rows in reproduction.rows.items():
            notes = Notes()
            console.print(_table(variant, rows, notes, plain), highlight=False)
            for mark, note in notes.items():
                console.print(visible(f"  {mark}: {note}", plain), highlight=False)
            console.print(Text())
        console.print(visible(f"{described(reproduction)} {EXPLANATION}", plain, style="dim"))


def described(reproduction: Reproduction) -> str:
    """Return a sentence that says what was run."""
    count = reproduction.seeds
    seeds = "1 seed" if count == 1 else f"{count} seeds"
    sentence = f"Each cell is of {seeds} of {reproduction.duration_s:g} s."
    return sentence if reproduction.is_the_papers else f"{sentence} The paper and ns-3 ran 120 s."


def _table(variant: str, rows: Sequence[Row], notes: Notes, plain: bool) -> Table:
    table = plain_table(f"Table I, butterfly variant {variant}", plain)
    table.add_column("flow", no_wrap=True)
    for head in HEADS:
        table.add_column(head, justify="right", no_wrap=True)
    for before, row in zip([None, *rows], rows, strict=False):
        if before is not None and _flow(before) != _flow(row):
            table.add_section()
        # The ranges of ns-3 are left to the page: a terminal has no room for them.
        cells = [row.name, *cells_of(row, notes, ranges=False)]
        table.add_row(*(visible(cell, plain) for cell in cells))
    return table


def _flow(row: Row) -> str:
    return f"{row.paper.case}.{row.paper.flow}"


def cells_of(row: Row, notes: Notes, *, ranges: bool = True) -> list[str]:
    """Return the figures of a row as text, in the order of `HEADS`; the paper's doubtful ones are marked.

    Args:
        row: Of the table.
        notes: Takes why a figure is doubtful.
        ranges: Whether ns-3's delays have their range over its seeds, where it is known.
    """
    mark = notes.mark(f"nothing reproduces it: {row.paper.doubtful}" if row.paper.doubtful else None)
    return [
        units.mbps(row.paper.goodput_bps),
        units.mbps(row.ns3.goodput_bps),
        _with_interval(row.goodput_bps, 1e-6),
        signed_percent(row.goodput_difference),
        units.ms(row.paper.delay_mean_s) + (f" {mark}" if mark else ""),
        units.ms(row.ns3.delay_mean_s) + (_range(row) if ranges else ""),
        _with_interval(row.delay_mean_s, 1e3),
        signed_percent(row.delay_difference),
    ]


def _range(row: Row) -> str:
    spread = row.ns3.delay_range_s
    return "" if spread is None else f" ({spread[0] * 1e3:g} to {spread[1] * 1e3:g})"


def signed_percent(difference: float | None) -> str:
    """Return a relative difference in percent with its sign."""
    return units.MISSING if difference is None else f"{difference * 100:+.1f}"


def _with_interval(estimate: Estimate | None, scale: float) -> str:
    if estimate is None:
        return units.MISSING
    mean = f"{estimate.mean * scale:.2f}"
    return (
        mean
        if estimate.half_width is None
        else f"{mean} ±{units.interval(mean, estimate.half_width * scale)}"
    )


def to_markdown(reproduction: Reproduction) -> str:
    """Return the tables as Markdown."""
    parts = ["# Table I of the MSTCP paper, reproduced", "", f"{described(reproduction)} {EXPLANATION}"]
    for variant, rows in reproduction.rows.items():
        notes = Notes()
        heads = ["case.flow", "protocol", *(head.replace("\n", " ") for head in HEADS)]
        parts += ["", f"## Butterfly variant {variant}", "", _line(heads), _line(["---"] * len(heads))]
        parts += [_line([_flow(row), row.paper.protocol, *cells_of(row, notes)]) for row in rows]
        parts += ["", *(f"{mark}: {note}.\n" for mark, note in notes.items())]
    return "\n".join(parts).rstrip() + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
