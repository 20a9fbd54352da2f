"""A sweep as a table on a terminal, and as one HTML page."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from experiments.analysis.statistics import Estimate
from experiments.protocols import PROTOCOLS
from experiments.report import units
from experiments.report.canvas import Plot
from experiments.report.pages import render_template
from experiments.report.terminal import filled, printing, visible
from experiments.sweep.plan import Sweep
from experiments.sweep.store import PointResult
from experiments.sweep.summary import SweepRow, rows

COLUMNS = (
    "asked\nMbit/s",
    "admitted\nMbit/s",
    "received\nMbit/s",
    "received\n% of adm.",
    "received\n% of asked",
    "delay\nmean ms",
)


def print_table(sweep: Sweep, results: Sequence[PointResult], console: Console) -> None:
    """Print a row for each load and protocol; plain ASCII where there is no terminal."""
    given = sweep.conditions
    seeds = len({result.point.seed for result in results})
    title = f"{Path(given.network).stem}: {max((result.flows for result in results), default=0)} flows, "
    title += f"{given.duration_s:g} s, {seeds} seed{'' if seeds == 1 else 's'}"

    def lines() -> Iterator[list[str] | None]:
        load = None
        for row in rows(sweep, results):
            if row.load != load:
                yield None
            yield ["" if row.load == load else f"{row.load:g}", row.protocol, *cells(row)]
            load = row.load

    with printing(console) as plain:
        console.print(filled(title, ("load", "protocol"), COLUMNS, lines(), plain), highlight=False)
        for note in notes(results):
            console.print(visible(note, plain), highlight=False)


def render_sweep(sweep: Sweep, results: Sequence[PointResult], plot: Plot, title: str) -> str:
    """Return the page: the picture, the table and the conditions."""
    return render_template(
        "sweep.html.j2",
        sweep=sweep,
        title=title,
        plot=plot,
        seeds=len({result.point.seed for result in results}),
        columns=[name.replace("\n", " ") for name in COLUMNS],
        rows=[(row, cells(row)) for row in rows(sweep, results)],
        notes=notes(results),
        conditions=sweep.conditions.model_dump(),
    )


def cells(row: SweepRow) -> list[str]:
    """Return a row's cells in the order of `COLUMNS`."""
    return [
        units.with_interval(row.requested_bps, units.mbps, 1e-6),
        units.with_interval(row.admitted_bps, units.mbps, 1e-6),
        units.with_interval(row.received_bps, units.mbps, 1e-6),
        _percent(row.received_of_admitted),
        _percent(row.received_of_requested),
        units.with_interval(row.delay_mean_s, units.ms, 1e3),
    ]


def _percent(value: Estimate | None) -> str:
    return units.MISSING if value is None else units.percent(value.mean, 1)


def notes(results: Sequence[PointResult]) -> list[str]:
    """Return what a reader of the numbers should know."""
    told = []
    received = {(r.point.load, r.point.seed, r.point.protocol): r.received_bps for r in results}
    routing = {name: PROTOCOLS[name].default_routing for *_, name in received if name in PROTOCOLS}
    hashed, shortest = (
        [name for name, kind in routing.items() if kind == wanted] for wanted in ("ecmp", "shortest")
    )
    where = {(load, seed) for load, seed, _ in received}
    for one, other in itertools.product(hashed, shortest):
        pairs = [[received.get((*point, name)) for name in (one, other)] for point in where]
        if all(bps == same for bps, same in pairs):
            told.append(f"No two paths are equally long, so {one} is {other}; --metric hops makes ties.")
    if results:
        events = sum(result.events for result in results)
        seconds = sum(result.wall_s for result in results)
        most = max(result.peak_rss_bytes for result in results)
        points = "1 point" if len(results) == 1 else f"{len(results)} points"
        told.append(
            f"{points}, {events / 1e6:.1f} million events, {events / seconds / 1e6:.2f} million a second on "
            f"a core; at most {units.size(most)} of memory for a point."
        )
    return told
