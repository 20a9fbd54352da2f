"""A results document as tables: one row for each run, flow, link, or interval of a series.

A table is a mapping of column names to lists of one length, which is what `pandas.DataFrame` and
`pyarrow.table` take. Its first columns say which run a row belongs to, so that tables can be joined by them.
Names have their units; what was not measured is None.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from experiments.analysis.metrics import METRICS, further_names, value_of
from experiments.model.results import CommandResult, FlowResult, LinkResult, Results, RunResult

Table: TypeAlias = dict[str, list[Any]]
Row: TypeAlias = Mapping[str, Any]

_WHICH = ("scenario", "engine", "case", "protocol", "seed")
_RUN = ("duration_s", "started_at", "valid", "host_cpu_busy", "digest")
_FLOW = ("src", "dst", "group", "workload", "paths", "own_protocol", "congestion_control", "bottleneck_share")
_LINK = (
    "capacity_bps",
    "utilisation",
    "packets_dropped",
    "lateness_mean_us",
    "lateness_p99_us",
    "lateness_max_us",
)
_STREAM = ("rate_bps", "cwnd_bytes", "rtt_s")
COLUMNS = {
    "runs": (*_WHICH, *_RUN, "why_invalid", "attempts", "jain_index"),
    "flows": (*_WHICH, "valid", "flow", *_FLOW),
    "links": (*_WHICH, "valid", "link", *_LINK),
    "series": (*_WHICH, "flow", "time_s", "goodput_bps", "delay_mean_s"),
    "streams": (*_WHICH, "flow", "stream", "source_port", "path", "time_s", *_STREAM),
    "link_series": (*_WHICH, "link", "time_s", "utilisation"),
    "commands": (*_WHICH, *CommandResult.model_fields),
    "quantiles": (*_WHICH, "flow", "share", "delay_s", "fct_s"),
}
"""The columns of each table, there even where it has no rows; `flows` has one for each metric beside them.
New ones may come at any place: use names."""


def columns_of(results: Results) -> dict[str, tuple[str, ...]]:
    """Return the columns of each table of a document, metrics included."""
    built_in = [metric.name for metric in METRICS.values() if metric.is_built_in]
    return {**COLUMNS, "flows": (*COLUMNS["flows"], *built_in, *further_names(results.runs))}


def tables(results: Results) -> dict[str, Table]:
    """Return all tables of a document, by name; `columns_of` has what is in each."""
    runs = results.runs
    flows = [(run, flow) for run in runs for flow in run.flows]
    links = [(run, link) for run in runs for link in run.links]
    kinds: dict[str, Iterable[Row]] = {
        "runs": map(_run_row, runs),
        "flows": itertools.starmap(flow_row, flows),
        "links": itertools.starmap(link_row, links),
        "series": (row for each in flows for row in series_rows(*each)),
        "streams": (row for each in flows for row in _streams(*each)),
        "link_series": (row for each in links for row in _link_series(*each)),
        "commands": ({**_which(run), **each.model_dump()} for run in runs for each in run.commands),
        "quantiles": (row for each in flows for row in _quantiles(*each)),
    }
    same = {"scenario": results.scenario, "engine": results.engine}
    columns = columns_of(results)
    return {name: _columns(columns[name], ({**same, **row} for row in rows)) for name, rows in kinds.items()}


def _columns(names: Iterable[str], rows: Iterable[Row]) -> Table:
    columns: Table = {name: [] for name in names}
    for row in rows:
        for name, column in columns.items():
            column.append(row.get(name))
    return columns


def _which(run: RunResult) -> dict[str, Any]:
    return {"case": run.case, "protocol": run.protocol, "seed": run.seed}


def _run_row(run: RunResult) -> Row:
    reasons = {
        "why_invalid": "; ".join(run.why_invalid) or None,
        "attempts": len(run.earlier_attempts) + 1,
        "jain_index": min((each.jain_index for each in run.bottlenecks), default=None),
    }
    return {**_which(run), **{name: getattr(run, name) for name in _RUN}, **reasons}


def flow_row(run: RunResult, flow: FlowResult) -> dict[str, Any]:
    """Return a flow with every metric; None where it was not measured."""
    return {
        **_which(run),
        "valid": run.valid,
        "flow": flow.flow,
        "src": flow.src,
        "dst": flow.dst,
        "group": flow.group,
        "workload": flow.workload_kind,
        "paths": " ".join(_path(path.path) for path in flow.allocated) or None,
        "own_protocol": flow.protocol,
        "congestion_control": flow.congestion_control,
        "bottleneck_share": min(
            (each.shares[flow.flow] for each in run.bottlenecks if flow.flow in each.shares), default=None
        ),
        **flow.metrics,
        **{name: value_of(metric, flow, run) for name, metric in METRICS.items()},
    }


def link_row(run: RunResult, link: LinkResult) -> dict[str, Any]:
    """Return one direction of a link."""
    shown = {name: getattr(link, name) for name in ("link", *_LINK)}
    return {**_which(run), "valid": run.valid, **shown}


def series_rows(run: RunResult, flow: FlowResult) -> Iterator[dict[str, Any]]:
    """Yield each interval of a flow: its end, goodput and mean delay."""
    names, series = ("time_s", "goodput_bps", "delay_mean_s"), flow.series
    for values in zip(*(getattr(series, name) for name in names), strict=True):
        yield {**_which(run), "flow": flow.flow, **dict(zip(names, values, strict=True))}


def _streams(run: RunResult, flow: FlowResult) -> Iterator[Row]:
    for number, stream in enumerate(flow.series.streams, start=1):
        columns = [getattr(stream, name) for name in _STREAM]
        for time_s, *values in itertools.zip_longest(flow.series.time_s, *columns):
            yield {
                **_which(run),
                "flow": flow.flow,
                "stream": number,
                "source_port": stream.source_port,
                "path": _path(stream.path) if stream.path else None,
                "time_s": time_s,
                **dict(zip(_STREAM, values, strict=True)),
            }


def _link_series(run: RunResult, link: LinkResult) -> Iterator[Row]:
    if link.series is None:
        return
    for time_s, utilisation in zip(link.series.time_s, link.series.utilisation, strict=True):
        yield {**_which(run), "link": link.link, "time_s": time_s, "utilisation": utilisation}


def _quantiles(run: RunResult, flow: FlowResult) -> Iterator[Row]:
    """Yield how much of a flow's bytes had at most a delay, and of its requests at most a completion time."""
    columns = {"delay_s": flow.series.delay_cdf_s, "fct_s": flow.fct_s.quantiles if flow.fct_s else []}
    steps = max(map(len, columns.values())) - 1
    for number in range(steps + 1):
        values = {name: column[number] for name, column in columns.items() if column}
        yield {**_which(run), "flow": flow.flow, "share": number / steps, **values}


def _path(nodes: Iterable[str]) -> str:
    return ">".join(nodes)
