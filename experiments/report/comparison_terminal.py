"""A comparison as tables on a terminal: what was set otherwise first, then goodput and delay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from experiments.analysis.metrics import METRICS, Kept
from experiments.report import units
from experiments.report.comparison import Comparison, FlowComparison, Pair, Quantity
from experiments.report.terminal import filled, printing, visible

SIGNIFICANT = "*"
FOOTNOTE = (
    f"{SIGNIFICANT} the 95 % confidence interval of the difference (Welch) leaves out zero. Where nothing "
    "differs, one row in twenty has the mark all the same. Without ± a side has a single run."
)


@dataclass(frozen=True)
class _Column:
    """A quantity in the tables: `form` makes a text of a value, `scale` leads to the text's unit."""

    name: str
    heading: str
    scale: float
    form: Callable[[float], str]


MAIN = {
    column.name: column
    for column in (
        _Column("goodput_bps", "goodput\nMbit/s", 1e-6, units.mbps),
        _Column("delay_mean_s", "delay\nmean ms", 1e3, units.ms),
    )
}


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print the comparison, at most 100 columns wide; plain ASCII where there is no terminal."""
    with printing(console) as plain:
        for part in _parts(comparison, plain):
            console.print(part, highlight=False)


def _parts(comparison: Comparison, plain: bool) -> Iterator[Text | Table]:
    for document in comparison.documents:
        yield visible(f"{document.letter} = {document.name}", plain)
    yield Text()
    if comparison.settings:
        yield _settings(comparison, plain)
    else:
        yield visible("All settings are the same.", plain)
    yield Text()
    for sentence in comparison.warnings:
        yield visible(sentence, plain, style="bold red")
    for pair in comparison.pairs:
        for case, rows in pair.cases().items():
            yield _table(pair, case, rows, plain)
            yield Text()
        for sentence in pair.lonely:
            yield visible(sentence, plain)
    yield visible(FOOTNOTE, plain, style="dim")


def _settings(comparison: Comparison, plain: bool) -> Table:
    letters = [document.letter for document in comparison.documents]
    rows = ([setting.name, *setting.values] for setting in comparison.settings)
    return filled("Settings that differ", ["setting", *letters], (), rows, plain)


def _table(pair: Pair, case: str, rows: list[FlowComparison], plain: bool) -> Table:
    first, other = pair.first.letter, pair.other.letter
    title = f"{pair.first.results.scenario}, case {case}: {other} against {first}"
    columns = [_column(name, rows) for name in rows[0].quantities]
    headings = [
        f"{column.heading} {side}" for column in columns for side in (first, other, f"{other} - {first}")
    ]

    def cells() -> Iterator[list[str] | None]:
        flow = None
        for row in sorted(rows, key=lambda row: [entry.flow for entry in rows].index(row.flow)):
            if row.flow != flow:
                yield None
            quantities = ((row.quantities[column.name], column.form, column.scale) for column in columns)
            yield [
                "" if row.flow == flow else row.flow,
                row.protocol + ("" if row.valid else " (invalid)"),
                *(cell for quantity in quantities for cell in _cells(*quantity)),
            ]
            flow = row.flow

    return filled(title, ("flow", "protocol"), headings, cells(), plain)


def _column(name: str, rows: list[FlowComparison]) -> _Column:
    if name in MAIN:
        return MAIN[name]
    metric = METRICS[name] if name in METRICS else Kept(name)
    if metric.heading:
        return _Column(name, metric.heading, metric.scale, metric.text)
    sides = (side for row in rows for side in (row.quantities[name].first, row.quantities[name].other))
    scale, heading = units.axis_unit(name, max((abs(side.mean) for side in sides if side), default=1.0))
    return _Column(name, heading, scale, lambda value: units.decimal(value * scale))


def _cells(quantity: Quantity, form: Callable[[float], str], scale: float) -> Iterator[str]:
    for side in (quantity.first, quantity.other):
        yield units.MISSING if side is None else form(side.mean)
    is_significant = quantity.difference and quantity.difference.significant
    yield difference_text(quantity, form, scale) + (" " + SIGNIFICANT if is_significant else "")


def difference_text(quantity: Quantity, form: Callable[[float], str], scale: float) -> str:
    """Return a difference with its sign and its interval, with the decimals of the mean that it is of."""
    difference = quantity.difference
    if difference is None or quantity.first is None:
        return units.MISSING
    places = len(form(quantity.first.mean).partition(".")[2])
    text = f"{difference.value * scale:+.{places}f}"
    if float(text) == 0:
        text = text[1:]
    if difference.half_width is None:
        return text
    return f"{text} ±{units.interval(text, difference.half_width * scale)}"
