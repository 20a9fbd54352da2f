"""The tables of all protocols on the butterfly: README's means, and docs/butterfly.md's with intervals.

python -m benchmarks.readme                   # from docs/results/butterfly.json and butterfly-quic.json
python -m benchmarks.readme --keep RESULTS    # first make one of them of RESULTS, without its series
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.command_line import command_line
from benchmarks.pages import DOCS, markdown_table, renew
from experiments.analysis.statistics import Estimate
from experiments.model.results import Results
from experiments.model.results_files import read_results
from experiments.report import units
from experiments.report.summary import CaseSummary, FlowSummary, summarise

KEPT = DOCS / "results" / "butterfly.json"
QUIC = DOCS / "results" / "butterfly-quic.json"
"""Protocols for which the paper's frames are too small."""
Cell = Callable[[FlowSummary], str]


def main() -> None:
    """Renew the tables."""
    parser = command_line(__doc__)
    parser.add_argument("--keep", type=Path, metavar="RESULTS")
    args = parser.parse_args()
    if args.keep:
        results = read_results(args.keep)
        path = QUIC if any(run.protocol == "mpquic" for run in results.runs) else KEPT
        path.write_text(without_series(results), encoding="utf-8")
    for page, lines in tables(read_results(KEPT), read_results(QUIC)).items():
        renew(page, "runs", lines)


def tables(results: Results, quic: Results) -> dict[str, list[str]]:
    """Return the lines of each page's table."""
    return {
        "../README.md": [*table(results, quic, means)],
        "butterfly.md": [made(results), "", *table(results, quic, intervals)],
    }


def without_series(results: Results) -> str:
    """Return a document as compact JSON without its series: means, quantiles and evidence stay."""
    document = results.model_dump(mode="json")
    for run in document["runs"]:
        for flow in run["flows"]:
            flow["series"] = {key: [] for key in flow["series"]}
        for link in run["links"]:
            link["series"] = None
    return json.dumps(document, separators=(",", ":")).replace('{"protocol":', '\n{"protocol":') + "\n"


def made(results: Results) -> str:
    """Return how the runs were made."""
    runs = results.runs
    seeds = len({run.seed for run in runs})
    attempts = sum(len(run.earlier_attempts) for run in runs)
    invalid = sum(not run.valid for run in runs)
    return (
        f"Engine `{results.engine}`, {len(runs)} runs of {runs[0].duration_s:g} s ({seeds} seeds); "
        f"{attempts} invalid attempts were made again, {invalid} invalid runs are left out. Each cell has "
        "the goodput of what was asked for, in Mbit/s, and the mean delay, with half of the 95 % confidence "
        "interval."
    )


def table(results: Results, quic: Results, cell: Cell) -> Iterator[str]:
    """Yield a row a protocol, last those with larger frames, and a column for each flow of each case."""
    columns = (f"case {case.name}, flow {flow}" for case in summarise(results) for flow in case.flows)
    frames = f", frames of {quic.settings['packet_bytes']:,} bytes"
    return markdown_table(("protocol", *columns), [*_rows(results, cell), *_rows(quic, cell, frames)])


def _rows(results: Results, cell: Cell, further: str = "") -> Iterator[list[str]]:
    cases = summarise(results)
    for protocol in reversed(cases[0].protocols):
        cells = (cell(_summary(case, flow, protocol)) for case in cases for flow in case.flows)
        yield [f"`{protocol}`{further}", *cells]


def means(summary: FlowSummary) -> str:
    """Return goodput and delay for readers in a hurry."""
    delay = summary.delay_mean_s
    waits = "" if delay is None else f", {delay.mean * 1e3:.0f} ms"
    return f"{summary.goodput_bps.mean / 1e6:.1f}{waits}"


def intervals(summary: FlowSummary) -> str:
    """Return goodput, what was asked for, and delay, with intervals over the seeds."""
    got = _interval(summary.goodput_bps, 1e-6, 2)
    delay = "-" if summary.delay_mean_s is None else f"{_interval(summary.delay_mean_s, 1e3, 1)} ms"
    return f"{got} of {units.mbps(summary.requested_bps)}, {delay}"


def _summary(case: CaseSummary, flow: str, protocol: str) -> FlowSummary:
    return next(each for each in case.flows[flow] if each.protocol == protocol)


def _interval(value: Estimate, scale: float, digits: int) -> str:
    mean = f"{value.mean * scale:.{digits}f}"
    return mean if value.half_width is None else f"{mean} ± {value.half_width * scale:.{digits}f}"


if __name__ == "__main__":
    main()
